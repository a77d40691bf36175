"""Write what eager multimodal models generate: OUTDIR/NAME holds inputs with images or audio, of the
fixtures and of models made here, and the tokens that greedy generation and beam search make of them. Where
the model is made here, OUTDIR/NAME/model holds it.

    make_merged.py FIXTURES OUTDIR [CASE...]
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import checkpoints
import make_multimodal
import torch
import transformers
from safetensors.torch import load_file, save_file

NEW_TOKENS = 16
BEAMS = 3
SEARCHED = ("gemma3-windows", "qwen3_vl-sizes")  # also with beams
IMAGE, VIDEO, AUDIO = 50, 51, 52
FIXTURES = ("llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3", "paligemma", "idefics3", "smolvlm")


def generate(model, inputs: dict, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    options = dict(min_new_tokens=NEW_TOKENS, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)
    save_file({name: value.contiguous() for name, value in inputs.items()}, output / "inputs.safetensors")
    with torch.no_grad():
        found = {"greedy": model.generate(**inputs, **options, num_beams=1)}
        if output.name in SEARCHED:
            found["beams"] = model.generate(**inputs, **options, num_beams=BEAMS).contiguous()
    save_file(found, output / "expected.safetensors")


def text_only() -> dict:
    """Two prompts of different lengths, padded on the left."""
    ids = torch.randint(20, 100, (2, 7), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def padded(inputs: dict) -> dict:
    """Row N with N tokens of padding on the left, and text at the end up to the same length."""
    text = {"input_ids": 21, "attention_mask": 1, "token_type_ids": 0, "mm_token_type_ids": 0}
    parts = dict(inputs)
    for name, token in text.items():
        if name not in inputs:
            continue
        last = len(inputs[name]) - 1
        rows = [
            torch.nn.functional.pad(torch.nn.functional.pad(line, (row, 0)), (0, last - row), value=token)
            for row, line in enumerate(inputs[name])
        ]
        parts[name] = torch.stack(rows)
    return parts


def load(directory: Path):
    config = transformers.AutoConfig.from_pretrained(directory)
    return getattr(transformers, config.architectures[0]).from_pretrained(directory).eval()


def fixture_cases(fixtures: Path, output: Path) -> None:
    for name in FIXTURES:
        model = load(fixtures / name)
        for run in ("inputs", "second_inputs"):
            inputs = load_file(fixtures / name / f"{run}.safetensors")
            generate(model, inputs, output / f"{name}-{run}")
        generate(model, padded(inputs), output / f"{name}-padded")
        generate(model, text_only(), output / f"{name}-text")


@dataclass
class Case:
    """A model made here, and its inputs."""

    model_type: str
    inputs: object  # from the model's configuration to a dictionary
    text: dict = field(default_factory=dict)  # on top of the small configurations
    tower: dict = field(default_factory=dict)
    config: dict = field(default_factory=dict)
    text_type: str = ""
    edit_config: object = None  # from and to a dictionary
    edit_weights: object = None  # from and to a dictionary of tensors


def prompt(rows, **more) -> dict:
    ids = torch.tensor(rows)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **more}


def image_types(rows, token=IMAGE) -> torch.Tensor:
    return (torch.tensor(rows) == token).long()


def images_of_sizes(config):
    """Two images of different sizes in a row, and one in another."""
    grids = torch.tensor([[1, 4, 6], [1, 2, 2], [1, 8, 4]])
    size = 3 * config.vision_config.temporal_patch_size * config.vision_config.patch_size**2
    rows = [[21, *[IMAGE] * 6, 22, IMAGE, 23, 24], [21, 22, *[IMAGE] * 8, 25]]
    return prompt(
        rows,
        pixel_values=torch.randn(int(grids.prod(-1).sum()), size),
        image_grid_thw=grids,
        mm_token_type_ids=image_types(rows).int(),
    )


def video(config):
    """A video besides an image; each frame behind a timestamp, where the model wants that."""
    own = config.vision_config
    size = 3 * own.temporal_patch_size * own.patch_size**2
    frames = [VIDEO] * 4
    inner = [*frames, 27, *frames] if config.model_type == "qwen3_vl" else frames * 2
    rows = [[21, *inner, 22, IMAGE, 23]]
    types = image_types(rows) + 2 * image_types(rows, VIDEO)
    more = {"second_per_grid_ts": torch.tensor([1.5])} if config.model_type == "qwen2_5_vl" else {}
    return prompt(
        rows,
        pixel_values=torch.randn(4, size),
        image_grid_thw=torch.tensor([[1, 2, 2]]),
        pixel_values_videos=torch.randn(32, size),
        video_grid_thw=torch.tensor([[2, 4, 4]]),
        mm_token_type_ids=types.int(),
        **more,
    )


def audio(config):
    """Pieces of different lengths, the rest of which is silence."""
    frames = 2 * config.audio_config.max_source_positions
    lengths = torch.tensor([frames, frames - 9])
    mask = (torch.arange(frames)[None] < lengths[:, None]).long()
    counts = [((n - 1) // 2 + 1 - 2) // 2 + 1 for n in lengths.tolist()]
    rows = [[21, *[AUDIO] * counts[0], 22, 23], [21, *[AUDIO] * counts[1], *[24] * (counts[0] - counts[1]), 22, 23]]
    return prompt(rows, input_features=torch.randn(2, 10, frames), feature_attention_mask=mask)


def images_and_gaps(config):
    """Two images in one row, one in the other, and images of which a part is padding."""
    pixels = torch.randn(2, 2, 3, 32, 32)
    pixels[1, 1] = 0
    mask = torch.ones(2, 2, 32, 32, dtype=torch.long)
    mask[0, 0, :, 24:] = 0
    tokens = [IMAGE] * ((32 // 8) ** 2 // config.scale_factor**2)
    rows = [[21, *tokens, 22, *tokens, 23], [21, *tokens, *[24] * len(tokens), 25, 26]]
    return prompt(rows, pixel_values=pixels, pixel_attention_mask=mask)


def two_images(tokens):
    """Two images of `tokens` tokens, with text between."""

    def make(config):
        rows = [[21, *[IMAGE] * tokens, 22, *[IMAGE] * tokens, 23, 24, 25]]
        return prompt(rows, pixel_values=torch.randn(2, 3, 32, 32), token_type_ids=image_types(rows))

    return make


def prefix_and_suffix(config):
    rows = [[*[IMAGE] * 16, 21, 22, 23, 24, 25]]
    return prompt(
        rows,
        pixel_values=torch.randn(1, 3, 32, 32),
        token_type_ids=torch.tensor([[0] * 18 + [1] * 3]),
    )


def one_image(config):
    return prompt([[21, *[IMAGE] * 16, 22]], pixel_values=torch.randn(1, 3, 32, 32))


def flat(config: dict) -> dict:
    text = config.pop("text_config")
    return {**text, **config, "rope_scaling": {"type": "mrope", "mrope_section": [2, 2, 2]}}


def sparse(config: dict) -> dict:
    """Without what the class has anyway."""
    text = config["text_config"]
    for key in ("head_dim", "hidden_act", "num_key_value_heads", "rope_parameters", "use_cache"):
        text.pop(key, None)
    return config


def renamed(*pairs):
    def edit(weights):
        out = {}
        for name, value in weights.items():
            for old, new in pairs:
                if name.startswith(old):
                    name = new + name[len(old) :]
                    break
            out[name] = value
        return out

    return edit


# save_pretrained writes the names of early releases; those of the modules are read, too.
NEW_LLAVA = renamed(
    ("language_model.model.", "model.language_model."),
    ("language_model.lm_head.", "lm_head."),
    ("vision_tower.", "model.vision_tower."),
    ("multi_modal_projector.", "model.multi_modal_projector."),
)
NEW_QWEN = renamed(("visual.", "model.visual."), ("model.", "model.language_model."))
WINDOWS = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 5, "num_hidden_layers": 2}
LAYERS = {"num_hidden_layers": 2}
CASES = {
    "llava-mistral": Case("llava", one_image, text_type="mistral", text=LAYERS | {"sliding_window": 6}),
    "llava-sparse": Case("llava", one_image, edit_config=sparse, text={"head_dim": None, "num_key_value_heads": 2}),
    "llava-layers": Case("llava", one_image, config={"vision_feature_layer": [-1, 1]}),
    "llava-tied": Case("llava", one_image, config={"tie_word_embeddings": True}),
    "llava-modules": Case("llava", one_image, edit_weights=NEW_LLAVA),
    "gemma3-windows": Case("gemma3", two_images(4), text=WINDOWS, config={"tie_word_embeddings": False}),
    "paligemma-2": Case("paligemma", prefix_and_suffix, text_type="gemma2", text=WINDOWS),
    "smolvlm-gaps": Case("smolvlm", images_and_gaps, text=LAYERS),
    "idefics3-gaps": Case("idefics3", images_and_gaps),
    "qwen2_vl-sizes": Case("qwen2_vl", images_of_sizes, text=LAYERS, edit_weights=NEW_QWEN),
    "qwen2_vl-flat": Case("qwen2_vl", video, edit_config=flat, text=LAYERS),
    "qwen2_5_vl-sizes": Case("qwen2_5_vl", images_of_sizes, tower={"tokens_per_second": 3}),
    "qwen2_5_vl-video": Case("qwen2_5_vl", video, tower={"tokens_per_second": 3}),
    "qwen3_vl-sizes": Case("qwen3_vl", images_of_sizes, text={"num_hidden_layers": 3}),
    "qwen3_vl-video": Case("qwen3_vl", video, text={"num_hidden_layers": 3}),
    "qwen2_audio-lengths": Case("qwen2_audio", audio, text=LAYERS),
}  # fmt: skip


def make_model(case: Case, directory: Path):
    prefix, tower_type, tower, more = make_multimodal.MODELS[case.model_type]
    cls = getattr(transformers, f"{prefix}ForConditionalGeneration")
    text = {**make_multimodal.TEXT, **case.text}
    kinds = {"llava": "llama", "smolvlm": "llama", "idefics3": "llama", "paligemma": "gemma", "qwen2_audio": "qwen2"}
    if case.text_type or case.model_type in kinds:
        text["model_type"] = case.text_type or kinds[case.model_type]
    if case.model_type.endswith("_vl"):
        text["rope_parameters"] = make_multimodal.MROPE
    part = "audio_config" if case.model_type == "qwen2_audio" else "vision_config"
    tokens = {"image_token_id": IMAGE, "video_token_id": VIDEO}
    if case.model_type in ("llava", "gemma3", "paligemma"):
        tokens = {"image_token_index": IMAGE}
    if case.model_type == "qwen2_audio":
        tokens = {"audio_token_index": AUDIO}
    own = {"text_config": text, part: {"model_type": tower_type, **tower, **case.tower}}
    model = cls(cls.config_class(**own, **more, **tokens, **case.config))
    checkpoints.randomize(model)
    model.save_pretrained(directory)
    if case.edit_config:
        checkpoints.edit_config(directory, {}, case.edit_config)
    if case.edit_weights:
        checkpoints.edit_weights(directory, case.edit_weights)
    return cls.from_pretrained(directory).eval()


def made_cases(output: Path, wanted: list) -> None:
    for name, case in CASES.items():
        if wanted and name not in wanted:
            continue
        directory = output / name
        (directory / "model").mkdir(parents=True, exist_ok=True)
        torch.manual_seed(3)
        model = make_model(case, directory / "model")
        generate(model, case.inputs(model.config), directory)


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if not sys.argv[3:]:
        fixture_cases(Path(sys.argv[1]), Path(sys.argv[2]))
    made_cases(Path(sys.argv[2]), sys.argv[3:])
