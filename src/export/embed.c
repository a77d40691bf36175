/* A step of the language model of a multimodal one: embeddings of tokens with features among them go in, and
 * of the hidden states that come out the last ones become scores. */
#include "base/dtype.h"
#include "base/error.h"
#include "export/merge.h"
#include "format/tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- before ---- */

/* What stands in a slot of the next step; NULL: a token. */
static const Source *source_at(const Generator *g, int64_t row, int64_t i) {
    int64_t slot = g->feed.used + i;
    if (slot >= g->prompt) return NULL;
    const Source *source = &g->merge->sources[row * g->prompt + slot];
    return source->medium < 0 ? NULL : source;
}

/* The tokens of the next step, embedded. What stands for features need not be in the vocabulary. */
static ferry_status embed_tokens(Generator *g, ferry_tensors **out) {
    const Feed *feed = &g->feed;
    const int64_t shape[2] = {feed->batch, feed->count};
    ferry_tensor *ids;
    ferry_tensors *inputs = ferry_tensors_new();
    if (!inputs) return error_memory(g->error, "tokens", 0);
    ferry_status status =
        ferry_tensors_add(inputs, "input_ids", FERRY_I64, 2, shape, &ids, g->error);
    for (int64_t i = 0; status == FERRY_OK && i < feed->batch * feed->count; i++) {
        int64_t row = i / feed->count, place = i % feed->count;
        int64_t token = feed->tokens[row * feed->capacity + feed->used + place];
        ((int64_t *)ids->data)[i] = source_at(g, row, place) ? 0 : token;
    }
    if (status == FERRY_OK) status = step_run(g->merge->embed, inputs, out, g->error);
    ferry_tensors_free(inputs);
    return status;
}

/* Copy a row of features to a row of the language model's input. */
static ferry_status copy_row(Generator *g, const ferry_tensor *from, int64_t row,
                             const ferry_tensor *to, int64_t place) {
    int64_t size = to->shape[to->rank - 1];
    if (from->shape[from->rank - 1] != size) {
        return error_set(g->error, FERRY_BAD_FORMAT, g->exported->directory,
                         "features of images or audio have size %lld, embeddings of tokens %lld",
                         (long long)from->shape[from->rank - 1], (long long)size);
    }
    size_t in = ferry_dtype_size(from->dtype), out = ferry_dtype_size(to->dtype);
    dtype_convert(from->dtype, (const unsigned char *)from->data + (size_t)(row * size) * in,
                  to->dtype, (unsigned char *)to->data + (size_t)(place * size) * out,
                  (size_t)size);
    return FERRY_OK;
}

static ferry_status put_features(Generator *g, const ferry_tensor *embeds) {
    int64_t count = g->feed.count;
    for (int64_t i = 0; i < g->feed.batch * count; i++) {
        const Source *source = source_at(g, i / count, i % count);
        if (!source) continue;
        TRY(copy_row(g, g->merge->features[source->medium].rows, source->row, embeds, i));
    }
    return FERRY_OK;
}

/* Which slots of the next step stand for images: visual_pos_masks. Their number is `*seen`. */
static ferry_status mark_visual(Generator *g, int64_t *seen) {
    int64_t batch = g->feed.batch, count = g->feed.count;
    const int64_t shape[2] = {batch, count};
    ferry_tensor *mask;
    *seen = 0;
    TRY(ferry_tensors_add(g->merge->given, "visual_pos_masks", FERRY_BOOL, 2, shape, &mask,
                          g->error));
    for (int64_t i = 0; i < batch * count; i++) {
        bool visual = source_at(g, i / count, i % count) != NULL;
        ((unsigned char *)mask->data)[i] = visual;
        *seen += visual;
    }
    return FERRY_OK;
}

/* What layer `layer` adds to them, in their order; without any, a row that nobody looks at. */
static ferry_status add_deep(Generator *g, const StepPort *port, size_t layer, int64_t seen) {
    int64_t count = g->feed.count, next = 0;
    const int64_t shape[2] = {seen ? seen : 1, strtoll(port->port->shape[1], NULL, 10)};
    ferry_tensor *rows;
    TRY(ferry_tensors_add(g->merge->given, port->keyword, port->port->dtype, 2, shape, &rows,
                          g->error));
    for (int64_t i = 0; i < g->feed.batch * count; i++) {
        const Source *source = source_at(g, i / count, i % count);
        const Features *features = source ? &g->merge->features[source->medium] : NULL;
        if (features && layer < features->deep_count)
            TRY(copy_row(g, features->deep[layer], source->row, rows, next++));
    }
    return FERRY_OK;
}

static ferry_status add_visual(Generator *g, const Step *step) {
    static const char name[] = "deepstack_visual_embeds.";
    const StepPort *port;
    int64_t seen;
    if (!step_find(step, "visual_pos_masks")) return FERRY_OK;
    TRY(mark_visual(g, &seen));
    for (size_t i = 0; (port = step_input(step, i)); i++) {
        if (strncmp(port->keyword, name, sizeof name - 1) != 0) continue;
        TRY(add_deep(g, port, strtoul(port->keyword + sizeof name - 1, NULL, 10), seen));
    }
    return FERRY_OK;
}

ferry_status merge_before(Generator *g, const Step *step) {
    Merge *merge = g->merge;
    ferry_tensors *outputs = NULL;
    g->feed.given = g->given;
    if (step != merge->model) return FERRY_OK;
    ferry_tensors_free(merge->given);
    merge->given = ferry_tensors_new();
    if (!merge->given) return error_memory(g->error, "embeddings", 0);
    TRY(embed_tokens(g, &outputs));
    const ferry_tensor *embeds = ferry_tensors_find(outputs, "inputs_embeds");
    ferry_status status = embeds ? put_features(g, embeds)
                                 : error_set(g->error, FERRY_BAD_FORMAT, g->exported->directory,
                                             "expected embed_tokens to return \"inputs_embeds\"");
    if (status == FERRY_OK) status = tensors_lend(merge->given, "inputs_embeds", embeds, g->error);
    if (status == FERRY_OK) status = tensors_keep(merge->given, outputs, g->error);
    ferry_tensors_free(outputs);
    if (status == FERRY_OK) status = add_visual(g, step);
    g->feed.given = merge->given;
    return status;
}

/* ---- after ---- */

/* The last row of every sequence, as lm_head takes it. */
static ferry_status add_last_rows(Generator *g, const ferry_tensor *hidden, ferry_tensors *inputs) {
    const int64_t shape[3] = {hidden->shape[0], 1, hidden->shape[2]};
    size_t size = (size_t)shape[2] * ferry_dtype_size(hidden->dtype);
    ferry_tensor *last;
    TRY(ferry_tensors_add(inputs, "input", hidden->dtype, 3, shape, &last, g->error));
    for (int64_t row = 0; row < shape[0]; row++) {
        int64_t from = (row + 1) * hidden->shape[1] - 1;
        memcpy((unsigned char *)last->data + (size_t)row * size,
               (const unsigned char *)hidden->data + (size_t)from * size, size);
    }
    return FERRY_OK;
}

static void cap(const ferry_tensor *logits, double softcap) {
    for (size_t i = 0; softcap > 0 && i < ferry_tensor_count(logits); i++) {
        unsigned char *place = (unsigned char *)logits->data + i * ferry_dtype_size(logits->dtype);
        double value;
        dtype_convert(logits->dtype, place, FERRY_F64, &value, 1);
        value = tanh(value / softcap) * softcap;
        dtype_convert(FERRY_F64, &value, logits->dtype, place, 1);
    }
}

ferry_status merge_after(Generator *g, ferry_tensors *outputs) {
    const ferry_tensor *hidden = ferry_tensors_find(outputs, "last_hidden_state");
    ferry_tensors *inputs, *made = NULL;
    if (!hidden || hidden->rank != 3 || ferry_tensors_find(outputs, "logits")) return FERRY_OK;
    inputs = ferry_tensors_new();
    if (!inputs) return error_memory(g->error, "hidden states", 0);
    ferry_status status = add_last_rows(g, hidden, inputs);
    if (status == FERRY_OK) status = step_run(g->merge->head, inputs, &made, g->error);
    const ferry_tensor *logits = made ? ferry_tensors_find(made, "output") : NULL;
    if (logits) {
        cap(logits, g->merge->softcap);
        status = tensors_lend(outputs, "logits", logits, g->error);
        if (status == FERRY_OK) status = tensors_keep(outputs, made, g->error);
    }
    ferry_tensors_free(made);
    ferry_tensors_free(inputs);
    return status;
}
