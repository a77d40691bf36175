"""What the scripts that write tiny checkpoints with eager outputs share.

Such a script writes DIRECTORY/CASE for each of its cases: config.json and the weights as
save_pretrained leaves them, with the edits of the case; two runs, inputs.safetensors and
expected.safetensors by flattened name, and the same with the prefix second_ at another shape; and
case.json, which says what a test needs to know about the case. Everything depends on the name of
the case alone.
"""

import json
import sys
import zlib
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

RUNS = ("", "second_")


def randomize(model, norms=1, kept=None):
    """Weights large enough that every part of the model shows in its outputs. Those of norms are
    around `norms`; weights with `kept` in their names stay."""
    for name, value in model.state_dict().items():
        if not value.is_floating_point() or (kept and kept in name):
            continue
        value.normal_(0, 0.25)
        if "norm" in name.lower() and name.endswith("weight"):
            value.add_(norms)


def write_config(directory, config):
    (directory / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def edit_config(directory, changes, edit=dict):
    """Change keys of config.json; ... deletes one. Then `edit` the whole dictionary."""
    config = {**json.loads((directory / "config.json").read_text()), **changes}
    write_config(directory, edit({key: value for key, value in config.items() if value is not ...}))


def omit_defaults(directory, config, *others):
    """Leave out of config.json what is the default of the class, and these keys."""
    defaults, kept = type(config)().to_dict(), {"architectures", "model_type"}
    same = {key for key, value in config.to_dict().items() if value == defaults.get(key, ...)}
    edit_config(directory, dict.fromkeys({*same, *others} - kept, ...))


def edit_weights(directory, edit):
    """Put what `edit` makes of the dictionary of tensors in its place."""
    path = directory / "model.safetensors"
    save_file(edit(load_file(path)), path, {"format": "pt"})


def without(part):
    return lambda weights: {name: value for name, value in weights.items() if part not in name}


def renamed(*pairs):
    def edit(weights):
        for old, new in pairs:
            weights = {name.replace(old, new): value for name, value in weights.items()}
        return weights

    return edit


def added(**tensors):
    return lambda weights: {**weights, **tensors}


def flatten(outputs):
    """The tensors of a ModelOutput by the names that exports give them."""
    tensors = {}
    for key, value in outputs.items():
        if isinstance(value, transformers.EncoderDecoderCache):
            parts = ("self_attention_cache", "cross_attention_cache")
            tensors |= flatten({f"{key}.{part}": getattr(value, part) for part in parts})
        elif isinstance(value, transformers.Cache):
            for index, layer in enumerate(value.layers):
                names = ("conv_states", "recurrent_states") if hasattr(layer, "conv_states") else ("keys", "values")
                for name in names:
                    leaf = getattr(layer, name)
                    states = {f"{name}.{i}": state for i, state in leaf.items()} if isinstance(leaf, dict) else {name: leaf}
                    tensors |= {f"{key}.layers.{index}.{path}": state for path, state in states.items()}
        elif isinstance(value, transformers.utils.ModelOutput):
            tensors |= {f"{key}.{name}": tensor for name, tensor in flatten(value).items()}
        else:
            tensors[key] = value
    return {key: value.clone(memory_format=torch.contiguous_format) for key, value in tensors.items()}


def run(model, inputs):
    with torch.no_grad():
        return model(**inputs)


def write_run(directory, prefix, inputs, expected):
    save_file(inputs, directory / f"{prefix}inputs.safetensors")
    save_file(expected, directory / f"{prefix}expected.safetensors")


def write_facts(directory, **facts):
    (directory / "case.json").write_text(json.dumps(facts) + "\n")


def main(usage, cases, write_case):
    """make_*.py DIRECTORY [I/N | CASE...]: all cases, every N-th from the I-th on, or those."""
    if len(sys.argv) < 2:
        sys.exit(usage.splitlines()[0])
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    names = sys.argv[2:] or list(cases)
    if "/" in names[0]:
        first, step = map(int, names[0].split("/"))
        names = list(cases)[first - 1 :: step]
    for name in names:
        directory = Path(sys.argv[1]) / name
        directory.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(zlib.crc32(name.encode()))
        write_case(name, cases[name], directory)
