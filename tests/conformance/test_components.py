"""The encoders and projectors of multimodal fixtures give the eager outputs, in every runtime."""

import pytest
from safetensors.numpy import load_file
from support import compare, ferry, run_ferry, run_onnxruntime

COMPONENTS = {
    "llava": ("image_encoder", "multi_modal_projector"),
    "gemma3": ("image_encoder", "multi_modal_projector"),
    "paligemma": ("image_encoder", "multi_modal_projector"),
    "idefics3": ("image_encoder", "connector"),
    "smolvlm": ("image_encoder", "connector"),
    "qwen2_vl": ("image_encoder",),
    "qwen3_vl": ("image_encoder",),
}
components = pytest.mark.parametrize(
    "model_type, component", [(name, part) for name, parts in COMPONENTS.items() for part in parts]
)


@components
def test_component(fixture, tmp_path, model_type, component):
    source = fixture(model_type)
    inputs = source / f"static_{component}_inputs.safetensors"
    expected = load_file(source / f"static_{component}_expected.safetensors")
    fixed = ";".join(f"{n}={','.join(map(str, v.shape))}" for n, v in load_file(inputs).items())
    for target, options in {"onnx": (), "openvino": (), "executorch": ("--dynamic-shapes", fixed)}.items():
        export = tmp_path / target
        ferry("export", source, "--component", component, "--to", target, "-o", export, *options)
        runtime = "onnxruntime" if target == "onnx" else target
        compare(run_ferry(export, inputs, tmp_path / "out.safetensors", runtime), expected)
    compare(run_onnxruntime(tmp_path / f"onnx/{component}.onnx", load_file(inputs)), expected)
    compare(run_ferry(tmp_path / "onnx", inputs, tmp_path / "out.safetensors", "reference"), expected)


def test_a_multimodal_model_is_exported_in_components(fixture, tmp_path):
    done = ferry("export", fixture("llava"), "-o", tmp_path / "export", status=None)
    assert done.returncode == 6 and "--component" in done.stderr
