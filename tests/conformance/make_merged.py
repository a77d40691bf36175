"""Write what eager multimodal models generate: OUTDIR/NAME holds inputs with images or audio, of the
fixtures and of models made here, and the tokens that greedy generation makes of them. Where the model is
made here, OUTDIR/NAME/model holds it.

    make_merged.py FIXTURES OUTDIR
"""

import sys
from pathlib import Path

import make_multimodal
import torch
import transformers
from safetensors.torch import load_file, save_file

NEW_TOKENS = 16
FIXTURES = ("llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "gemma3", "paligemma", "idefics3", "smolvlm")


def generate(model, inputs: dict, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    options = dict(min_new_tokens=NEW_TOKENS, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)
    with torch.no_grad():
        greedy = model.generate(**inputs, **options, num_beams=1)
    save_file({**{name: value.contiguous() for name, value in inputs.items()}, "greedy": greedy},
              output / "inputs.safetensors")  # fmt: skip


def text_only(inputs: dict) -> dict:
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
        generate(model, text_only(inputs), output / f"{name}-text")


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    fixture_cases(Path(sys.argv[1]), Path(sys.argv[2]))
