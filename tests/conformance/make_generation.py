"""Write what eager models generate: for each MODEL_TYPE of the fixtures, OUTDIR/MODEL_TYPE.safetensors
with two prompts of different lengths, padded on the left, and the sequences that greedy generation
and beam search make of them.

    make_generation.py FIXTURES OUTDIR MODEL_TYPE...
"""

import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

NEW_TOKENS = 32
LENGTHS = (5, 9)
SEARCHED = ("gpt2", "llama")
BEAMS = {
    "beams": dict(num_beams=4),
    "early": dict(num_beams=3, early_stopping=True),
    "long": dict(num_beams=4, length_penalty=2.0, no_repeat_ngram_size=2),
    "short": dict(num_beams=4, length_penalty=-1.0, eos_token_id=[7, 11, 23, 31, 40, 77]),
    "penalized": dict(num_beams=2, repetition_penalty=1.5, min_new_tokens=6, eos_token_id=list(range(20))),
}


def prompts(vocabulary: int) -> dict:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, vocabulary, (len(LENGTHS), max(LENGTHS)), generator=generator)
    mask = torch.ones_like(ids)
    for row, length in enumerate(LENGTHS):
        mask[row, : max(LENGTHS) - length] = 0
    return {"input_ids": ids * mask, "attention_mask": mask}


def main(fixtures: Path, output: Path, model_types: list) -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for model_type in model_types:
        directory = fixtures / model_type
        config = transformers.AutoConfig.from_pretrained(directory)
        model = getattr(transformers, config.architectures[0]).from_pretrained(directory).eval()
        inputs = prompts(config.get_text_config().vocab_size)
        options = dict(min_new_tokens=NEW_TOKENS, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)
        with torch.no_grad():
            results = {"greedy": model.generate(**inputs, **options, num_beams=1)}
            for name, beams in BEAMS.items() if model_type in SEARCHED else ():
                options = dict(max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0, **beams)
                results[name] = model.generate(**inputs, **options)
        results = {name: tensor.contiguous() for name, tensor in results.items()}
        save_file({**inputs, **results}, output / f"{model_type}.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
