/* The decoders with rotary positions: what each model type chooses. */
#include "source/checkpoint/decoder.h"
#include "source/checkpoint/families.h"

#define LLAMA_LIKE                                                                                 \
    .activation_key = "hidden_act", .activation = "silu", .eps_key = "rms_norm_eps", .eps = 1e-6,  \
    .theta = 10000
#define PADS(token) .pads = true, .pad = token

static const DecoderTraits llama = {LLAMA_LIKE, .max_length = 2048, .bias_key = "attention_bias",
                                    .output_bias = true, .mlp_bias_key = "mlp_bias"};
static const DecoderTraits mistral = {LLAMA_LIKE, .max_length = 131072, .kv_heads = 8,
                                      .windows = WINDOW_ALWAYS, .window = 4096};
static const DecoderTraits qwen2 = {LLAMA_LIKE,     .max_length = 32768,      .bias = true,
                                    .kv_heads = 32, .windows = WINDOW_SWITCH, .window = 4096};
static const DecoderTraits qwen3 = {
    LLAMA_LIKE,          .max_length = 32768,      .bias_key = "attention_bias",
    .output_bias = true, .qk_norm = QK_SHARED,     .head_dim = 128,
    .kv_heads = 32,      .windows = WINDOW_SWITCH, .window = 4096};
static const DecoderTraits qwen2_vl = {.activation_key = "hidden_act",
                                       .activation = "silu",
                                       .eps_key = "rms_norm_eps",
                                       .eps = 1e-5,
                                       .bias = true,
                                       .kv_heads = 8,
                                       .max_length = 32768,
                                       .theta = 1000000,
                                       .windows = WINDOW_SWITCH,
                                       .window = 4096,
                                       .places = PLACE_SECTIONS,
                                       .sections = {16, 24, 24}};
static const DecoderTraits qwen3_vl = {.activation_key = "hidden_act",
                                       .activation = "silu",
                                       .eps_key = "rms_norm_eps",
                                       .eps = 1e-6,
                                       .bias_key = "attention_bias",
                                       .output_bias = true,
                                       .qk_norm = QK_SHARED,
                                       .head_dim = 128,
                                       .kv_heads = 32,
                                       .max_length = 128000,
                                       .theta = 500000,
                                       .places = PLACE_INTERLEAVED,
                                       .sections = {24, 20, 20}};
static const DecoderTraits smollm3 = {.activation_key = "hidden_act",
                                      .activation = "silu",
                                      .eps_key = "rms_norm_eps",
                                      .eps = 1e-6,
                                      .bias_key = "attention_bias",
                                      .output_bias = true,
                                      .mlp_bias_key = "mlp_bias",
                                      .kv_heads = 4,
                                      .max_length = 32768,
                                      .theta = 2000000,
                                      PADS(128004),
                                      .windows = WINDOW_UNROTATED,
                                      .skips_rotation = true};
static const DecoderTraits phi3 = {.activation_key = "hidden_act",
                                   .activation = "silu",
                                   .eps_key = "rms_norm_eps",
                                   .eps = 1e-5,
                                   .fused = true,
                                   .max_length = 4096,
                                   .theta = 10000,
                                   .partial = 1,
                                   .trained_length = 4096,
                                   PADS(32000),
                                   .windows = WINDOW_ALWAYS};
static const DecoderTraits olmo2 = {.activation_key = "hidden_act",
                                    .activation = "silu",
                                    .eps_key = "rms_norm_eps",
                                    .eps = 1e-5,
                                    .bias_key = "attention_bias",
                                    .output_bias = true,
                                    .qk_norm = QK_PROJECTION,
                                    .block = BLOCK_POST,
                                    .max_length = 2048,
                                    .theta = 10000,
                                    PADS(1)};
static const DecoderTraits granite = {
    LLAMA_LIKE,          .max_length = 2048,         .bias_key = "attention_bias",
    .output_bias = true, .mlp_bias_key = "mlp_bias", .multipliers = true};

#define GEMMA_LIKE                                                                                 \
    .activation = "gelu_pytorch_tanh", .norm = NORM_RMS_PLUS_ONE, .eps_key = "rms_norm_eps",       \
    .eps = 1e-6, .bias_key = "attention_bias", .output_bias = true, .scales_embedding = true,      \
    .head_dim = 256, PADS(0)

static const DecoderTraits gemma = {GEMMA_LIKE,           .activation_key = "hidden_act",
                                    .gelu_is_tanh = true, .max_length = 8192,
                                    .theta = 10000,       .kv_heads = 16};
static const DecoderTraits gemma2 = {GEMMA_LIKE,
                                     .activation_key = "hidden_activation",
                                     .max_length = 8192,
                                     .theta = 10000,
                                     .kv_heads = 4,
                                     .block = BLOCK_SANDWICH,
                                     .windows = WINDOW_PATTERN,
                                     .window = 4096,
                                     .pattern = 2,
                                     .softcap_attention = 50,
                                     .softcap_logits = 30,
                                     .query_scalar = 256};
static const DecoderTraits gemma3 = {GEMMA_LIKE,
                                     .activation_key = "hidden_activation",
                                     .max_length = 131072,
                                     .theta = 1000000,
                                     .kv_heads = 4,
                                     .block = BLOCK_SANDWICH,
                                     .qk_norm = QK_SHARED,
                                     .windows = WINDOW_PATTERN,
                                     .window = 4096,
                                     .pattern = 6,
                                     .pattern_key = "sliding_window_pattern",
                                     .query_scalar = 256,
                                     .rotary_by_type = true,
                                     .both_ways = true};
static const DecoderTraits starcoder2 = {.activation_key = "hidden_act",
                                         .activation = "gelu_pytorch_tanh",
                                         .norm = NORM_LAYER,
                                         .eps_key = "norm_epsilon",
                                         .eps = 1e-5,
                                         .bias_key = "use_bias",
                                         .bias = true,
                                         .output_bias = true,
                                         .mlp_bias_key = "use_bias",
                                         .plain_mlp = true,
                                         .kv_heads = 2,
                                         .max_length = 4096,
                                         .theta = 10000,
                                         .windows = WINDOW_ALWAYS};
static const DecoderTraits stablelm = {.activation_key = "hidden_act",
                                       .activation = "silu",
                                       .norm = NORM_LAYER,
                                       .eps_key = "layer_norm_eps",
                                       .eps = 1e-5,
                                       .bias_key = "use_qkv_bias",
                                       .qk_norm = QK_LIST,
                                       .kv_heads = 32,
                                       .max_length = 4096,
                                       .theta = 10000,
                                       .partial = 0.25,
                                       .even_rotation = true,
                                       .parallel_option = true};
static const DecoderTraits cohere = {.activation_key = "hidden_act",
                                     .activation = "silu",
                                     .norm = NORM_LAYER_SCALE,
                                     .eps_key = "layer_norm_eps",
                                     .eps = 1e-5,
                                     .bias_key = "attention_bias",
                                     .output_bias = true,
                                     .qk_norm = QK_MATRIX,
                                     .block = BLOCK_PARALLEL,
                                     .max_length = 8192,
                                     .theta = 500000,
                                     .interleaved = true,
                                     PADS(0),
                                     .logit_scale = 0.0625};

/* ---- with experts ---- */

#define SEPARATE "gate_proj", "up_proj", "down_proj"

static const ExpertTraits mixtral_experts = {.count_keys = {"num_local_experts", "num_experts"},
                                             .count = 8,
                                             .chosen = 2,
                                             .normalize = true,
                                             .module = "block_sparse_moe",
                                             .router_name = "gate",
                                             .names = {"w1", "w3", "w2"}};
static const ExpertTraits qwen2_experts = {.shared = SHARED_GATED,
                                           .sparse = SPARSE_STEP,
                                           .count_keys = {"num_experts"},
                                           .count = 60,
                                           .chosen = 4,
                                           .size = 1408,
                                           .shared_size = 5632,
                                           .normalize_key = "norm_topk_prob",
                                           .module = "mlp",
                                           .router_name = "gate",
                                           .names = {SEPARATE}};
static const ExpertTraits qwen3_experts = {.sparse = SPARSE_STEP,
                                           .count_keys = {"num_local_experts", "num_experts"},
                                           .count = 128,
                                           .chosen = 8,
                                           .size = 768,
                                           .normalize_key = "norm_topk_prob",
                                           .module = "mlp",
                                           .router_name = "gate",
                                           .names = {SEPARATE}};
static const ExpertTraits gpt_oss_experts = {.router = ROUTER_CHOSEN,
                                             .count_keys = {"num_local_experts", "num_experts"},
                                             .count = 128,
                                             .chosen = 4,
                                             .module = "mlp",
                                             .router_name = "router",
                                             .clamped = true};
#define DEEPSEEK_LIKE                                                                              \
    .router = ROUTER_SIGMOID, .shared = SHARED_PLAIN, .sparse = SPARSE_LATER,                      \
    .count_keys = {"n_routed_experts", "num_local_experts"}, .chosen = 8,                          \
    .normalize_key = "norm_topk_prob", .normalize = true, .module = "mlp", .router_name = "gate",  \
    .names = {SEPARATE}

static const ExpertTraits deepseek_experts = {DEEPSEEK_LIKE, .count = 256,       .size = 2048,
                                              .groups = 8,   .chosen_groups = 4, .dense = 3,
                                              .factor = 2.5};
static const ExpertTraits glm4_experts = {DEEPSEEK_LIKE, .count = 128,       .size = 1408,
                                          .groups = 1,   .chosen_groups = 1, .dense = 1,
                                          .factor = 1};

static const DecoderTraits mixtral = {.activation_key = "hidden_act",
                                      .activation = "silu",
                                      .eps_key = "rms_norm_eps",
                                      .eps = 1e-5,
                                      .kv_heads = 8,
                                      .max_length = 131072,
                                      .theta = 1000000,
                                      .windows = WINDOW_ALWAYS,
                                      .experts = &mixtral_experts};
static const DecoderTraits qwen2_moe = {
    LLAMA_LIKE,          .bias_key = "qkv_bias",  .bias = true,   .kv_heads = 16,
    .max_length = 32768, .windows = WINDOW_EARLY, .window = 4096, .experts = &qwen2_experts};
static const DecoderTraits qwen3_moe = {LLAMA_LIKE,
                                        .bias_key = "attention_bias",
                                        .output_bias = true,
                                        .qk_norm = QK_SHARED,
                                        .kv_heads = 4,
                                        .max_length = 32768,
                                        .windows = WINDOW_OPTION,
                                        .window = 4096,
                                        .experts = &qwen3_experts};
static const DecoderTraits gpt_oss = {
    .activation_key = "hidden_act",
    .activation = "silu",
    .eps_key = "rms_norm_eps",
    .eps = 1e-5,
    .bias_key = "attention_bias",
    .bias = true,
    .output_bias = true,
    .head_dim = 64,
    .kv_heads = 8,
    .max_length = 131072,
    .theta = 150000,
    .rope = "{\"rope_type\": \"yarn\", \"factor\": 32, \"beta_fast\": 32, \"beta_slow\": 1, "
            "\"truncate\": false, \"original_max_position_embeddings\": 4096}",
    .windows = WINDOW_PATTERN,
    .window = 128,
    .pattern = 2,
    .sinks = true,
    .experts = &gpt_oss_experts};
static const DecoderTraits deepseek_v3 = {LLAMA_LIKE,          .bias_key = "attention_bias",
                                          .output_bias = true, .max_length = 4096,
                                          .latent = true,      .experts = &deepseek_experts};
static const DecoderTraits glm4_moe = {.activation_key = "hidden_act",
                                       .activation = "silu",
                                       .eps_key = "rms_norm_eps",
                                       .eps = 1e-5,
                                       .bias_key = "attention_bias",
                                       .qk_norm = QK_OPTION,
                                       .kv_heads = 8,
                                       .max_length = 131072,
                                       .theta = 10000,
                                       .partial = 0.5,
                                       .experts = &glm4_experts};

/* ---- the list ---- */

enum {
    BASE = 1u << TASK_FEATURES | 1u << TASK_CAUSAL_LM,
    SEQUENCE = 1u << TASK_SEQUENCE_CLASSIFICATION,
    TOKENS = 1u << TASK_TOKEN_CLASSIFICATION,
    ANSWERS = 1u << TASK_QUESTION_ANSWERING,
};

const Family decoder_families[] = {
    {"llama", "Llama", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS, &llama, NULL},
    {"mistral", "Mistral", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS, &mistral,
     NULL},
    {"qwen2", "Qwen2", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS, &qwen2, NULL},
    {"qwen3", "Qwen3", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS, &qwen3, NULL},
    {"smollm3", "SmolLM3", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS, &smollm3,
     NULL},
    {"gemma", "Gemma", "model", decoder_build, BASE | SEQUENCE | TOKENS, &gemma, NULL},
    {"gemma2", "Gemma2", "model", decoder_build, BASE | SEQUENCE | TOKENS, &gemma2, NULL},
    {"gemma3_text", "Gemma3", "model", decoder_build, BASE | SEQUENCE, &gemma3, NULL},
    {"phi3", "Phi3", "model", decoder_build, BASE | SEQUENCE | TOKENS, &phi3, NULL},
    {"olmo2", "Olmo2", "model", decoder_build, BASE | SEQUENCE, &olmo2, NULL},
    {"granite", "Granite", "model", decoder_build, BASE, &granite, NULL},
    {"starcoder2", "Starcoder2", "model", decoder_build, BASE | SEQUENCE | TOKENS, &starcoder2,
     NULL},
    {"stablelm", "StableLm", "model", decoder_build, BASE | SEQUENCE | TOKENS, &stablelm, NULL},
    {"mixtral", "Mixtral", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS, &mixtral,
     NULL},
    {"qwen2_moe", "Qwen2Moe", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS,
     &qwen2_moe, NULL},
    {"qwen3_moe", "Qwen3Moe", "model", decoder_build, BASE | SEQUENCE | TOKENS | ANSWERS,
     &qwen3_moe, NULL},
    {"gpt_oss", "GptOss", "model", decoder_build, BASE | SEQUENCE | TOKENS, &gpt_oss, NULL},
    {"deepseek_v3", "DeepseekV3", "model", decoder_build, BASE | SEQUENCE | TOKENS, &deepseek_v3,
     NULL},
    {"glm4_moe", "Glm4Moe", "model", decoder_build, BASE, &glm4_moe, NULL},
    {"cohere", "Cohere", "model", decoder_build, BASE, &cohere, NULL},
    {0},
};

const Family decoder_parts[] = {
    {"qwen2_vl_text", "Qwen2VLText", "model", decoder_build, BASE, &qwen2_vl, NULL},
    {"qwen2_5_vl_text", "Qwen2_5_VLText", "model", decoder_build, BASE, &qwen2_vl, NULL},
    {"qwen3_vl_text", "Qwen3VLText", "model", decoder_build, BASE, &qwen3_vl, NULL},
    {0},
};
