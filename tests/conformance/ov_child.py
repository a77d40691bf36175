"""Models in OpenVINO, in a process of their own: bad IR can end the process that loads it.

The parent asks with one line of JSON per run and gets one back. `states` names a file of tensors to put
into the variables before the run; what they hold afterwards is given out under their names.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32"}


class Child:
    """`run` fails as the model does; a crash is an error too, and the next run has a new process."""

    def __init__(self):
        self.process = None
        self.work = tempfile.TemporaryDirectory()

    def ask(self, **request) -> dict:
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"OpenVINO crashed with {request['model']}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer

    def run(self, directory, inputs, states=None) -> dict:
        """The outputs by the names of the model's keywords."""
        output = Path(self.work.name) / "outputs.safetensors"
        self.ask(model=str(directory), inputs=str(inputs), states=str(states or ""), output=str(output))
        return load_file(output)

    def kinds(self, directory) -> Counter:
        """How many operations of each kind the CPU plugin made."""
        return Counter(self.ask(model=str(directory))["kinds"])

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()
        self.work.cleanup()


def compile_model(core, directory):
    return core.compile_model(f"{directory}/openvino_model.xml", "CPU", FLOAT32)


def feeds(model, inputs, batch):
    for port in model.inputs:
        name = port.any_name
        if name == "beam_idx":
            yield name, np.arange(batch, dtype=np.int32)
        else:
            yield name, inputs[name.removeprefix("input.")]


def run(core, request):
    import openvino

    model = compile_model(core, request["model"])
    if "inputs" not in request:
        operations = model.get_runtime_model().get_ordered_ops()
        return {"kinds": [operation.get_rt_info()["layerType"].value for operation in operations]}
    inputs = load_file(request["inputs"])
    session = model.create_infer_request()
    batch = max(inputs.values(), key=np.ndim).shape[0]
    states = session.query_state() if request["states"] else []
    values = load_file(request["states"]) if states else {}
    for state in states:
        value = np.ascontiguousarray(values[state.name].astype(state.state.data.dtype))
        state.state = openvino.Tensor(value)
        batch = value.shape[0] if values[state.name].ndim else batch
    results = session.infer(dict(feeds(model, inputs, batch)))
    outputs = {}
    for port in model.outputs:
        (name,) = port.names
        outputs[name.removeprefix("output.")] = np.array(results[port])
    for state in session.query_state() if states else []:
        # The plugin shows a scalar as a vector.
        outputs[state.name] = np.array(state.state.data).reshape(
            () if values[state.name].ndim == 0 else state.state.shape
        )
    save_file(outputs, request["output"])
    return {}


def main():
    import openvino

    core = openvino.Core()
    for line in sys.stdin:
        try:
            answer = run(core, json.loads(line))
        except Exception as failure:
            answer = {"error": str(failure)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
