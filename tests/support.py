"""What the Python tests share: the command under test, the fixtures, comparing tensors."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).resolve().parents[1]
FERRY = Path(os.environ.get("FERRY", ROOT / "build/check/ferry")).resolve()
ARCHIVES = Path(os.environ.get("FERRY_FIXTURES", ROOT / "../shared/fixtures")).resolve()
FIXTURES = ROOT / "build/fixtures"
LIBRARY = next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so*"))
OPENVINO = Path(find_spec("openvino").origin).parent / "libs"
EXECUTORCH = Path(next(iter(find_spec("executorch").submodule_search_locations))) / "lib"
TOLERANCE = 1e-4

ENVIRONMENT = {
    **os.environ,
    "FERRY_ONNXRUNTIME": str(LIBRARY),
    "FERRY_OPENVINO": str(OPENVINO),
    "FERRY_EXECUTORCH": str(EXECUTORCH),
}


def make_once(name: str, sources, make, extra: bytes = b"") -> Path:
    """The folder that `make(folder)` fills, kept in build/conformance until a source changes; the first
    process makes it, the others wait."""
    cache = ROOT / "build/conformance" / name
    digest = hashlib.sha256(extra)
    for path in sources:
        digest.update(Path(path).read_bytes())
    directory = cache / digest.hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if directory.exists():
            return directory
        for old in cache.iterdir():
            if old.is_dir():
                shutil.rmtree(old)
        made = cache / "unfinished"
        made.mkdir()
        make(made)
        made.rename(directory)
    return directory


def ferry(*arguments, status: int | None = 0, **options) -> subprocess.CompletedProcess:
    """Run the command and expect its exit status (None: any)."""
    done = subprocess.run(
        [FERRY, *arguments], capture_output=True, text=True, env=ENVIRONMENT, timeout=300, **options
    )
    if status is not None:
        shown = " ".join(map(str, ("ferry", *arguments)))
        assert done.returncode == status, f"{shown}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def ferry_json(*arguments, **options):
    """What the command prints for --json."""
    return json.loads(ferry(*arguments, "--json", **options).stdout)


def native_fixtures() -> list[str]:
    """The native model types that have a fixture and are exported whole."""
    parted = {"image-text-to-text", "audio-text-to-text"}
    return [
        family["model_type"]
        for family in ferry_json("models")
        if (ARCHIVES / f"{family['model_type']}.tar.xz").exists() and not parted & set(family["tasks"])
    ]


def plugin_example() -> str:
    """The plug-in of docs/extending.md."""
    page = (ROOT / "docs/extending.md").read_text()
    return re.search(r"(?ms)^```c\n(#include <ferry/plugin.h>.*?)^```", page).group(1)


def build_plugin(source: str, library: Path, language: str = "c") -> Path:
    command = ["cc", "-std=c17"] if language == "c" else ["g++", "-std=c++17"]
    command += ["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command += ["-I", ROOT / "include", "-o", library, "-x", language, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def complete_fixtures() -> None:
    """Marian's save_pretrained leaves out the tables of positions. Those that the recorded outputs were computed
    with are random, and only in the traced program: put them into the checkpoint, where eager reads them too."""
    directory = FIXTURES / "marian"
    folder = "model/data/weights"
    weights = load_file(directory / "model.safetensors")
    with zipfile.ZipFile(directory / "model.pt2") as archive:
        config = json.loads(archive.read(f"{folder}/model_weights_config.json"))["config"]
        for name, entry in config.items():
            if not name.endswith("embed_positions.weight"):
                continue
            sizes = [size["as_int"] for size in entry["tensor_meta"]["sizes"]]
            data = archive.read(f"{folder}/{entry['path_name']}")
            weights[name] = np.frombuffer(data, np.float32).reshape(sizes)
    save_file(weights, directory / "model.safetensors", {"format": "pt"})


def write_tokenizer(directory: Path) -> None:
    """A small byte-level tokenizer.json."""
    alphabet = "".join(map(chr, [*range(33, 127), *range(161, 173), *range(174, 324)]))
    whole = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "vocab": {c: i for i, c in enumerate(alphabet)}, "merges": []}
    start = {"id": 256, "content": "<s>", "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": True}  # fmt: skip
    one = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    template = {"type": "TemplateProcessing", "single": one, "pair": [*one, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}}  # fmt: skip
    parts = {"added_tokens": [start], "pre_tokenizer": whole, "post_processor": template, "decoder": whole}
    (directory / "tokenizer.json").write_text(json.dumps({**parts, "model": model}))


def write_png(path: Path, width: int, height: int) -> None:
    """A picture of colors that run into each other."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], -1).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def write_vision_model(source: Path, directory: Path) -> None:
    """A checkpoint with a tokenizer, which has a token for images, and a processor."""
    directory.mkdir()
    write_tokenizer(directory)
    tokenizer = json.loads((directory / "tokenizer.json").read_text())
    image = {**tokenizer["added_tokens"][0], "id": 257, "content": "<image>"}
    tokenizer["added_tokens"].append(image)
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((source / "config.json").read_text())
    config["image_token_index"] = 257
    config["text_config"]["vocab_size"] = 258
    (directory / "config.json").write_text(json.dumps(config))
    weights = load_file(source / "model.safetensors")
    for name in weights:
        if name.endswith(("embed_tokens.weight", "lm_head.weight")):
            weights[name] = np.resize(weights[name], (258, weights[name].shape[1]))
    save_file(weights, directory / "model.safetensors")
    size = config["vision_config"]["image_size"]
    image = {"image_processor_type": "CLIPImageProcessor", "size": size, "crop_size": size}
    whole = {"processor_class": "LlavaProcessor", "patch_size": config["vision_config"]["patch_size"]}
    whole |= {"image_processor": image, "num_additional_image_tokens": 1}
    whole |= {"vision_feature_select_strategy": "default", "image_token": "<image>"}
    (directory / "processor_config.json").write_text(json.dumps(whole))


def compare(actual: dict, expected: dict, tolerance: float = TOLERANCE) -> None:
    """Every expected output is there, with its shape, and as close as the scale allows."""
    missing = sorted(set(expected) - set(actual))
    assert not missing, f"missing outputs: {missing}; found {sorted(actual)}"
    for name, wanted in expected.items():
        found = np.asarray(actual[name])
        assert found.shape == wanted.shape, f"{name}: {found.shape}, expected {wanted.shape}"
        if wanted.size == 0:
            continue
        found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        finite = np.isfinite(wanted)
        assert np.array_equal(found[~finite], wanted[~finite], equal_nan=True), f"{name}: other infinities"
        assert np.isfinite(found[finite]).all(), f"{name}: not finite"
        difference = np.abs(found[finite] - wanted[finite]).max(initial=0)
        bound = tolerance * np.abs(wanted)[finite].max(initial=1.0)
        assert difference <= bound, f"{name}: differs by {difference:.3g}, allowed {bound:.3g}"


def run_onnxruntime(model: Path, inputs: dict) -> dict:
    """Outputs by the names of the model's keywords, from the Python package, independent of ferry."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = {port.name: inputs[port.name.removeprefix("input.")] for port in session.get_inputs()}
    names = [port.name.removeprefix("output.") for port in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds)))


def run_ferry(directory: Path, inputs: Path, output: Path, runtime: str) -> dict:
    ferry("run", directory, "--inputs", inputs, "-o", output, "--runtime", runtime)
    return load_file(output)
