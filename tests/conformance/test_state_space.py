"""State space models: prompts of every length in every runtime, and generation in torch."""

import json
from types import SimpleNamespace

import dynamo
import numpy as np
import onnxruntime
import openvino
import pytest
import torch
import transformers
from checkpoints import randomize
from executorch.runtime import Runtime, Verification
from support import compare, ferry
from torch.utils._pytree import tree_unflatten

SMALL = dict(vocab_size=61, hidden_size=24, num_hidden_layers=3, pad_token_id=0, bos_token_id=1, eos_token_id=None)
MAMBA = dict(SMALL, state_size=5, conv_kernel=3, time_step_rank=3)
MODELS = {
    "mamba": ("Mamba", MAMBA),
    "falcon_mamba": ("FalconMamba", MAMBA),
    "mamba2": ("Mamba2", dict(SMALL, state_size=5, conv_kernel=3, num_heads=6, head_dim=8, n_groups=2, chunk_size=8)),
    "jamba": (
        "Jamba",
        dict(SMALL, intermediate_size=36, num_attention_heads=4, num_key_value_heads=2, mamba_d_state=5,
             mamba_d_conv=3, mamba_dt_rank=3, attn_layer_period=3, attn_layer_offset=1, num_experts=4,
             use_mamba_kernels=False),
    ),
}  # fmt: skip
TARGETS = ("onnx", "openvino", "executorch", "dynamo")
LENGTHS = (1, 2, 7, 64, 300)
PADDING, STEPS, CACHE = 3, 16, 32
# The two kinds of recurrence in every target.
CASES = [(target, name) for target in TARGETS for name in MODELS if target == "onnx" or name in ("mamba", "mamba2")]


# ---- eager ----


@pytest.fixture(scope="module")
def eager(tmp_path_factory):
    """The checkpoint and the model of a type, made once."""
    made = {}

    def make(name):
        if name in made:
            return made[name]
        prefix, config = MODELS[name]
        torch.manual_seed(7)
        config = getattr(transformers, f"{prefix}Config")(**config)
        model = getattr(transformers, f"{prefix}ForCausalLM")(config).eval()
        randomize(model)
        source = tmp_path_factory.mktemp(name)
        model.save_pretrained(source)
        made[name] = SimpleNamespace(source=source, model=model)
        return made[name]

    return make


def leaves(cache) -> dict:
    found = {}
    for i, layer in enumerate(cache.layers):
        for kind in ("conv_states", "recurrent_states"):
            if hasattr(layer, kind):
                found[f"cache.layers.{i}.{kind}.0"] = getattr(layer, kind)[0].numpy()
        for kind in ("keys", "values"):
            if hasattr(layer, kind):
                found[f"cache.layers.{i}.{kind}"] = getattr(layer, kind).numpy()
    return found


def prompts(length: int) -> dict:
    """Two prompts, the first of them padded on the left where it is long enough."""
    ids = torch.randint(1, 61, (2, length), generator=torch.Generator().manual_seed(length))
    mask = torch.ones_like(ids)
    if length > PADDING:
        mask[0, :PADDING] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def generate(model) -> SimpleNamespace:
    """What eager generates after the prompts of 7 tokens, with the logits of each step."""
    result = model.generate(**prompts(7), max_new_tokens=STEPS, do_sample=False, output_logits=True,
                            return_dict_in_generate=True)  # fmt: skip
    return SimpleNamespace(tokens=result.sequences[:, 7:].numpy(), logits=[x.numpy() for x in result.logits])


# ---- runtimes ----


class Exported:
    """A component of an export, called by the names of its leaves."""

    def __init__(self, directory, component, target):
        metadata = json.loads((directory / "export.json").read_text())["components"][component]["metadata"]
        self.inputs, self.outputs = (
            [dict(port, name=port["name"].removeprefix(f"{side}.")) for port in metadata["ferry"][f"{side}s"]]
            for side in ("input", "output")
        )
        self.call = getattr(self, target)(directory, component)

    def onnx(self, directory, component):
        session = onnxruntime.InferenceSession(directory / f"{component}.onnx", providers=["CPUExecutionProvider"])
        names = [port.name for port in session.get_inputs()]
        return lambda values: session.run(None, {n: values[n.removeprefix("input.")] for n in names})

    def openvino(self, directory, component):
        path = directory / f"openvino_{component}.xml"
        model = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

        def call(values):
            result = model(values)
            return [result[port["name"]] for port in self.outputs]

        return call

    def executorch(self, directory, component):
        program = Runtime.get().load_program(directory / f"{component}.pte",
                                             verification=Verification.InternalConsistency)  # fmt: skip
        self.program, method = program, program.load_method("forward")
        return lambda values: [
            x.numpy().copy() for x in method.execute([torch.from_numpy(values[p["name"]].copy()) for p in self.inputs])
        ]

    def dynamo(self, directory, component):
        program = dynamo.load(directory / f"{component}.pt2")
        module = program.module()

        def call(values):
            given = {name: torch.from_numpy(value) for name, value in values.items()}
            given = dynamo.user_leaves(program, given, [port["name"] for port in self.inputs])
            args, kwargs = tree_unflatten(given, program.call_spec.in_spec)
            with torch.no_grad():
                result = module(*args, **kwargs)
            return [torch.as_tensor(dynamo.find(result, port["name"])).numpy() for port in self.outputs]

        return call

    def __call__(self, values: dict) -> dict:
        return dict(zip((port["name"] for port in self.outputs), self.call(values)))


# ---- prompts ----


@pytest.mark.parametrize("target, name", CASES)
def test_prompts_of_any_length(eager, tmp_path, name, target):
    made = eager(name)
    ferry("export", made.source, "--to", target, "-o", tmp_path / "out", "-q")
    exported = Exported(tmp_path / "out", "model", target)
    for length in LENGTHS:
        sample = prompts(length)
        with torch.no_grad():
            result = made.model(**sample)
        compare(exported({key: value.numpy() for key, value in sample.items()}),
                {"logits": result.logits.numpy(), **leaves(result.cache)})  # fmt: skip


# ---- generation ----


def first_state(exported: Exported) -> dict:
    sizes = {"batch": 2, "past": 0, "cache_length": CACHE}
    return {
        port["name"]: np.zeros([sizes.get(size) if size in sizes else int(size) for size in port["shape"]], port["dtype"])
        for port in exported.inputs
        if port["name"].startswith("cache.")
    }  # fmt: skip


def step(exported: Exported, ids, seen, mask, state: dict) -> dict:
    """One call on the tokens `ids` after `seen` others; `mask` is of all tokens until now."""
    values, count = dict(state, input_ids=ids), ids.shape[1]
    for port in exported.inputs:
        name = port["name"]
        if name == "position_ids":
            values[name] = np.clip(mask.cumsum(1) - 1, 0, None)[:, seen:]
        elif name == "attention_mask":
            whole = port["shape"][1] not in ("sequence", "1")
            values[name] = mask if whole or seen == 0 else mask[:, seen:]
        elif name.startswith("attention_mask."):
            whole = np.zeros((2, 1, count, CACHE), bool)
            for i in range(count):
                whole[:, 0, i, : seen + i + 1] = mask[:, : seen + i + 1]
            values[name] = whole
    return exported(values)


def compare_generation(prefill: Exported, decode: Exported, expected, chunk: int) -> None:
    """Feed the prompts to `prefill` in chunks, then tokens to `decode` one by one, with the states in between."""
    sample = {key: value.numpy() for key, value in prompts(7).items()}
    tokens, mask, seen = sample["input_ids"], sample["attention_mask"], 0
    state, made = first_state(prefill), []
    while len(made) < STEPS:
        count = min(chunk, 7 - seen) if seen < 7 else 1
        exported = prefill if seen < 7 else decode
        outputs = step(exported, tokens[:, seen : seen + count], seen, mask[:, : seen + count], state)
        seen += count
        logits = outputs.pop("logits")[:, -1]
        state = outputs
        if seen < 7:
            continue
        compare({"logits": logits}, {"logits": expected.logits[len(made)]})
        made.append(logits.argmax(-1))
        tokens = np.concatenate([tokens, made[-1][:, None]], 1)
        mask = np.concatenate([mask, np.ones((2, 1), mask.dtype)], 1)
    assert (np.stack(made, 1) == expected.tokens).all()


@pytest.mark.parametrize("name, options", [("mamba2", ["--multi-token-decode"]), ("jamba", ["--static-cache", str(CACHE)])])
def test_torch_generates(eager, tmp_path, name, options):
    """What test_generation.py does not do: torch itself runs the programs, with the caches of Transformers."""
    made = eager(name)
    ferry("export", made.source, "--to", "dynamo", "-o", tmp_path, "--generation", "-q", *options)
    decode, expected = Exported(tmp_path, "decode", "dynamo"), generate(made.model)
    if "--static-cache" in options:
        compare_generation(Exported(tmp_path, "prefill", "dynamo"), decode, expected, 7)
    else:
        compare_generation(decode, decode, expected, 3)
