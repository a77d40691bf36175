#!/usr/bin/env python3
"""Write tiny encoder checkpoints with eager outputs: make_encoders.py DIRECTORY [CASE...]

The cases cover what the shared fixtures do not: every head, odd sizes, all inputs, older spellings,
incomplete files. checkpoints.py says what a case leaves behind. Needs torch, transformers and
safetensors.
"""

from dataclasses import dataclass, field

import checkpoints
import torch
import transformers
from checkpoints import renamed, without

BASE = dict(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=48,
)
DISTILBERT = dict(
    vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=48
)
WIDE = dict(
    vocab_size=77, hidden_size=40, intermediate_size=30, num_hidden_layers=3, layer_norm_eps=1e-5
)
SMALL = {
    "bert": ("Bert", BASE),
    "roberta": ("Roberta", BASE),
    "xlm-roberta": ("XLMRoberta", BASE),
    "camembert": ("Camembert", BASE),
    "distilbert": ("DistilBert", DISTILBERT),
    "electra": ("Electra", dict(BASE, embedding_size=20)),
    "albert": ("Albert", dict(BASE, embedding_size=20)),
    "mpnet": ("MPNet", BASE),
    "modernbert": (
        "ModernBert",
        dict(
            BASE,
            pad_token_id=1,
            bos_token_id=0,
            eos_token_id=2,
            cls_token_id=0,
            sep_token_id=2,
            local_attention=8,
        ),
    ),
}
HEADS = {
    "features": "Model",
    "masked": "ForMaskedLM",
    "sequence": "ForSequenceClassification",
    "token": "ForTokenClassification",
    "answering": "ForQuestionAnswering",
}
SEGMENTED = {"bert", "roberta", "xlm-roberta", "camembert", "electra", "albert"}
PADDED_POSITIONS = {"roberta", "xlm-roberta", "camembert", "mpnet"}


@dataclass
class Case:
    model_type: str
    head: str = "features"
    config: dict = field(default_factory=dict)  # on top of the small configuration
    inputs: tuple = ("input_ids", "attention_mask")
    shapes: tuple = ((2, 9), (3, 14))
    padding: str = "right"
    saved_head: str = ""  # the class that is saved, when it is not the one that runs
    edit_config: dict = field(default_factory=dict)  # over config.json; ... deletes the key
    edit_weights: object = None  # from and to a dictionary of tensors

    def model_class(self, head):
        return getattr(transformers, SMALL[self.model_type][0] + HEADS[head])


def common_cases(model_type):
    every_input = ("input_ids", "attention_mask", "position_ids")
    if model_type in SEGMENTED:
        every_input += ("token_type_ids",)
    three = {"num_labels": 3}
    return {
        **{head: Case(model_type, head) for head in ("features", "masked", "answering")},
        **{head: Case(model_type, head, three) for head in ("sequence", "token")},
        "ids-alone": Case(model_type, inputs=("input_ids",)),
        "left-padding": Case(model_type, padding="left"),
        "embeds": Case(model_type, inputs=("inputs_embeds", "attention_mask")),
        "all-inputs": Case(model_type, "masked", inputs=every_input),
        "untied": Case(model_type, "masked", {"tie_word_embeddings": False}),
        "base-of-masked": Case(model_type, saved_head="masked"),
        "base-of-sequence": Case(model_type, saved_head="sequence"),
    }


def bert_cases():
    old_norms = renamed(
        ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")
    )
    relics = {"directionality": "bidi", "pooler_type": "first_token_transform"}
    absent = (
        "type_vocab_size",
        "layer_norm_eps",
        "hidden_act",
        "is_decoder",
        "tie_word_embeddings",
    )
    old = {**dict.fromkeys(absent, ...), **relics, "position_embedding_type": "absolute"}
    return {
        "sizes": Case("bert", "masked", WIDE),
        "relu": Case("bert", "masked", {"hidden_act": "relu"}),
        "gelu-new": Case("bert", "masked", {"hidden_act": "gelu_new"}),
        "silu": Case("bert", "masked", {"hidden_act": "silu"}),
        "one-segment": Case("bert", config={"type_vocab_size": 1}),
        "no-pooler": Case("bert", edit_weights=without("pooler")),
        "old-norm-names": Case("bert", "masked", edit_weights=old_norms),
        "bare-names": Case("bert", "masked", edit_weights=renamed(("bert.", ""))),
        "old-config": Case("bert", "masked", edit_config=old),
    }


def roberta_cases():
    decoder_kept = renamed(
        ("roberta.embeddings.word_embeddings", "lm_head.decoder"),
        ("lm_head.bias", "lm_head.decoder.bias"),
    )
    inputs = ("inputs_embeds", "position_ids", "token_type_ids")
    return {
        "padding-token": Case("roberta", "masked", {"pad_token_id": 5, "type_vocab_size": 1}),
        "one-segment": Case("roberta", "sequence", {"type_vocab_size": 1, "num_labels": 5}),
        "decoder-kept": Case("roberta", "masked", edit_weights=decoder_kept),
        "embeds-all": Case("roberta", inputs=inputs),
    }


def distilbert_cases():
    sinusoidal = {"sinusoidal_pos_embds": True, "dim": 48, "n_heads": 6}
    return {
        "relu": Case("distilbert", "masked", {"activation": "relu"}),
        "gelu-new": Case("distilbert", "masked", {"activation": "gelu_new"}),
        "sinusoidal": Case("distilbert", config=sinusoidal),
        "one-label": Case("distilbert", "sequence", {"num_labels": 1}),
    }


def electra_cases():
    return {
        "sizes": Case("electra", "masked", WIDE),
        "same-embedding": Case("electra", "masked", {"embedding_size": 32}),
        "wider-embedding": Case("electra", "masked", {"embedding_size": 44}),
    }


def albert_cases():
    groups = {"num_hidden_layers": 5, "num_hidden_groups": 2, "inner_group_num": 2}
    relics = dict.fromkeys(("gap_size", "net_structure_type", "num_memory_blocks"), 0)
    return {
        "groups": Case("albert", "masked", groups),
        "same-embedding": Case("albert", "sequence", {"embedding_size": 32, "hidden_act": "gelu"}),
        "old-config": Case("albert", edit_config={**relics, "down_scale_factor": 1}),
    }


def mpnet_cases():
    return {
        "sizes": Case("mpnet", "masked", WIDE),
        "far": Case("mpnet", config={"max_position_embeddings": 180}, shapes=((1, 150), (2, 40))),
        "more-buckets": Case("mpnet", config={"relative_attention_num_buckets": 40}),
    }


def modernbert_cases():
    narrow = {"local_attention": 4, "num_hidden_layers": 4}
    odd = {"local_attention": 5, "num_hidden_layers": 3, "global_attn_every_n_layers": 2}
    mixed = ["sliding_attention", "full_attention", "full_attention", "sliding_attention"]
    typed = {"num_hidden_layers": 4, "local_attention": 6, "layer_types": mixed}
    biases = ("norm_bias", "attention_bias", "mlp_bias", "classifier_bias")
    activations = {"classifier_activation": "silu", "hidden_activation": "gelu_pytorch_tanh"}
    thetas = {"global_rope_theta": 80000.0, "local_rope_theta": 5000.0}
    absent = dict.fromkeys(("layer_types", "rope_parameters"), ...)
    old = {**absent, **thetas, "global_attn_every_n_layers": 2, "layer_norm_eps": 1e-5}
    scaled = {"rope_type": "linear", "factor": 2.0, "rope_theta": 160000.0}
    plain = {"rope_type": "default", "rope_theta": 9000.0}
    mean = {"classifier_pooling": "mean", "num_labels": 4}
    alone = ("input_ids",)
    return {
        "narrow": Case("modernbert", "masked", narrow, shapes=((1, 20), (2, 7))),
        "odd-window": Case("modernbert", config=odd, shapes=((2, 13), (1, 20))),
        "layer-types": Case("modernbert", config=typed),
        "full": Case("modernbert", config={"layer_types": ["full_attention"] * 2}),
        "biases": Case("modernbert", "masked", {**dict.fromkeys(biases, True), "norm_eps": 1e-3}),
        "no-decoder-bias": Case("modernbert", "masked", {"decoder_bias": False, **activations}),
        "mean": Case("modernbert", "sequence", mean),
        "mean-unmasked": Case("modernbert", "sequence", mean, inputs=alone),
        "old-config": Case("modernbert", config={"num_hidden_layers": 4}, edit_config=old),
        "scaled-rope": modernbert_rope(full_attention=scaled, sliding_attention=plain),
        "one-rope": modernbert_rope(full_attention=plain),
    }


def modernbert_rope(**parameters):
    return Case("modernbert", edit_config={"rope_parameters": parameters})


def cases():
    own = {
        "bert": bert_cases(),
        "roberta": roberta_cases(),
        "distilbert": distilbert_cases(),
        "electra": electra_cases(),
        "albert": albert_cases(),
        "mpnet": mpnet_cases(),
        "modernbert": modernbert_cases(),
    }
    return {
        f"{model_type}-{name}": case
        for model_type in SMALL
        for name, case in {**common_cases(model_type), **own.get(model_type, {})}.items()
    }


def make_inputs(case, model, shape):
    batch, length = shape
    pad = 1 if case.model_type == "mpnet" else model.config.pad_token_id
    ids = torch.randint(6, model.config.vocab_size, shape)
    mask = torch.ones(shape, dtype=torch.int64)
    if "attention_mask" in case.inputs:
        for row in range(batch):
            hidden = slice(0, row) if case.padding == "left" else slice(length - row, length)
            mask[row, hidden] = 0
            ids[row, hidden] = pad
    first = pad + 1 if case.model_type in PADDED_POSITIONS else 0
    width = model.get_input_embeddings().weight.shape[1]
    values = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": torch.randint(0, getattr(model.config, "type_vocab_size", 1), shape),
        "position_ids": first + torch.arange(length).flip(0).expand(shape).contiguous(),
        "inputs_embeds": torch.randn(batch, length, width),
    }
    return {name: values[name] for name in case.inputs}


def write_checkpoint(case, directory):
    """Save the model and apply the edits of the case to its files."""
    _, small = SMALL[case.model_type]
    saved = case.model_class(case.saved_head or case.head)
    model = saved(saved.config_class(**{**small, **case.config}))
    checkpoints.randomize(model, kept="position_embeddings")
    model.save_pretrained(directory)
    checkpoints.edit_config(directory, case.edit_config)
    if case.edit_weights:
        checkpoints.edit_weights(directory, case.edit_weights)


def write_case(_, case, directory):
    write_checkpoint(case, directory)
    # Loaded again, so that what counts is what eager makes of the files.
    model, found = case.model_class(case.head).from_pretrained(directory, output_loading_info=True)
    model.eval()
    for prefix, shape in zip(checkpoints.RUNS, case.shapes):
        inputs = make_inputs(case, model, shape)
        outputs = checkpoints.run(model, inputs)
        expected = checkpoints.flatten(outputs)
        if any("pooler" in key for key in found["missing_keys"]):  # made up
            expected.pop("pooler_output", None)
        checkpoints.write_run(directory, prefix, inputs, expected)
    facts = {"class": type(model).__name__, "output_class": type(outputs).__name__}
    checkpoints.write_facts(directory, **facts)


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), write_case)
