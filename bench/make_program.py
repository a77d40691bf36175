"""Write a torch.export program (.pt2) with many nodes, without torch: make_program.py NODES OUT.pt2

A chain of layers x = relu(x + x @ w), each of three nodes, over a dynamic batch."""

import json
import struct
import sys
import zipfile

BATCH = {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)", "hint": {"as_int": 2}}}
WIDTH = 16


def tensor(sizes):
    strides = [{"as_int": WIDTH}, {"as_int": 1}]
    return {"dtype": 7, "sizes": sizes, "requires_grad": False, "device": {"type": "cpu", "index": None},
            "strides": strides, "storage_offset": {"as_int": 0}, "layout": 7}


def node(target, inputs, output):
    return {"target": f"torch.ops.aten.{target}",
            "inputs": [{"name": k, "arg": {"as_tensor": {"name": v}}, "kind": 1} for k, v in inputs.items()],
            "outputs": [{"as_tensor": {"name": output}}], "metadata": {}, "is_hop_single_tensor_return": None}


def program(count):
    nodes, values, x = [], {}, "x"
    activation, weight = tensor([BATCH, {"as_int": WIDTH}]), tensor([{"as_int": WIDTH}] * 2)
    for i in range(count // 3):
        steps = [("mm.default", {"self": x, "mat2": "p_w"}, f"mm_{i}"),
                 ("add.Tensor", {"self": x, "other": f"mm_{i}"}, f"add_{i}"),
                 ("relu.default", {"self": f"add_{i}"}, f"relu_{i}")]
        for target, inputs, output in steps:
            nodes.append(node(target, inputs, output))
            values[output] = activation
        x = f"relu_{i}"
    values.update(x=activation, p_w=weight)
    leaf = {"type": None, "context": None, "children_spec": []}
    args = {"type": "builtins.tuple", "context": "null", "children_spec": []}
    kwargs = {"type": "builtins.dict", "context": '["x"]', "children_spec": [leaf]}
    call = {"inputs": [], "outputs": [], "forward_arg_names": ["x"],
            "in_spec": json.dumps([1, {"type": "builtins.tuple", "context": "null", "children_spec": [args, kwargs]}]),
            "out_spec": json.dumps([1, leaf])}
    return {
        "graph_module": {
            "graph": {"inputs": [{"as_tensor": {"name": n}} for n in ("p_w", "x")],
                      "outputs": [{"as_tensor": {"name": x}}], "nodes": nodes, "tensor_values": values,
                      "sym_int_values": {}, "sym_bool_values": {}},
            "signature": {
                "input_specs": [{"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
                                {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
                "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": x}}}}]},
            "module_call_graph": [{"fqn": "", "signature": call}]},
        "opset_version": {"aten": 10}, "range_constraints": {"s0": {"min_val": 2, "max_val": None}},
        "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "guards_code": []}


def main():
    count, path = int(sys.argv[1]), sys.argv[2]
    meta = tensor([{"as_int": WIDTH}] * 2)
    weights = {"config": {"w": {"path_name": "weight_0", "is_param": True, "use_pickle": False, "tensor_meta": meta}}}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/archive_format", "pt2")
        archive.writestr("m/archive_version", "0")
        archive.writestr("m/.data/version", "6\n")
        archive.writestr("m/models/model.json", json.dumps(program(count)))
        archive.writestr("m/data/weights/weight_0", struct.pack(f"<{WIDTH * WIDTH}f", *[0.01] * WIDTH * WIDTH))
        archive.writestr("m/data/weights/model_weights_config.json", json.dumps(weights))
        archive.writestr("m/data/constants/model_constants_config.json", '{"config": {}}')
        archive.writestr("m/data/sample_inputs/model.pt", "")


main()
