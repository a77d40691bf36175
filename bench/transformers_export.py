"""Export a checkpoint with an exporter of Transformers.

    transformers_export.py CHECKPOINT DIRECTORY [--to onnx|openvino|dynamo|executorch] [--generation] [--static]

Shapes are dynamic. With --generation the model is split into prefill and decode, with --static as well decode
takes any number of tokens and a cache of fixed size, as the documentation of the exporters has it for loops. The exporter to ExecuTorch bounds
sizes by four times those of the sample, which is long enough there for what executorch_speed.py runs.
"""

import argparse

import torch
import transformers
from transformers import exporters

parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
parser.add_argument("checkpoint")
parser.add_argument("directory")
parser.add_argument("--to", choices=["onnx", "openvino", "dynamo", "executorch"], default="onnx")
parser.add_argument("--generation", action="store_true")
parser.add_argument("--static", action="store_true")
args = parser.parse_args()

config = transformers.AutoConfig.from_pretrained(args.checkpoint)
model = getattr(transformers, config.architectures[0]).from_pretrained(args.checkpoint, dtype=torch.float32).eval()
generator = torch.Generator().manual_seed(0)
length = 40 if args.to == "executorch" else 7
ids = torch.randint(4, config.vocab_size, (2, length), generator=generator)
inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
name = {"onnx": "Onnx", "openvino": "OpenVINO", "dynamo": "Dynamo", "executorch": "Executorch"}[args.to]
exporter = getattr(exporters, f"{name}Exporter")()
options = getattr(exporters, f"{name}Config")(dynamic=True)
export = exporter.export_for_generation if args.generation else exporter.export
loop = {}
if args.static:
    generation = transformers.GenerationConfig(cache_implementation="static", max_cache_len=2048)
    loop = {"generation_config": generation, "multi_token_decode": True}
export(model, inputs, config=options, **loop).save_pretrained(args.directory)
