"""Write the generation splits that the Dynamo exporter of Transformers traces, of types that ferry has no family
for, with what the eager models generate:  make_splits.py OUTDIR

OUTDIR/TYPE/split has the programs; OUTDIR/TYPE/eager.safetensors two prompts, once as they are and once the first
one shorter and padded, and the greedy sequences behind them: "whole" and "padded".
"""

import sys
from pathlib import Path

import checkpoints
import torch
import transformers
from safetensors.torch import save_file
from transformers import exporters

NEW_TOKENS = 12
LENGTH, SHORT = 9, 5
SMALL = dict(vocab_size=99, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)  # fmt: skip
MODELS = {
    # Keys and values that grow, and a mask over them that was never shorter than three entries.
    "apertus": ("Apertus", SMALL),
    # States besides, one of them with a size that was four and is not known to stay so.
    "bamba": ("Bamba", dict(SMALL, attn_layer_indices=[1], mamba_n_heads=4, mamba_d_head=16, mamba_n_groups=1,
                            mamba_d_state=8)),
    # No cache at all.
    "openai-gpt": ("OpenAIGPT", dict(vocab_size=99, n_embd=32, n_head=4, n_layer=2, n_positions=64)),
}  # fmt: skip


def make(name: str, class_name: str, sizes: dict, directory: Path) -> None:
    torch.manual_seed(0)
    config = getattr(transformers, f"{class_name}Config")(**sizes)
    head = "LMHeadModel" if class_name == "OpenAIGPT" else "ForCausalLM"
    model = getattr(transformers, class_name + head)(config).eval()
    checkpoints.randomize(model)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0, eos_token_id=2)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 99, (2, LENGTH), generator=generator)
    ones, mask = torch.ones_like(ids), torch.ones_like(ids)
    mask[0, : LENGTH - SHORT] = 0
    options = dict(min_new_tokens=NEW_TOKENS, max_new_tokens=NEW_TOKENS, do_sample=False)
    with torch.no_grad():
        whole = model.generate(input_ids=ids, attention_mask=ones, **options)
        padded = model.generate(input_ids=ids * mask, attention_mask=mask, **options)
    exporter, dynamic = exporters.DynamoExporter(), exporters.DynamoConfig(dynamic=True)
    sample = {"input_ids": ids * mask, "attention_mask": mask}
    exporter.export_for_generation(model, sample, config=dynamic).save_pretrained(str(directory / "split"))
    save_file({"input_ids": ids, "attention_mask": mask, "whole": whole, "padded": padded},
              directory / "eager.safetensors")  # fmt: skip


def main(directory: Path) -> None:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for name, (class_name, sizes) in MODELS.items():
        make(name, class_name, sizes, directory / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
