"""Plug-ins: the worked example of docs/extending.md is built, and does what the page says of it."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors.numpy import save_file
from support import build_plugin, compare, ferry, plugin_example


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    """Build a plug-in from source."""

    def build(name, source, *language):
        return build_plugin(source, tmp_path_factory.mktemp("plugin") / f"{name}.so", *language)

    return build


@pytest.fixture(scope="module")
def acme(plugin):
    return plugin("acme", plugin_example())


class Mlp(torch.nn.Module):
    """What the example builds."""

    def __init__(self, activation):
        super().__init__()
        torch.manual_seed(0)
        self.embeddings = torch.nn.Embedding(13, 8)
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.activation = activation

    def forward(self, ids):
        return self.norm(self.down(self.activation(self.up(self.embeddings(ids)))))


def checkpoint(directory, activation):
    """A checkpoint of the model type acme_mlp and what it computes for `ids`."""
    functions = {"gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}
    functions["relu2"] = lambda x: torch.nn.functional.relu(x) ** 2
    model = Mlp(functions[activation])
    directory.mkdir()
    sizes = {"vocab_size": 13, "hidden_size": 8, "intermediate_size": 16}
    config = {"model_type": "acme_mlp", "architectures": ["AcmeMLPModel"], "hidden_act": activation, **sizes}
    (directory / "config.json").write_text(json.dumps(config))
    save_file({k: v.detach().numpy() for k, v in model.state_dict().items()}, directory / "model.safetensors")
    ids = np.array([[1, 5, 2], [12, 0, 3]])
    with torch.no_grad():
        return ids, model(torch.from_numpy(ids)).numpy()


def run_onnx(directory, feeds):
    session = onnxruntime.InferenceSession(directory / "model.onnx", providers=["CPUExecutionProvider"])
    names = [port.name for port in session.get_outputs()]
    wanted = {port.name for port in session.get_inputs()}
    feeds = {name: value for name, value in feeds.items() if name in wanted}
    return dict(zip(names, session.run(None, feeds)))


def operators(directory):
    graph = onnx.load(directory / "model.onnx", load_external_data=False).graph
    return [(node.domain, node.op_type) for node in graph.node]


def export_and_run(acme, tmp_path, activation, *options):
    ids, expected = checkpoint(tmp_path / "model", activation)
    ferry("export", tmp_path / "model", "--plugin", acme, "-o", tmp_path / "out", *options)
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    return run_onnx(tmp_path / "out", feeds)["last_hidden_state"], expected


def test_a_model_type_is_built_from_its_checkpoint(acme, tmp_path):
    found, expected = export_and_run(acme, tmp_path, "gelu")
    compare({"y": found}, {"y": expected})


def test_a_lowering_makes_an_operator_of_another_domain(acme, tmp_path):
    found, expected = export_and_run(acme, tmp_path, "silu")
    assert ("com.microsoft", "QuickGelu") in operators(tmp_path / "out")
    compare({"y": found}, {"y": expected})


def test_a_node_fix_replaces_nodes_for_its_target_only(acme, tmp_path):
    found, expected = export_and_run(acme, tmp_path, "relu2")
    assert ("", "Pow") not in operators(tmp_path / "out")
    compare({"y": found}, {"y": expected})
    for target, kept in (("onnx", False), ("dynamo", True)):
        command = ("export", tmp_path / "model", "--plugin", acme, "--to", target, "--dump-after", "fix")
        assert ("aten::pow" in ferry(*command).stdout) == kept


def test_a_program_fix_changes_what_the_program_returns(acme, tmp_path):
    found, expected = export_and_run(acme, tmp_path, "gelu", "--dtype", "float16")
    assert found.dtype == np.float32
    compare({"y": found}, {"y": expected}, 5e-3)


def test_a_decomposition_takes_the_place_of_the_built_in_one(acme, tmp_path):
    export_and_run(acme, tmp_path, "gelu", "--opset", "18")
    kinds = {kind for _, kind in operators(tmp_path / "out")}
    assert "Sigmoid" in kinds and not kinds & {"Gelu", "Erf"}


def test_a_translation_gives_a_torch_operator_a_meaning(acme, tmp_path):
    @torch.library.custom_op("acme::scaled_tanh", mutates_args=())
    def scaled_tanh(x: torch.Tensor, scale: float) -> torch.Tensor:
        return torch.tanh(x) * scale

    scaled_tanh.register_fake(lambda x, scale: torch.empty_like(x))

    class Model(torch.nn.Module):
        def forward(self, x):
            return scaled_tanh(x, 3.0) + 1

    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    shapes = ({0: torch.export.Dim("rows")},)
    program = torch.export.export(Model(), (x,), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    refused = ferry("export", tmp_path / "model.pt2", "-o", tmp_path / "out", status=6).stderr
    assert "acme.scaled_tanh.default" in refused
    ferry("export", tmp_path / "model.pt2", "--plugin", acme, "-o", tmp_path / "out")
    (found,) = run_onnx(tmp_path / "out", {"x": x.numpy()}).values()
    compare({"y": found}, {"y": (torch.tanh(x) * 3 + 1).numpy()})


def test_lists_have_what_plugins_add(acme):
    assert "acme_mlp" in ferry("models", "--plugin", acme).stdout
    assert "acme_mlp" not in ferry("models").stdout
    silu = next(
        op for op in json.loads(ferry("ops", "--json", "--plugin", acme).stdout) if op["name"] == "aten::silu"
    )
    assert silu["onnx"] == "yes"


def test_a_plugin_may_be_written_in_cplusplus(plugin):
    source = "#include <ferry/plugin.h>\nstatic void build(ferry_family_model *) {}\nFERRY_PLUGIN\n"
    source += "ferry_status ferry_plugin_register(ferry_registry *registry, ferry_error *) {\n"
    source += '    const ferry_family_definition family = {"cxx", "Cxx", "model", {"feature-extraction"}, build};\n'
    source += "    ferry_register_family(registry, &family);\n    return FERRY_OK;\n}\n"
    assert "cxx" in ferry("models", "--plugin", plugin("cxx", source, "c++")).stdout


# ---- what is refused, and how ----

START = "#include <ferry/plugin.h>\n"
REGISTER = "ferry_status ferry_plugin_register(ferry_registry *registry, ferry_error *error)"


def refused(library, status):
    return ferry("models", "--plugin", library, status=status).stderr


def test_a_missing_file(tmp_path):
    assert "missing.so" in refused(tmp_path / "missing.so", 3)


def test_a_file_that_is_no_library(tmp_path):
    (tmp_path / "text.so").write_text("hello")
    assert "cannot load the plug-in" in refused(tmp_path / "text.so", 3)


def test_a_library_that_is_no_plugin(plugin):
    library = plugin("other", "int answer(void);\nint answer(void) { return 42; }\n")
    assert "found a library without ferry_plugin_abi" in refused(library, 5)


def test_a_plugin_of_another_version(plugin):
    source = START + f"FERRY_API const int ferry_plugin_abi = 999;\n{REGISTER} "
    source += "{ (void)registry; (void)error; return FERRY_OK; }\n"
    assert "version 999" in refused(plugin("future", source), 6)


def test_an_operation_that_does_not_exist(plugin):
    source = START + f"FERRY_PLUGIN\n{REGISTER} {{ (void)error;\n"
    source += 'ferry_register_decomposition(registry, "aten::gelu2", 0); return FERRY_OK; }\n'
    assert '"aten::gelu2", which is not an operation' in refused(plugin("typo", source), 2)


def test_a_plugin_that_refuses(plugin):
    source = START + f"#include <stdio.h>\nFERRY_PLUGIN\n{REGISTER} {{ (void)registry;\n"
    source += 'snprintf(error->message, sizeof error->message, "no licence"); return FERRY_UNSUPPORTED; }\n'
    assert "the plug-in refused to load: no licence" in refused(plugin("unwilling", source), 6)


def test_a_fix_that_changes_the_type(plugin, acme, tmp_path):
    source = START + "#include <string.h>\n"
    source += "static ferry_value *fix(ferry_builder *b, const ferry_node *node) {\n"
    source += '    if (strcmp(ferry_node_operation(node), "aten::gelu")) return NULL;\n'
    source += '    return ferry_build_scalar(b, "aten::eq.Scalar", ferry_node_arg(node, "self").as.tensor, 0);\n}\n'
    source += f"FERRY_PLUGIN\n{REGISTER} {{ (void)error;\n"
    source += '    ferry_register_node_fix(registry, NULL, "broken fix", fix); return FERRY_OK; }\n'
    checkpoint(tmp_path / "model", "gelu")
    command = ("export", tmp_path / "model", "--plugin", acme, "--plugin", plugin("broken", source))
    error = ferry(*command, "-o", tmp_path / "out", status=70).stderr
    assert "broken fix makes bool[" in error and "float32[" in error


def test_a_builder_that_fails_names_the_module(plugin, tmp_path):
    library = plugin("wrong", plugin_example().replace('"up")', '"upward")'))
    checkpoint(tmp_path / "model", "gelu")
    command = ("export", tmp_path / "model", "--plugin", library, "-o", tmp_path / "out")
    assert "upward.weight" in ferry(*command, status=None).stderr
    assert not (tmp_path / "out").exists()
