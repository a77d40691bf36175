/* GGUF files as checkpoints: tensors under the names of Transformers. */
#include "base/error.h"
#include "base/text.h"
#include "source/checkpoint/open.h"

#include <stdlib.h>
#include <string.h>

static const GgufName outer_names[] = {{"token_embd", "model.embed_tokens"},
                                       {"output_norm", "model.norm"},
                                       {"output", "lm_head"},
                                       {0}};

static const GgufName layer_names[] = {
    {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},       {0}};

/* What the configuration has taken in, and buffers of old files. */
static bool is_no_weight(const char *name) {
    static const char *const names[] = {"rope_freqs.weight", "rope_factors_long.weight",
                                        "rope_factors_short.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return text_ends_with(name, ".attn_rot_embd");
}

/* The name in Transformers of "LEAF.weight" or "LEAF.bias", after `prefix`; NULL when there is none. */
static const char *rename_leaf(Arena *arena, const GgufName *names, const char *prefix,
                               const char *leaf) {
    const char *dot = strrchr(leaf, '.');
    if (!names || !dot || (strcmp(dot, ".weight") && strcmp(dot, ".bias"))) return NULL;
    for (; names->theirs; names++) {
        size_t length = strlen(names->theirs);
        if (length == (size_t)(dot - leaf) && strncmp(leaf, names->theirs, length) == 0)
            return arena_format(arena, "%s%s%s", prefix, names->ours, dot);
    }
    return NULL;
}

static const char *rename_tensor(Arena *arena, const GgufArchitecture *architecture,
                                 const char *name) {
    if (strncmp(name, "blk.", 4) != 0) return rename_leaf(arena, outer_names, "", name);
    const char *number = name + 4, *leaf = number + strspn(number, "0123456789");
    if (leaf == number || *leaf != '.') return NULL;
    const char *prefix = arena_format(arena, "model.layers.%.*s.", (int)(leaf - number), number);
    const char *own = rename_leaf(arena, architecture->names, prefix, leaf + 1);
    return own ? own : rename_leaf(arena, layer_names, prefix, leaf + 1);
}

/* How many groups of rows are zipped: the heads of a query or key projection. */
static ferry_status set_zipped(const Checkpoint *cp, CheckpointTensor *tensor, ferry_error *error) {
    bool query = strstr(tensor->name, ".q_proj."), key = strstr(tensor->name, ".k_proj.");
    if (!query && !key) return FERRY_OK;
    const char *heads = query ? "num_attention_heads" : "num_key_value_heads";
    tensor->zipped = json_integer_value(json_object_get(cp->config, heads));
    int64_t rows = tensor->rank ? tensor->shape[0] : 0;
    if (tensor->zipped > 0 && tensor->zipped <= rows && rows % tensor->zipped == 0 &&
        rows / tensor->zipped % 2 == 0)
        return FERRY_OK;
    return error_set(error, FERRY_BAD_FORMAT, cp->directory,
                     "tensor \"%s\": expected rows for %lld heads of even size, found %lld",
                     tensor->name, (long long)tensor->zipped, (long long)rows);
}

static ferry_status add_tensor(Checkpoint *cp, const GgufArchitecture *architecture,
                               const GgufTensor *found, ferry_error *error) {
    const char *name = rename_tensor(&cp->arena, architecture, found->name);
    if (!name && is_no_weight(found->name)) return FERRY_OK;
    if (!name) {
        return error_set(error, FERRY_UNSUPPORTED, cp->directory,
                         "the tensor \"%s\" is not known in the architecture %s", found->name,
                         architecture->name);
    }
    CheckpointTensor *tensor = &cp->tensors[cp->tensor_count++];
    *tensor = (CheckpointTensor){.name = name,
                                 .storage = found->type,
                                 .dtype = found->dtype,
                                 .rank = found->rank,
                                 .shard = &cp->shards[0],
                                 .offset = found->offset,
                                 .size = found->size,
                                 .blocks = found->blocks,
                                 .plus_one = architecture->plus_one &&
                                             text_ends_with(found->name, "norm.weight")};
    memcpy(tensor->shape, found->shape, sizeof tensor->shape);
    map_put(&cp->by_name, tensor->name, tensor);
    return architecture->zips ? set_zipped(cp, tensor, error) : FERRY_OK;
}

static int by_offset(const void *left, const void *right) {
    const GgufTensor *a = left, *b = right;
    return a->offset < b->offset ? -1 : a->offset > b->offset ? 1 : strcmp(a->name, b->name);
}

static ferry_status add_tensors(Checkpoint *cp, const GgufArchitecture *architecture,
                                ferry_error *error) {
    Gguf *gguf = cp->gguf;
    cp->tensors = ARENA_ARRAY(&cp->arena, CheckpointTensor, gguf->tensor_count);
    GgufTensor *sorted =
        arena_copy(&cp->arena, gguf->tensors, gguf->tensor_count * sizeof *gguf->tensors);
    if (!cp->tensors || !sorted) return error_memory(error, cp->directory, 0);
    if (gguf->tensor_count) qsort(sorted, gguf->tensor_count, sizeof *sorted, by_offset);
    for (size_t i = 0; i < gguf->tensor_count; i++)
        TRY(add_tensor(cp, architecture, &sorted[i], error));
    return cp->by_name.failed ? error_memory(error, cp->directory, 0) : FERRY_OK;
}

/* Large models come in several files, each with headers of its own. */
static ferry_status check_split(const Gguf *gguf, ferry_error *error) {
    int64_t count;
    if (!gguf_integer(gguf_value(gguf, "split.count"), &count) || count < 2) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, gguf->path,
                     "the model is split into %lld files, which is not supported: join them with "
                     "llama-gguf-split --merge",
                     (long long)count);
}

ferry_status gguf_checkpoint_read(Checkpoint *cp, ferry_error *error) {
    const GgufArchitecture *architecture;
    const MappedFile *file = &cp->shards[0].file;
    Gguf *gguf = ARENA_NEW(&cp->arena, Gguf);
    if (!gguf) return error_memory(error, cp->directory, 0);
    cp->config_path = cp->directory;
    TRY(gguf_parse(cp->directory, file->bytes, file->size, &cp->arena, gguf, error));
    cp->gguf = gguf;
    TRY(check_split(gguf, error));
    TRY(gguf_architecture(gguf, &cp->arena, &architecture, error));
    TRY(gguf_config(gguf, architecture, file->bytes, &cp->arena, &cp->config, error));
    cp->model_type = architecture->model_type;
    return add_tensors(cp, architecture, error);
}

ferry_status gguf_checkpoint_open(Checkpoint *cp, ferry_error *error) {
    Shard *shard = cp->shards = ARENA_NEW(&cp->arena, Shard);
    if (!shard) return error_memory(error, cp->directory, 0);
    shard->name = path_base(cp->directory);
    TRY(file_map(cp->directory, &cp->arena, &shard->file, error));
    cp->shard_count = 1;
    return gguf_checkpoint_read(cp, error);
}
