/* The architectures of GGUF files: what each has besides what all have. */
#include "base/error.h"
#include "source/checkpoint/gguf_config.h"

#include <stdio.h>
#include <string.h>

static bool has(const GgufConfig *c, const char *tensor) {
    return gguf_tensor(c->gguf, tensor) != NULL;
}

static void set_silu(GgufConfig *c) {
    gguf_set(c, "hidden_act", json_string("silu"));
}

/* The family has query, key, value and output biases together, and cannot rotate a part of a head. */
static void finish_llama(GgufConfig *c) {
    int64_t experts = 0;
    set_silu(c);
    gguf_set(c, "attention_bias", json_boolean(has(c, "blk.0.attn_q.bias")));
    gguf_set(c, "mlp_bias", json_boolean(has(c, "blk.0.ffn_gate.bias")));
    if (gguf_take_integer(c, "expert_count", &experts) && experts > 0)
        gguf_fail(c, FERRY_UNSUPPORTED,
                  "a mixture of %lld experts is not supported: export the safetensors checkpoint",
                  (long long)experts);
    gguf_take_integer(c, "expert_used_count", &experts);
}

static void finish_qwen3(GgufConfig *c) {
    set_silu(c);
    gguf_set(c, "attention_bias", json_boolean(has(c, "blk.0.attn_q.bias")));
}

static void finish_phi3(GgufConfig *c) {
    int64_t window = 0;
    set_silu(c);
    gguf_take_integer(c, "attention.sliding_window", &window);
    gguf_set(c, "sliding_window", window > 0 ? json_integer(window) : json_null());
    if (!json_object_get(c->json, "original_max_position_embeddings"))
        gguf_set(c, "original_max_position_embeddings",
                 json_integer(gguf_have(c, "max_position_embeddings")));
}

/* Every so many layers one sees everything. llama.cpp knows the model of 62 layers by their number: there
 * the scale of queries is that of a head that fills its share of the hidden features. */
static void finish_gemma3(GgufConfig *c) {
    enum { LAYERS_OF_27B = 62 };
    int64_t window = 0, pattern = 6, layers = gguf_have(c, "num_hidden_layers");
    double theta = 10000, cap;
    bool is_27b = layers == LAYERS_OF_27B;
    gguf_set(c, "hidden_activation", json_string("gelu_pytorch_tanh"));
    gguf_set(c, "query_pre_attn_scalar",
             json_integer(is_27b ? gguf_have(c, "hidden_size") / gguf_have(c, "num_attention_heads")
                                 : gguf_have(c, "head_dim")));
    gguf_set(c, "attn_logit_softcapping", json_null());
    gguf_set(c, "final_logit_softcapping",
             gguf_take_number(c, "final_logit_softcapping", &cap) ? json_real(cap) : json_null());
    gguf_take_number(c, "rope.freq_base_swa", &theta);
    gguf_set(c, "rope_local_base_freq", json_real(theta));
    gguf_take_integer(c, "attention.sliding_window_pattern", &pattern);
    if (!gguf_take_integer(c, "attention.sliding_window", &window) || window < 1 || pattern < 1) {
        gguf_fail(c, FERRY_BAD_FORMAT, "expected a positive \"gemma3.attention.sliding_window\"");
        return;
    }
    json_t *types = json_array();
    for (int64_t i = 0; i < layers && i < 1 << 16; i++) {
        bool full = (i + 1) % pattern == 0;
        json_array_append_new(types, json_string(full ? "full_attention" : "sliding_attention"));
    }
    gguf_set(c, "sliding_window", json_integer(window));
    gguf_set(c, "layer_types", types);
}

static const GgufName phi3_names[] = {
    {"attn_qkv", "self_attn.qkv_proj"}, {"ffn_up", "mlp.gate_up_proj"}, {0}};
static const GgufName gemma3_names[] = {{"post_attention_norm", "post_attention_layernorm"},
                                        {"ffn_norm", "pre_feedforward_layernorm"},
                                        {"post_ffw_norm", "post_feedforward_layernorm"},
                                        {0}};

static const GgufArchitecture architectures[] = {
    {.name = "llama",
     .model_type = "llama",
     .class_name = "LlamaForCausalLM",
     .finish = finish_llama,
     .zips = true},
    {.name = "qwen2", .model_type = "qwen2", .class_name = "Qwen2ForCausalLM", .finish = set_silu},
    {.name = "qwen3",
     .model_type = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .finish = finish_qwen3},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .class_name = "Gemma3ForCausalLM",
     .finish = finish_gemma3,
     .names = gemma3_names,
     .plus_one = true},
    {.name = "phi3",
     .model_type = "phi3",
     .class_name = "Phi3ForCausalLM",
     .finish = finish_phi3,
     .names = phi3_names,
     .partial = true},
};

ferry_status gguf_architecture(const Gguf *gguf, Arena *arena, const GgufArchitecture **out,
                               ferry_error *error) {
    const GgufValue *value = gguf_value(gguf, "general.architecture");
    const char *name = gguf_text(value, arena);
    if (!name) {
        return error_set(error, FERRY_BAD_FORMAT, gguf->path,
                         "\"general.architecture\": expected a string, found %s", gguf_kind(value));
    }
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        *out = &architectures[i];
        if (strcmp(name, architectures[i].name) == 0) return FERRY_OK;
    }
    return error_set(error, FERRY_UNSUPPORTED, gguf->path,
                     "the architecture \"%s\" is not supported (expected llama, qwen2, qwen3, "
                     "gemma3 or phi3): export the model's safetensors checkpoint",
                     name);
}
