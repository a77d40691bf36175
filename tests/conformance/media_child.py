"""Run the processors of Transformers: media_child.py DIRECTORY.

For every case, DIRECTORY/CASE gets the processor as Transformers saves it, and expected.safetensors with what
it makes of the case's files, which are in DIRECTORY. DIRECTORY/cases.json tells what was done.
"""

import json
import sys
import wave
from pathlib import Path

import torch

# torchvision's own operators are for CUDA here, and not loaded; none is used, but two must be known.
LIBRARY = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import numpy as np  # noqa: E402
import soxr  # noqa: E402
import transformers  # noqa: E402
from PIL import Image  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402
from transformers.image_utils import load_image  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support import write_tokenizer  # noqa: E402

SPECIAL = {
    "image_token": "<image>", "boi_token": "<boi>", "eoi_token": "<eoi>", "fake_image_token": "<fake_token_around_image>",
    "global_image_token": "<global-img>", "audio_token": "<|AUDIO|>", "video_token": "<video>",
}  # fmt: skip


def picture(width: int, height: int, seed: int) -> np.ndarray:
    """Smooth colors with edges and noise."""
    generator = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    waves = [128 + 100 * np.sin(x / (7 + 5 * c) + seed) * np.cos(y / (11 + 3 * c)) for c in range(3)]
    image = np.stack(waves, -1) + generator.normal(0, 12, (height, width, 3))
    image[height // 3 : height // 2, width // 4 : width // 2] = [250, 5, 120]
    return image.clip(0, 255).astype(np.uint8)


def write_images(directory: Path) -> None:
    for name, width, height in (("small", 61, 47), ("wide", 640, 213), ("tall", 150, 401), ("square", 336, 336), ("big", 1500, 1100)):
        Image.fromarray(picture(width, height, width)).save(directory / f"{name}.png")
    photo = Image.fromarray(picture(500, 375, 5))
    photo.save(directory / "photo.jpg", quality=90)
    photo.save(directory / "progressive.jpg", quality=80, progressive=True, subsampling=1)
    photo.convert("L").save(directory / "gray.jpg")
    photo.convert("CMYK").save(directory / "cmyk.jpg", quality=95)
    for turn in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = turn
        photo.resize((80, 50)).save(directory / f"turn{turn}.jpg", exif=exif, quality=95)
    small = photo.resize((90, 70))
    small.convert("L").save(directory / "gray.png")
    small.convert("P").save(directory / "palette.png")
    small.convert("1").save(directory / "bits.png")
    alpha = np.dstack([np.asarray(small), np.tile(np.arange(90, dtype=np.uint8) * 2, (70, 1))])
    Image.fromarray(alpha, "RGBA").save(directory / "alpha.png")
    small.convert("LA").save(directory / "gray_alpha.png")
    exif = Image.Exif()
    exif[0x112] = 6
    small.save(directory / "turned.png", exif=exif)


IMAGES = {
    "formats": ["photo.jpg", "progressive.jpg", "gray.jpg", "cmyk.jpg", *(f"turn{i}.jpg" for i in range(1, 9)),
                "gray.png", "palette.png", "bits.png", "alpha.png", "gray_alpha.png", "turned.png"],
}  # fmt: skip


def sound(seconds: float, rate: int, channels: int = 1) -> np.ndarray:
    time = np.arange(int(seconds * rate)) / rate
    tones = [np.sin(2 * np.pi * (220 + 60 * c) * time * (1 + time / 9)) * 0.4 for c in range(channels)]
    noise = np.random.default_rng(channels).normal(0, 0.02, (len(time), channels))
    return (np.stack(tones, -1) * np.exp(-time / 4)[:, None] + noise).clip(-1, 1)


def write_wav(path: Path, samples: np.ndarray, rate: int, width: int) -> np.ndarray:
    """PCM of `width` bytes; returns what a reader gets."""
    scale = 2 ** (8 * width - 1)
    whole = np.clip(np.round(samples * scale), -scale, scale - 1).astype(np.int64)
    stored = whole + 128 if width == 1 else whole
    data = stored.astype("<i8").reshape(-1, 1).view(np.uint8)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(data)
    return (whole / scale).astype(np.float32)


def write_float_wav(path: Path, samples: np.ndarray, rate: int, width: int) -> np.ndarray:
    data = samples.astype(f"<f{width}").tobytes()
    channels, frame = samples.shape[1], samples.shape[1] * width
    number = lambda value, size: int(value).to_bytes(size, "little")  # noqa: E731
    # "extensible", with a chunk before it that is to be skipped
    form = number(0xFFFE, 2) + number(channels, 2) + number(rate, 4) + number(rate * frame, 4) + number(frame, 2)
    form += number(8 * width, 2) + number(22, 2) + number(8 * width, 2) + number(0, 4) + number(3, 2) + bytes(14)
    chunks = b"LIST" + number(3, 4) + b"abc\0" + b"fmt " + number(len(form), 4) + form + b"data" + number(len(data), 4) + data
    path.write_bytes(b"RIFF" + number(len(chunks) + 4, 4) + b"WAVE" + chunks)
    return samples.astype(f"<f{width}").astype(np.float32)


def write_sounds(directory: Path) -> dict[str, np.ndarray]:
    """The files; returns their samples at 16 kHz."""
    files = {}
    for name, seconds, rate, channels, width in (
        ("speech", 3.7, 16000, 1, 2), ("stereo", 2.0, 44100, 2, 2), ("low", 1.3, 8000, 1, 1), ("studio", 1.0, 48000, 2, 3),
        ("fine", 0.5, 22050, 1, 4), ("long", 31.0, 16000, 1, 2),
    ):  # fmt: skip
        files[name] = rate, write_wav(directory / f"{name}.wav", sound(seconds, rate, channels), rate, width)
    files["real"] = 24000, write_float_wav(directory / "real.wav", sound(0.7, 24000, 2), 24000, 4)
    files["double"] = 16000, write_float_wav(directory / "double.wav", sound(0.4, 16000), 16000, 8)
    resampled = {}
    for name, (rate, samples) in files.items():
        mono = samples.mean(axis=1) if samples.shape[1] > 1 else samples[:, 0]
        resampled[name] = soxr.resample(mono, rate, 16000, quality="soxr_hq") if rate != 16000 else mono
        wanted = -(-len(mono) * 16000 // rate)
        resampled[name] = np.pad(resampled[name], (0, max(0, wanted - len(resampled[name]))))[:wanted]
    return resampled


def tokenizer(directory: Path):
    write_tokenizer(directory)
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(directory / "tokenizer.json"), bos_token="<s>", extra_special_tokens=dict(SPECIAL)
    )
    made.add_tokens([f"<row_{i}_col_{j}>" for i in range(1, 7) for j in range(1, 7)], special_tokens=True)
    return made


def image_cases():
    T = transformers
    square = {"height": 56, "width": 56}
    return {
        "clip": (T.CLIPImageProcessor(size={"shortest_edge": 64}, crop_size=square), ["small", "wide", "tall", "photo.jpg"]),
        "clip_pads": (T.CLIPImageProcessor(size={"shortest_edge": 30}, crop_size={"height": 77, "width": 51}), ["small", "wide"]),
        "clip_numbers": (T.CLIPImageProcessor(size=48, crop_size=40), ["wide", "tall"]),
        "clip_only_rescales": (T.CLIPImageProcessor(size={"shortest_edge": 40}, crop_size=32, do_normalize=False), ["small"]),
        "clip_only_normalizes": (T.CLIPImageProcessor(size={"shortest_edge": 40}, crop_size=32, do_rescale=False), ["small"]),
        "clip_as_it_is": (T.CLIPImageProcessor(do_resize=False, do_center_crop=False), ["square"]),
        "formats": (T.CLIPImageProcessor(size=square, do_center_crop=False, do_normalize=False), IMAGES["formats"]),
        "siglip": (T.SiglipImageProcessor(size={"height": 80, "width": 64}), ["small", "wide", "big"]),
        "vit": (T.ViTImageProcessor(size=square), ["small", "tall", "big"]),
        "vit_lanczos": (T.ViTImageProcessor(size={"height": 90, "width": 350}, resample=1), ["small", "tall"]),
        "vit_both_edges": (T.ViTImageProcessor(size={"shortest_edge": 40, "longest_edge": 90}), ["wide"]),
        "vit_largest": (T.ViTImageProcessor(size={"max_height": 40, "max_width": 90}), ["tall"]),
        "dinov2": (T.BitImageProcessor(size={"shortest_edge": 70}, crop_size=square), ["small", "wide", "photo.jpg"]),
        "llava_pads": (T.LlavaImageProcessor(size={"shortest_edge": 64}, crop_size=square, do_pad=True), ["small", "wide", "tall"]),
        "gemma3": (T.Gemma3ImageProcessor(size=square), ["small", "wide"]),
        "qwen2_vl": (T.Qwen2VLImageProcessor(), ["small", "wide", "tall"]),
        "qwen2_vl_large": (T.Qwen2VLImageProcessor(min_pixels=3136, max_pixels=50000), ["big", "photo.jpg"]),
        "qwen3_vl": (T.Qwen2VLImageProcessor(patch_size=16, image_mean=[0.5] * 3, image_std=[0.5] * 3), ["small", "wide"]),
        "idefics3": (T.Idefics3ImageProcessor(size={"longest_edge": 200}, max_image_size={"longest_edge": 64}), ["small", "wide", "tall"]),
        "idefics3_whole": (T.Idefics3ImageProcessor(do_image_splitting=False, max_image_size={"longest_edge": 64}), ["wide", "tall"]),
        "smolvlm": (T.SmolVLMImageProcessor(size={"longest_edge": 64}, max_image_size={"longest_edge": 64}), ["small", "square"]),
    }  # fmt: skip


def prompt_cases(text):
    T = transformers
    square = {"height": 56, "width": 56}
    clip = T.CLIPImageProcessor(size={"shortest_edge": 56}, crop_size=square)
    llava = {"image_processor": clip, "tokenizer": text, "patch_size": 14}
    seq = T.SiglipImageProcessor(size=square)
    seq.image_seq_length = 9
    tiles = {"size": {"longest_edge": 200}, "max_image_size": {"longest_edge": 64}}
    qwen = T.Qwen2VLImageProcessor(max_pixels=50000)
    video = T.Qwen2VLVideoProcessor()
    return {
        "llava": (T.LlavaProcessor(**llava, vision_feature_select_strategy="default", num_additional_image_tokens=1),
                  ["small", "wide"], "USER: <image> and <image>\nWhat? ASSISTANT:"),
        "llava_full": (T.LlavaProcessor(**llava, vision_feature_select_strategy="full"), ["small"], "<image>é"),
        "paligemma": (T.PaliGemmaProcessor(seq, text), ["small"], "<image>caption en"),
        "paligemma_bare": (T.PaliGemmaProcessor(seq, text), ["small"], "caption en"),
        "gemma3": (T.Gemma3Processor(T.Gemma3ImageProcessor(size=square), text, image_seq_length=4), ["small", "tall"],
                   "<boi> a <boi> b"),
        "qwen2_vl": (T.Qwen2VLProcessor(qwen, text, video), ["small", "wide"],
                     "<|im_start|>user\n<|vision_start|><image><|vision_end|>x<|vision_start|><image><|vision_end|>"),
        "qwen2_5_vl": (T.Qwen2_5_VLProcessor(qwen, text, video), ["big"], "a<image>b"),
        "qwen3_vl": (T.Qwen3VLProcessor(T.Qwen2VLImageProcessor(patch_size=16), text, T.Qwen3VLVideoProcessor()), ["photo.jpg"], "<image>"),
        "idefics3": (T.Idefics3Processor(T.Idefics3ImageProcessor(**tiles), text, image_seq_len=5), ["small", "wide", "tall"],
                     "<image>one<image> two <image>"),
        "smolvlm": (T.SmolVLMProcessor(T.SmolVLMImageProcessor(size={"longest_edge": 64}, max_image_size={"longest_edge": 64}), text,
                                       T.SmolVLMVideoProcessor(), image_seq_len=5), ["small"], "User:<image>What?"),
    }  # fmt: skip


def arrays(batch) -> dict[str, np.ndarray]:
    return {name: np.ascontiguousarray(torch.as_tensor(np.asarray(value)).numpy()) for name, value in batch.items()}


def main(directory: Path) -> None:
    cases = {}
    write_images(directory)
    sounds = write_sounds(directory)
    text_directory = directory / "tokenizer"
    text_directory.mkdir()
    text = tokenizer(text_directory)

    def finish(name: str, processor, outputs, files: list[str], prompt: str | None = None) -> None:
        processor.save_pretrained(directory / name)
        save_file(arrays(outputs), directory / name / "expected.safetensors")
        cases[name] = {"files": files, "prompt": prompt}

    def load(names: list[str]):
        files = [name if "." in name else f"{name}.png" for name in names]
        return files, [load_image(str(directory / file)) for file in files]

    for name, (processor, names) in image_cases().items():
        assert processor.backend == "torchvision"
        files, images = load(names)
        finish(f"image_{name}", processor, processor(images, return_tensors="pt"), files)
    for name, (processor, names, prompt) in prompt_cases(text).items():
        files, images = load(names)
        many = images if name != "paligemma_bare" else images[0]
        finish(f"prompt_{name}", processor, processor(images=many, text=prompt, return_tensors="pt"), files, prompt)

    whisper = transformers.WhisperFeatureExtractor()
    large = transformers.WhisperFeatureExtractor(feature_size=128, chunk_length=2, return_attention_mask=True)
    names = ["speech", "stereo", "low", "studio", "fine", "real", "double", "long"]
    for case, extractor in (("audio_whisper", whisper), ("audio_large", large)):
        waves = [sounds[name] for name in names]
        outputs = extractor(waves, sampling_rate=16000, return_tensors="np", return_attention_mask=extractor.return_attention_mask)
        finish(case, extractor, outputs, [f"{name}.wav" for name in names])
    audio = transformers.Qwen2AudioProcessor(transformers.WhisperFeatureExtractor(feature_size=128), text)
    prompt = "Audio 1: <|audio_bos|><|AUDIO|><|audio_eos|>\nAudio 2: <|AUDIO|>What?"
    waves = [sounds["speech"], sounds["low"]]
    finish("prompt_qwen2_audio", audio, audio(text=prompt, audio=waves, sampling_rate=16000, return_tensors="pt"),
           ["speech.wav", "low.wav"], prompt)  # fmt: skip
    (directory / "cases.json").write_text(json.dumps(cases))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
