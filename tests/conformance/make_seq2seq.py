#!/usr/bin/env python3
"""Write tiny encoder-decoder checkpoints with eager outputs: make_seq2seq.py DIRECTORY [CASE...]

The cases cover what the shared fixtures do not: other classes, inputs and paddings, sizes that differ
between the encoder and the decoder, options, older and incomplete configurations, files. checkpoints.py
says what a case leaves behind. Needs torch, transformers and safetensors.
"""

from dataclasses import dataclass, field

import checkpoints
import torch
import transformers
from checkpoints import added, renamed, without

TOKENS = dict(vocab_size=61, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
BART = dict(
    TOKENS,
    d_model=24,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=40,
    decoder_ffn_dim=40,
    max_position_embeddings=32,
)
T5 = dict(TOKENS, d_model=24, d_kv=6, d_ff=40, num_layers=2, num_heads=4)
SPEECH = dict(num_mel_bins=7, max_source_positions=9, max_target_positions=20)
SMALL = {"T5": T5, "MT5": T5, "UMT5": T5, "Whisper": {**BART, **SPEECH}}
UNEVEN = dict(
    encoder_layers=1,
    decoder_layers=3,
    encoder_attention_heads=2,
    decoder_attention_heads=6,
    encoder_ffn_dim=30,
    decoder_ffn_dim=50,
)
LANGUAGE = ("input_ids", "attention_mask", "decoder_input_ids")
SPOKEN = ("input_features", "decoder_input_ids")
FAIRSEQ = {
    "add_bias_logits": False,
    "add_final_layer_norm": False,
    "classif_dropout": 0.1,
    "extra_pos_embeddings": 2,
    "force_bos_token_to_be_generated": False,
    "normalize_before": False,
    "normalize_embedding": True,
    "static_position_embeddings": False,
    "encoder_layerdrop": 0.1,
    "decoder_layerdrop": 0.1,
    "output_past": True,
    "num_beams": 4,
}


@dataclass
class Case:
    model_class: str
    config: dict = field(default_factory=dict)  # on top of the small configuration
    inputs: tuple = LANGUAGE
    shapes: tuple = ((2, 9, 5), (3, 14, 8))  # batch, length, the decoder's length
    padding: str = "right"  # of both sides; or left, or holes
    dtype: torch.dtype = torch.float32
    edit_config: dict = field(default_factory=dict)  # ... deletes the key
    edit_weights: object = None  # from and to a dictionary of tensors
    saved_class: str = ""  # the class that is saved, when it is not the one that runs
    omit_defaults: bool = False
    options: tuple = ()  # of ferry export
    error: str = ""  # a part of the message that refuses it


def t5_cases(name, language):
    features = f"{name}Model"
    near = {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 9}
    shifted = LANGUAGE[:2]
    heads = {"num_labels": 3} if name != "T5" else {"num_labels": 3, "tie_word_embeddings": False}
    untied = {"lm_head.weight": torch.randn(61, 24)}
    own = {"decoder.embed_tokens.weight": torch.randn(61, 24)}
    return {
        "features": Case(features),
        "encoder": Case(f"{name}EncoderModel", inputs=shifted),
        "encoder-of-both": Case(f"{name}EncoderModel", inputs=shifted, saved_class=language),
        "sequence": Case(f"{name}ForSequenceClassification", heads, inputs=shifted),
        "answers": Case(f"{name}ForQuestionAnswering", inputs=shifted),
        "answers-given": Case(f"{name}ForQuestionAnswering"),
        "unmasked": Case(language, inputs=("input_ids", "decoder_input_ids")),
        "left": Case(language, padding="left", inputs=(*LANGUAGE, "decoder_attention_mask")),
        "holes": Case(language, padding="holes", inputs=(*LANGUAGE, "decoder_attention_mask")),
        "embeds": Case(language, inputs=("inputs_embeds", "attention_mask", "decoder_inputs_embeds")),
        "one-token": Case(language, shapes=((1, 1, 1), (2, 1, 1))),
        "far": Case(language, near, shapes=((2, 40, 30), (1, 3, 50))),
        "odd-buckets": Case(language, {**near, "relative_attention_num_buckets": 7}, shapes=((2, 30, 30), (1, 3, 9))),
        "sizes": Case(language, {"d_kv": 10, "num_decoder_layers": 3, "num_layers": 1, "num_heads": 3}),
        "gated-silu": Case(language, {"feed_forward_proj": "gated-silu"}),
        "relu": Case(language, {"feed_forward_proj": "relu"}),
        "gated-gelu": Case(language, {"feed_forward_proj": "gated-gelu"}, edit_config={"dense_act_fn": ..., "is_gated_act": ...}),
        "untied": Case(language, edit_weights=added(**untied), edit_config={"tie_word_embeddings": False, "scale_decoder_outputs": ...}),
        "own-embedding": Case(language, edit_weights=added(**own)),
        "alone": Case(language, edit_weights=renamed(("shared.weight", "encoder.embed_tokens.weight"))),
        "no-cache": Case(language, {"use_cache": False}),
        "half": Case(language, dtype=torch.bfloat16, options=("--dtype", "float32")),
        "defaults": Case(language, omit_defaults=True),
        "old": Case(language, edit_config={"n_positions": 512, "output_past": True, "dense_act_fn": ..., "is_gated_act": ..., "scale_decoder_outputs": ...}),
        "activation": Case(language, edit_config={"feed_forward_proj": "gated-relu-gelu"}, error="expected \"feed_forward_proj\" to be like"),
        "few-buckets": Case(language, {"relative_attention_num_buckets": 2}, error="buckets do not fit"),
    }  # fmt: skip


def bart_cases(name, language):
    both = {
        "features": Case(f"{name}Model"),
        "unmasked": Case(language, inputs=("input_ids", "decoder_input_ids")),
        "left": Case(language, padding="left", inputs=(*LANGUAGE, "decoder_attention_mask")),
        "holes": Case(language, padding="holes", inputs=(*LANGUAGE, "decoder_attention_mask")),
        "embeds": Case(language, inputs=("inputs_embeds", "attention_mask", "decoder_inputs_embeds")),
        "one-token": Case(language, shapes=((1, 1, 1), (2, 1, 1))),
        "uneven": Case(language, UNEVEN),
        "scaled": Case(language, {"scale_embedding": True}),
        "unscaled": Case(language, {"scale_embedding": False}),
        "activation": Case(language, {"activation_function": "swish"}),
        "untied": Case(language, {"tie_word_embeddings": False}),
        "no-cache": Case(language, {"use_cache": False}),
        "half": Case(language, dtype=torch.bfloat16, options=("--dtype", "float32")),
        "defaults": Case(language, {"max_position_embeddings": 1024}, omit_defaults=True),
        "old": Case(language, edit_config=FAIRSEQ),
        "no-bias": Case(language, edit_weights=without("final_logits_bias")),
        "odd": Case(language, {"d_model": 20, "encoder_attention_heads": 5, "decoder_attention_heads": 2}),
        "features-of-language": Case(f"{name}Model", saved_class=language),
        "heads": Case(language, edit_config={"encoder_attention_heads": 7}, error="do not fit 7 heads of the encoder"),
        "unknown": Case(language, edit_config={"new_key": 1}, error='the key "new_key" is not understood'),
    }  # fmt: skip
    return both


def bart_heads(name):
    shifted = LANGUAGE[:2]
    return {
        "sequence": Case(f"{name}ForSequenceClassification", {"num_labels": 4}, inputs=shifted),
        "sequence-given": Case(f"{name}ForSequenceClassification", shapes=((2, 9, 9), (3, 14, 14))),
        "answers": Case(f"{name}ForQuestionAnswering", inputs=shifted),
        "shifted": Case(f"{name}ForConditionalGeneration", inputs=shifted),
        "shifted-features": Case(f"{name}Model", inputs=shifted),
    }


def marian_cases():
    apart = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 47}
    relics = {"normalize_before": False, "bad_words_ids": [[60]], "static_position_embeddings": True}
    return {
        "apart": Case("MarianMTModel", {**apart, "tie_word_embeddings": True}),
        "apart-untied": Case("MarianMTModel", {**apart, "tie_word_embeddings": False}),
        "relics": Case("MarianMTModel", edit_config=relics),
    }


def whisper_cases():
    language, relics = "WhisperForConditionalGeneration", {"forced_decoder_ids": [[1, 4]], "suppress_tokens": [1, 2]}
    placed = (*SPOKEN, "decoder_position_ids")
    return {
        "features": Case("WhisperModel", inputs=SPOKEN),
        "uneven": Case(language, UNEVEN, inputs=SPOKEN),
        "masked": Case(language, padding="left", inputs=(*placed, "decoder_attention_mask")),
        "embeds": Case(language, inputs=("input_features", "decoder_inputs_embeds")),
        "untied": Case(language, {"tie_word_embeddings": False}, inputs=SPOKEN),
        "relics": Case(language, {"scale_embedding": True}, inputs=SPOKEN, edit_config=relics),
        "half": Case(language, inputs=SPOKEN, dtype=torch.float16, options=("--dtype", "float32")),
        "no-cache": Case(language, {"use_cache": False}, inputs=SPOKEN),
        "classes": Case("WhisperForAudioClassification", inputs=SPOKEN, error="is not supported for model type whisper"),
    }  # fmt: skip


def cases():
    families = {name.lower(): t5_cases(name, f"{name}ForConditionalGeneration") for name in ("T5", "MT5", "UMT5")}
    for name in ("mt5", "umt5"):  # what they do otherwise
        kept = ("features", "encoder", "answers", "left", "far", "relu", "untied", "own-embedding", "defaults")
        families[name] = {case: families[name][case] for case in kept}
    for name in ("Bart", "MBart", "Marian", "Pegasus", "M2M100"):
        language = "MarianMTModel" if name == "Marian" else f"{name}ForConditionalGeneration"
        families[name.lower()] = bart_cases(name, language)
    families["bart"] |= bart_heads("Bart")
    families["mbart"] |= bart_heads("MBart")
    families["marian"] |= marian_cases()
    families["whisper"] = whisper_cases()
    return {f"{family}-{name}": case for family, own in families.items() for name, case in own.items()}


def padding_mask(case, batch, length):
    mask = torch.ones(batch, length, dtype=torch.long)
    for row in range(batch):
        gone = min(row + 1, length - 1)
        if case.padding == "right":
            mask[row, length - gone :] = 0
        elif case.padding == "left":
            mask[row, :gone] = 0
        elif length > 3:
            mask[row, 1 + row % 2 :: 3] = 0
    return mask


def make_side(model, case, prefix, batch, length):
    config = model.config
    vocabulary = 47 if prefix and getattr(config, "decoder_vocab_size", 0) == 47 else 61
    mask = padding_mask(case, batch, length)
    ids = torch.randint(4, vocabulary, (batch, length))
    for row in range(batch):
        kept = mask[row].nonzero()
        ids[row, kept[-1]] = 2  # the end of the sentence
    ids = torch.where(mask > 0, ids, torch.zeros_like(ids))
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return {
        f"{prefix}input_ids": ids,
        f"{prefix}inputs_embeds": torch.randn(batch, length, config.d_model),
        f"{prefix}attention_mask": mask,
        f"{prefix}position_ids": positions,
    }


def make_inputs(case, model, run):
    batch, length, decoder_length = case.shapes[run]
    values = make_side(model, case, "", batch, length)
    values |= make_side(model, case, "decoder_", batch, decoder_length)
    values["input_features"] = torch.randn(batch, SPEECH["num_mel_bins"], 2 * SPEECH["max_source_positions"])
    return {name: values[name] for name in case.inputs}


def configuration(name, changes):
    cls = getattr(transformers, name)
    prefix = max((p for p in SMALL if name.startswith(p)), key=len, default=None)
    return cls, cls.config_class(**{**SMALL.get(prefix, BART), **changes})


def write_case(_, case, directory):
    cls, config = configuration(case.saved_class or case.model_class, case.config)
    model = cls(config)
    checkpoints.randomize(model)
    model.to(case.dtype).save_pretrained(directory)
    if case.omit_defaults:
        checkpoints.omit_defaults(directory, model.config)
    checkpoints.edit_config(directory, case.edit_config)
    if case.edit_weights:
        checkpoints.edit_weights(directory, case.edit_weights)
    if case.error:
        checkpoints.write_facts(directory, error=case.error, options=case.options)
        return
    # Loaded again, so that what counts is what eager makes of the files.
    cls = getattr(transformers, case.model_class)
    model = cls.from_pretrained(directory, dtype=torch.float32).eval()
    for run, prefix in enumerate(checkpoints.RUNS):
        inputs = make_inputs(case, model, run)
        outputs = checkpoints.run(model, inputs)
        checkpoints.write_run(directory, prefix, inputs, checkpoints.flatten(outputs))
    facts = {"class": case.model_class, "output_class": type(outputs).__name__}
    checkpoints.write_facts(directory, **facts, options=case.options)


if __name__ == "__main__":
    checkpoints.main(__doc__, cases(), write_case)
