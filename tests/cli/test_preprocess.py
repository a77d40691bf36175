"""ferry preprocess: images and sounds to inputs of a model, on the command line."""

import json
import struct
import wave
import zlib

import numpy as np
import pytest
from safetensors.numpy import load_file
from support import ferry, write_png, write_tokenizer


@pytest.fixture
def model(tmp_path):
    write_tokenizer(tmp_path)
    image = {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 8}, "crop_size": {"height": 8, "width": 8}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(image))
    prompt = {"processor_class": "LlavaProcessor", "patch_size": 4, "vision_feature_select_strategy": "default",
              "num_additional_image_tokens": 1, "image_token": "@"}  # fmt: skip
    (tmp_path / "processor_config.json").write_text(json.dumps(prompt))
    write_png(tmp_path / "cat.png", 20, 12)
    return tmp_path


def test_writes_and_describes_inputs(model, tmp_path):
    done = ferry("preprocess", model, model / "cat.png", model / "cat.png", "-o", tmp_path / "in.safetensors")
    assert done.stdout == "pixel_values: float32[2, 3, 8, 8]\n"
    assert load_file(tmp_path / "in.safetensors")["pixel_values"].shape == (2, 3, 8, 8)


def test_encodes_a_prompt(model, tmp_path):
    ferry("preprocess", model, model / "cat.png", "--prompt", "A @B", "-o", tmp_path / "in.npz")
    found = np.load(tmp_path / "in.npz")
    at = ord("@") - 33
    assert found["input_ids"].tolist() == [[256, 32, 220, at, at, at, at, 33]]
    assert found["attention_mask"].tolist() == [[1] * 8]
    ferry("preprocess", model, model / "cat.png", "--prompt", "@", "--no-special", "-o", tmp_path / "in.npz")
    assert np.load(tmp_path / "in.npz")["input_ids"].tolist() == [[at] * 4]
    assert ferry("preprocess", model, model / "cat.png", "--prompt", "a@b", "--render").stdout == "a@@@@b"


def test_takes_sounds(tmp_path):
    audio = {"feature_extractor_type": "WhisperFeatureExtractor", "chunk_length": 1}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(audio))
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(1000))
    assert ferry("preprocess", tmp_path, tmp_path / "a.wav").stdout == "input_features: float32[1, 80, 100]\n"


def test_says_what_is_wrong(model, tmp_path):
    cat = model / "cat.png"
    assert "expected DIR FILE..." in ferry("preprocess", model, status=2).stderr
    assert "--prompt" in ferry("preprocess", model, cat, "--render", status=2).stderr
    assert "has fewer places" in ferry("preprocess", model, cat, "--prompt", "none", status=2).stderr
    assert "has more places" in ferry("preprocess", model, cat, "--prompt", "@@", status=2).stderr
    (model / "bad.png").write_bytes(cat.read_bytes()[:60])
    found = ferry("preprocess", model, model / "bad.png", status=5).stderr
    assert "bad.png" in found and "the PNG is damaged" in found
    (model / "text.txt").write_text("text")
    assert "is no PNG, no JPEG and no WAV file" in ferry("preprocess", model, model / "text.txt", status=6).stderr
    (model / "huge.png").write_bytes(cat.read_bytes()[:16] + header(60000, 60000) + cat.read_bytes()[33:])
    assert "60000 x 60000 pixels" in ferry("preprocess", model, model / "huge.png", status=6).stderr
    (tmp_path / "empty").mkdir()
    assert "has no processor_config.json" in ferry("preprocess", tmp_path / "empty", cat, status=3).stderr


def header(width, height):
    data = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return data + struct.pack(">I", zlib.crc32(b"IHDR" + data))
