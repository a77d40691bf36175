/* Encoder-decoder models. */
#include "source/checkpoint/seq2seq.h"

#include <string.h>

int64_t seq2seq_size(Model *m, const char *key, const char *alias, int64_t otherwise) {
    int64_t own = config_size_or(m, key, otherwise);
    return alias ? config_size_or(m, alias, own) : own;
}

/* ---- the program that is asked for ---- */

const char *const seq2seq_components[] = {"encoder", "prefill", "decode", NULL};

static bool is_component(const Seq2Seq *s, const char *name) {
    const char *component = s->m->request->component;
    return component && strcmp(component, name) == 0;
}

bool seq2seq_is_encoder(const Seq2Seq *s) {
    return is_component(s, "encoder") || s->m->task == TASK_TEXT_ENCODING;
}

bool seq2seq_has_encoder(const Seq2Seq *s) {
    return !s->m->request->component || seq2seq_is_encoder(s);
}

/* A step of the decoder? */
static bool is_step(const Seq2Seq *s) {
    return !seq2seq_has_encoder(s);
}

static void default_inputs(Seq2Seq *s) {
    Model *m = s->m;
    const char *names[6] = {0};
    int count = 0;
    if (seq2seq_has_encoder(s)) names[count++] = s->main_input;
    if (s->masked) names[count++] = "attention_mask";
    if (!seq2seq_is_encoder(s) && !seq2seq_has_head(s)) names[count++] = "decoder_input_ids";
    if (model_masks_whole(m)) names[count++] = "decoder_attention_mask";
    if (is_step(s)) names[count++] = "encoder_outputs";
    model_default_inputs(m, names);
}

void seq2seq_start(Seq2Seq *s) {
    Model *m = s->m;
    bool generates = m->task == TASK_TEXT_TO_TEXT || m->task == TASK_SPEECH_TO_TEXT;
    if (m->request->component && !generates) {
        build_fail(&m->b, FERRY_INVALID_ARGUMENT, "%s does not generate: ask for the task %s",
                   m->b.program->architecture,
                   task_name(s->masked ? TASK_TEXT_TO_TEXT : TASK_SPEECH_TO_TEXT));
    }
    m->encoder_outputs =
        arena_format(&m->b.program->arena, "transformers.modeling_outputs.%s", s->encoder_outputs);
    m->input_prefix = is_step(s) ? "decoder_" : "";
    m->batch = m->sequence = NULL;
    default_inputs(s);
    model_name_dimensions(m);
}

/* ---- embeddings ---- */

Value *seq2seq_embedding(Seq2Seq *s, const char *stack, int64_t rows, int64_t width) {
    Model *m = s->m;
    Arena *arena = &m->b.program->arena;
    const char *own = arena_format(arena, "%s.embed_tokens.weight", stack);
    const char *const names[] = {"shared.weight", own, "encoder.embed_tokens.weight",
                                 "decoder.embed_tokens.weight", "lm_head.weight"};
    const size_t count = sizeof names / sizeof *names;
    size_t found = 0;
    while (found < count && !model_has(m, "%s", names[found])) found++;
    if (found == count) found = 0;
    Value *shared = model_matrix(m, rows, width, "%s", names[found]);
    if (found > 0 || !model_has(m, "%s", own)) return shared;
    const char *prefix = m->family->base_prefix;
    own = arena_format(arena, "%s%s%s", prefix, *prefix ? "." : "", own);
    return model_tied_weight(m, own, shared);
}

Value *seq2seq_shared_embedding(Seq2Seq *s, Value *own) {
    const char *shared = "shared.weight";
    if (!build_ok(&s->m->b) || !model_has(s->m, "%s", shared)) return own;
    return model_matrix(s->m, own->shape[0]->value, own->shape[1]->value, "%s", shared);
}

/* ---- the decoder ---- */

void seq2seq_output_encoder(Seq2Seq *s, Value *encoded) {
    model_output_one(s->m, s->encoder_outputs, "last_hidden_state", encoded);
}

/* The length of what the encoder made, as the user's shape of an input has it, else "sequence". */
static const Sym *encoded_length(Seq2Seq *s) {
    Model *m = s->m;
    for (size_t i = 0; i < m->input_count; i++) {
        const InputRequest *input = &m->inputs[i];
        if (input->rank == 2 && !strcmp(input->name, "attention_mask")) return input->shape[1];
        if (input->rank == 3 && !strcmp(input->name, "encoder_outputs")) return input->shape[1];
    }
    return sym_symbol(&m->b.program->symbols, "sequence", 1, SYM_UNBOUNDED);
}

void seq2seq_enter_decoder(Seq2Seq *s, Value *encoded, const Sym *length, int64_t width,
                           int64_t layers) {
    Model *m = s->m;
    Builder *b = &m->b;
    if (layers > CACHE_MAX_LAYERS) {
        build_fail(b, FERRY_BAD_FORMAT, "%s: %lld layers of the decoder are more than %d",
                   m->config_path, (long long)layers, CACHE_MAX_LAYERS);
        layers = 1;
    }
    s->cache = (CachePair){.self = ARENA_ARRAY(&b->program->arena, CacheLayer, (size_t)layers),
                           .cross = ARENA_ARRAY(&b->program->arena, CacheLayer, (size_t)layers),
                           .layers = layers};
    if (!s->cache.self || !s->cache.cross) build_fail(b, FERRY_OUT_OF_MEMORY, "out of memory");
    model_use_cache_pair(m);
    m->input_prefix = "decoder_";
    m->slots = NULL;
    m->sequence = NULL;
    model_name_dimensions(m);
    if (!encoded) {
        const Sym *shape[3] = {m->batch, length ? length : encoded_length(s),
                               build_const(b, width)};
        encoded = build_input(b, "encoder_outputs.last_hidden_state", m->dtype, 3, shape);
    }
    s->encoded = encoded;
    if (!s->masked) return;
    Value *mask = model_mask_input(m, "attention_mask", build_dim(b, encoded, 1));
    if (mask) s->cross_mask = build_unsqueeze(b, build_unsqueeze(b, mask, 1), 1);
}

Value *seq2seq_decoder_mask(Seq2Seq *s) {
    return model_mask(s->m, model_padding_mask(s->m), true, 0);
}

CacheLayer *seq2seq_join(Seq2Seq *s, int64_t layer, Value *keys, Value *values) {
    CacheLayer *cache = &s->cache.self[layer];
    *cache = (CacheLayer){.keys = keys, .values = values};
    model_join_cache(s->m, cache, layer);
    return cache;
}

CacheLayer *seq2seq_cross(Seq2Seq *s, int64_t layer, int64_t heads, int64_t size) {
    Builder *b = &s->m->b;
    if (!model_takes_cache(s->m)) return NULL;
    const Sym *shape[4] = {s->m->batch, build_const(b, heads), build_dim(b, s->encoded, 1),
                           build_const(b, size)};
    CacheLayer *cache = seq2seq_keep(s, layer, NULL, NULL);
    model_take_fixed_cache(s->m, cache, layer, shape);
    return cache;
}

CacheLayer *seq2seq_keep(Seq2Seq *s, int64_t layer, Value *keys, Value *values) {
    s->cache.cross[layer] = (CacheLayer){.keys = keys, .values = values, .fixed = true};
    return &s->cache.cross[layer];
}

/* ---- outputs ---- */

void seq2seq_output_fields(Seq2Seq *s, const char *type, const char *const *names,
                           Value *const *values, uint32_t count) {
    Model *m = s->m;
    const char *keys[4];
    const Tree *trees[4] = {0};
    m->b.scope = "";
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = names[i];
        build_output(&m->b, names[i], values[i]);
    }
    if (model_keeps_cache(m)) {
        keys[count] = "cache";
        trees[count++] = model_output_cache_pair(m, &s->cache);
    }
    keys[count++] = "encoder_last_hidden_state";
    build_output(&m->b, "encoder_last_hidden_state", s->encoded);
    model_output_tree(m, type, keys, trees, count);
}

void seq2seq_outputs(Seq2Seq *s, Value *result) {
    bool base = s->m->task == TASK_FEATURES;
    const char *name = base ? "last_hidden_state" : "logits";
    seq2seq_output_fields(s, base ? "Seq2SeqModelOutput" : "Seq2SeqLMOutput", &name, &result, 1);
}
