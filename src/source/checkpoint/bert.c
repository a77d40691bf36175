/* The encoder families: BERT and its relatives as rows of traits, and ModernBERT. */
#include "source/checkpoint/bert.h"
#include "source/checkpoint/families.h"

static const BertKeys bert_keys = {
    .hidden = "hidden_size",
    .layers = "num_hidden_layers",
    .heads = "num_attention_heads",
    .intermediate = "intermediate_size",
    .activation = "hidden_act",
    .eps = "layer_norm_eps",
};

static const BertKeys distilbert_keys = {
    .hidden = "dim",
    .layers = "n_layers",
    .heads = "n_heads",
    .intermediate = "hidden_dim",
    .activation = "activation",
};

static const BertLayerNames bert_layer = {
    .query = "attention.self.query",
    .key = "attention.self.key",
    .value = "attention.self.value",
    .attention_output = "attention.output.dense",
    .attention_norm = "attention.output.LayerNorm",
    .up = "intermediate.dense",
    .down = "output.dense",
    .output_norm = "output.LayerNorm",
};

static const BertLayerNames distilbert_layer = {
    .query = "attention.q_lin",
    .key = "attention.k_lin",
    .value = "attention.v_lin",
    .attention_output = "attention.out_lin",
    .attention_norm = "sa_layer_norm",
    .up = "ffn.lin1",
    .down = "ffn.lin2",
    .output_norm = "output_layer_norm",
};

static const BertLayerNames albert_layer = {
    .query = "attention.query",
    .key = "attention.key",
    .value = "attention.value",
    .attention_output = "attention.dense",
    .attention_norm = "attention.LayerNorm",
    .up = "ffn",
    .down = "ffn_output",
    .output_norm = "full_layer_layer_norm",
};

static const BertLayerNames mpnet_layer = {
    .query = "attention.attn.q",
    .key = "attention.attn.k",
    .value = "attention.attn.v",
    .attention_output = "attention.attn.o",
    .attention_norm = "attention.LayerNorm",
    .up = "intermediate.dense",
    .down = "output.dense",
    .output_norm = "output.LayerNorm",
};

static const BertTraits bert_traits = {
    .keys = &bert_keys,
    .defaults = {768, 12, 12, 3072, 0, "gelu"},
    .segments = true,
    .layers = "encoder.layer",
    .layer = &bert_layer,
    .pooler = "pooler.dense",
    .features_class = "BaseModelOutputWithPoolingAndCrossAttentions",
    .prediction = {"cls.predictions.transform.dense", NULL, "cls.predictions.transform.LayerNorm",
                   "cls.predictions.decoder", "cls.predictions.bias"},
    .classifier = {NULL, NULL, "classifier"},
};

static const BertTraits roberta_traits = {
    .keys = &bert_keys,
    .defaults = {768, 12, 12, 3072, 0, "gelu"},
    .segments = true,
    .skips_padding = true,
    .padding = 1,
    .layers = "encoder.layer",
    .layer = &bert_layer,
    .pooler = "pooler.dense",
    .features_class = "BaseModelOutputWithPoolingAndCrossAttentions",
    .prediction = {"lm_head.dense", "gelu", "lm_head.layer_norm", "lm_head.decoder",
                   "lm_head.bias"},
    .classifier = {"classifier.dense", "tanh", "classifier.out_proj"},
};

static const BertTraits distilbert_traits = {
    .keys = &distilbert_keys,
    .defaults = {768, 6, 12, 3072, 0, "gelu"},
    .layers = "transformer.layer",
    .layer = &distilbert_layer,
    .features_class = "BaseModelOutput",
    .prediction = {"vocab_transform", NULL, "vocab_layer_norm", "vocab_projector", NULL},
    .classifier = {"pre_classifier", "relu", "classifier"},
};

static const BertTraits electra_traits = {
    .keys = &bert_keys,
    .defaults = {256, 12, 4, 1024, 128, "gelu"},
    .projection = "embeddings_project",
    .segments = true,
    .layers = "encoder.layer",
    .layer = &bert_layer,
    .features_class = "BaseModelOutputWithPastAndCrossAttentions",
    .prediction = {"generator_predictions.dense", "gelu", "generator_predictions.LayerNorm",
                   "generator_lm_head", NULL},
    .classifier = {"classifier.dense", "gelu", "classifier.out_proj"},
};

static const BertTraits albert_traits = {
    .keys = &bert_keys,
    .defaults = {4096, 12, 64, 16384, 128, "gelu_new"},
    .projection = "encoder.embedding_hidden_mapping_in",
    .always_projects = true,
    .segments = true,
    .layers = "encoder.albert_layer_groups",
    .shared_layers = "albert_layers",
    .layer = &albert_layer,
    .pooler = "pooler",
    .features_class = "BaseModelOutputWithPooling",
    .prediction = {"predictions.dense", NULL, "predictions.LayerNorm", "predictions.decoder",
                   "predictions.bias"},
    .classifier = {NULL, NULL, "classifier"},
};

static const BertTraits mpnet_traits = {
    .keys = &bert_keys,
    .defaults = {768, 12, 12, 3072, 0, "gelu"},
    .skips_padding = true,
    .padding = 1,
    .fixed_padding = true,
    .layers = "encoder.layer",
    .layer = &mpnet_layer,
    .relative_bias = true,
    .pooler = "pooler.dense",
    .features_class = "BaseModelOutputWithPooling",
    .prediction = {"lm_head.dense", "gelu", "lm_head.layer_norm", "lm_head.decoder",
                   "lm_head.bias"},
    .classifier = {"classifier.dense", "tanh", "classifier.out_proj"},
};

/* ---- configuration ---- */

/* Keys that published checkpoints carry and no class reads. */
static void accept_relics(Model *m) {
    static const char *const relics[] = {
        "directionality",
        "down_scale_factor",
        "gap_size",
        "net_structure_type",
        "num_memory_blocks",
        "output_past",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
        "sinusoidal_pos_embds", /* the table is among the weights */
        "tie_weights_",
        "xla_device",
    };
    for (size_t i = 0; i < sizeof relics / sizeof *relics; i++) config_accept(m, relics[i]);
}

static Bert read_config(Model *m) {
    const BertTraits *traits = m->family->traits;
    const BertKeys *keys = traits->keys;
    const BertDefaults *defaults = &traits->defaults;
    Bert bert = {.m = m, .traits = traits, .groups = 1, .group_layers = 1};
    bert.vocabulary = config_int(m, "vocab_size");
    bert.hidden = config_size_or(m, keys->hidden, defaults->hidden);
    bert.layers = config_size_or(m, keys->layers, defaults->layers);
    bert.heads = config_size_or(m, keys->heads, defaults->heads);
    bert.intermediate = config_size_or(m, keys->intermediate, defaults->intermediate);
    bert.embedding = bert.hidden;
    if (defaults->embedding) {
        bert.embedding = config_size_or(m, "embedding_size", defaults->embedding);
    }
    if (traits->shared_layers) {
        bert.groups = config_size_or(m, "num_hidden_groups", 1);
        bert.group_layers = config_size_or(m, "inner_group_num", 1);
    }
    bert.activation = config_string_or(m, keys->activation, defaults->activation);
    bert.eps = keys->eps ? config_float_or(m, keys->eps, 1e-12) : 1e-12;
    config_require_string(m, "position_embedding_type", "absolute");
    config_require_bool(m, "is_decoder", false);
    config_require_bool(m, "add_cross_attention", false);
    accept_relics(m);
    if (bert.hidden % bert.heads != 0) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"%s\" to be a multiple of \"%s\", %lld",
                   m->config_path, keys->hidden, keys->heads, (long long)bert.heads);
    }
    return bert;
}

static void bert_build(Model *m) {
    Bert bert = read_config(m);
    Value *hidden = bert_encode(&bert);
    bert_outputs(&bert, hidden);
}

/* ---- the list ---- */

enum {
    ENCODER_TASKS = 1 << TASK_FEATURES | 1 << TASK_MASKED_LM | 1 << TASK_SEQUENCE_CLASSIFICATION |
                    1 << TASK_TOKEN_CLASSIFICATION | 1 << TASK_QUESTION_ANSWERING,
};

const Family encoder_families[] = {
    {"bert", "Bert", "bert", bert_build, ENCODER_TASKS, &bert_traits, NULL},
    {"roberta", "Roberta", "roberta", bert_build, ENCODER_TASKS, &roberta_traits, NULL},
    {"xlm-roberta", "XLMRoberta", "roberta", bert_build, ENCODER_TASKS, &roberta_traits, NULL},
    {"camembert", "Camembert", "roberta", bert_build, ENCODER_TASKS, &roberta_traits, NULL},
    {"distilbert", "DistilBert", "distilbert", bert_build, ENCODER_TASKS, &distilbert_traits, NULL},
    {"electra", "Electra", "electra", bert_build, ENCODER_TASKS, &electra_traits, NULL},
    {"albert", "Albert", "albert", bert_build, ENCODER_TASKS, &albert_traits, NULL},
    {"mpnet", "MPNet", "mpnet", bert_build, ENCODER_TASKS, &mpnet_traits, NULL},
    {"modernbert", "ModernBert", "model", modernbert_build, ENCODER_TASKS, NULL, NULL},
    {0},
};
