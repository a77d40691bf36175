"""Export a checkpoint with the ONNX exporter of Transformers: transformers_export.py CHECKPOINT DIRECTORY"""

import sys

import torch
import transformers
from transformers.exporters import OnnxConfig, OnnxExporter

checkpoint, directory = sys.argv[1:]
config = transformers.AutoConfig.from_pretrained(checkpoint)
model = getattr(transformers, config.architectures[0]).from_pretrained(checkpoint, dtype=torch.float32).eval()
generator = torch.Generator().manual_seed(0)
ids = torch.randint(4, config.vocab_size, (2, 7), generator=generator)
inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
OnnxExporter().export(model, inputs, config=OnnxConfig(dynamic=True)).save_pretrained(directory)
