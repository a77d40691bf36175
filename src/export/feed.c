/* Inputs of steps, each kind of input a row in a table. */
#include "export/feed.h"
#include "base/dtype.h"
#include "base/error.h"
#include "format/json.h"
#include "format/tensors.h"

#include <stdlib.h>
#include <string.h>

/* ---- configuration ---- */

static int64_t integer(const json_t *config, const char *key) {
    return json_integer_value(json_object_get(config, key));
}

/* Phi-3 turns keys by other frequencies when a sequence is longer than this, and Transformers computes the whole
 * sequence again then (prepare_inputs_for_generation in modeling_phi3.py). */
static int64_t short_length(const json_t *config) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    const json_t *rope = json_object_get(config, "rope_parameters");
    const json_t *length = json_object_get(config, "original_max_position_embeddings");
    if (!rope) rope = json_object_get(config, "rope_scaling");
    if (!type || strcmp(type, "phi3") != 0 || !json_object_get(rope, "long_factor")) return 0;
    return length ? json_integer_value(length) : 4096;
}

ferry_status feed_configure(Feed *feed, const ferry_exported *exported, ferry_error *error) {
    Arena arena = {0};
    json_t *config;
    const char *path = path_join(&arena, exported->directory, "config.json");
    ferry_status status =
        path_exists(path) ? json_read_object(path, &config, error) : FERRY_NOT_FOUND;
    arena_free(&arena);
    if (status == FERRY_NOT_FOUND) return FERRY_OK;
    if (status != FERRY_OK) return status;
    const json_t *text = json_object_get(config, "text_config");
    if (!json_is_object(text)) text = config;
    feed->window = integer(text, "sliding_window");
    feed->chunk = integer(text, "attention_chunk_size");
    feed->vocabulary = integer(text, "vocab_size");
    feed->short_length = short_length(text);
    feed->both_ways = json_is_true(json_object_get(text, "use_bidirectional_attention"));
    /* Classes without types of layers have sliding layers only, unless an option turns them off. */
    const json_t *option = json_object_get(text, "use_sliding_window");
    feed->slides = feed->window > 0 && !json_is_false(option);
    json_decref(config);
    return FERRY_OK;
}

/* ---- the kinds ---- */

typedef struct Input {
    const Feed *feed;
    const Step *step;
    const ferry_port *port;
    const char *keyword;
    ferry_tensors *out;
    ferry_error *error;
} Input;

static ferry_status add(const Input *in, size_t rank, const int64_t *shape, ferry_tensor **out) {
    return ferry_tensors_add(in->out, in->keyword, in->port->dtype, rank, shape, out, in->error);
}

/* Set element `i` of a tensor of integers or truth values. */
static void set(ferry_tensor *tensor, size_t i, int64_t value) {
    size_t size = ferry_dtype_size(tensor->dtype);
    dtype_convert(FERRY_I64, &value, tensor->dtype, (unsigned char *)tensor->data + i * size, 1);
}

static ferry_status add_ids(const Input *in) {
    const Feed *feed = in->feed;
    const int64_t shape[2] = {feed->batch, feed->count};
    ferry_tensor *tensor;
    TRY(add(in, 2, shape, &tensor));
    for (int64_t row = 0; row < feed->batch; row++) {
        for (int64_t i = 0; i < feed->count; i++) {
            set(tensor, (size_t)(row * feed->count + i),
                feed->tokens[row * feed->capacity + feed->used + i]);
        }
    }
    return FERRY_OK;
}

/* The position of kind `k` of `kinds` in a slot, where `before` tokens stand before it. */
static int64_t position(const Feed *feed, int64_t kinds, int64_t k, int64_t row, int64_t slot,
                        int64_t before) {
    int64_t place = k - (kinds - 3); /* the first of four is text's */
    if (!feed->places || kinds < 3 || place < 0) return feed->first_position + before;
    return feed->places[(place * feed->batch + row) * feed->capacity + slot];
}

/* How many tokens that are no padding stand before each slot; 0 at padding. With several kinds of positions
 * ((text,) time, height, width), [kinds, batch, count], text has the same in all. */
static ferry_status add_positions(const Input *in) {
    const Feed *feed = in->feed;
    int64_t kinds = in->port->rank == 3 ? strtoll(in->port->shape[0], NULL, 10) : 1;
    const int64_t shape[3] = {kinds, feed->batch, feed->count};
    ferry_tensor *tensor;
    TRY(add(in, in->port->rank, in->port->rank == 3 ? shape : shape + 1, &tensor));
    for (int64_t row = 0; row < feed->batch; row++) {
        const unsigned char *valid = feed->valid + row * feed->capacity;
        int64_t before = 0;
        for (int64_t s = 0; s < feed->used + feed->count; s++) {
            int64_t i = s - feed->used;
            for (int64_t k = 0; k < kinds && i >= 0; k++) {
                set(tensor, (size_t)((k * feed->batch + row) * feed->count + i),
                    valid[s] ? position(feed, kinds, k, row, s, before) : 0);
            }
            before += valid[s];
        }
    }
    return FERRY_OK;
}

static ferry_status add_slots(const Input *in) {
    ferry_tensor *tensor;
    TRY(add(in, 1, &in->feed->count, &tensor));
    for (int64_t i = 0; i < in->feed->count; i++) set(tensor, (size_t)i, in->feed->used + i);
    return FERRY_OK;
}

/* How many keys there are. */
static int64_t key_count(const Input *in) {
    bool fixed = in->feed->cache_length > 0 && step_takes_cache(in->step);
    return fixed ? in->feed->cache_length : in->feed->used + in->feed->count;
}

/* Is a mask as long as the tokens of the step, because the model has no keys? */
static bool masks_tokens(const Input *in) {
    const StepPort *other;
    for (size_t i = 0; (other = step_input(in->step, i)); i++) {
        bool ids =
            !strcmp(other->keyword, "input_ids") || !strcmp(other->keyword, "decoder_input_ids");
        if (ids && other->port->rank == 2)
            return strcmp(other->port->shape[1], in->port->shape[1]) == 0;
    }
    return false;
}

/* Which keys are there and no padding, [batch, keys]; or which of the tokens are none. */
static ferry_status add_key_mask(const Input *in) {
    const Feed *feed = in->feed;
    bool tokens = masks_tokens(in);
    const int64_t shape[2] = {feed->batch, tokens ? feed->count : key_count(in)};
    int64_t first = tokens ? feed->used : 0, filled = feed->used + feed->count - first;
    ferry_tensor *tensor;
    TRY(add(in, 2, shape, &tensor));
    for (int64_t row = 0; row < feed->batch; row++) {
        for (int64_t s = 0; s < shape[1] && s < filled; s++) {
            set(tensor, (size_t)(row * shape[1] + s),
                feed->valid[row * feed->capacity + first + s]);
        }
    }
    return FERRY_OK;
}

/* Are the slots of one block of tokens that see each other? */
static bool shares_block(const Feed *feed, int64_t row, int64_t q, int64_t k) {
    const int64_t *blocks = feed->blocks ? feed->blocks + row * feed->capacity : NULL;
    return blocks && blocks[q] >= 0 && blocks[q] == blocks[k];
}

/* May the query in slot q see the key in slot k, as far as their places go? */
static bool sees(const Input *in, int64_t row, int64_t q, int64_t k) {
    const Feed *feed = in->feed;
    const char *type = strrchr(in->keyword, '.');
    bool shared = shares_block(feed, row, q, k);
    if (shared && !feed->blocks_slide) return true;
    if (k > q && !shared) return false;
    if (!type) return !feed->slides || q - k < feed->window;
    if (strcmp(type, ".sliding_attention") == 0) return feed->window <= 0 || q - k < feed->window;
    if (strcmp(type, ".chunked_attention") == 0 && feed->chunk > 0)
        return q / feed->chunk == k / feed->chunk;
    return true;
}

/* Which keys each query sees: [batch, 1, count, keys], true, or 0 in an additive mask. */
static ferry_status add_whole_mask(const Input *in) {
    const Feed *feed = in->feed;
    const int64_t shape[4] = {feed->batch, 1, feed->count, key_count(in)};
    bool additive = in->port->dtype != FERRY_BOOL;
    const double lowest = -3.4028234663852886e38;
    size_t size = ferry_dtype_size(in->port->dtype), at = 0;
    ferry_tensor *tensor;
    TRY(add(in, 4, shape, &tensor));
    for (int64_t row = 0; row < feed->batch; row++) {
        const unsigned char *valid = feed->valid + row * feed->capacity;
        for (int64_t q = feed->used; q < feed->used + feed->count; q++) {
            for (int64_t k = 0; k < shape[3]; k++, at++) {
                bool seen = k < feed->used + feed->count && valid[k] && sees(in, row, q, k);
                if (!additive)
                    ((unsigned char *)tensor->data)[at] = seen;
                else if (!seen)
                    dtype_convert(FERRY_F64, &lowest, tensor->dtype,
                                  (unsigned char *)tensor->data + at * size, 1);
            }
        }
    }
    return FERRY_OK;
}

/* A cache without entries, or of zeros: the first size is the batch's, another one that is not a number the
 * cache's length. */
static ferry_status add_empty_cache(const Input *in) {
    int64_t shape[FERRY_MAX_RANK];
    for (size_t d = 0; d < in->port->rank; d++) {
        char *end;
        shape[d] = strtoll(in->port->shape[d], &end, 10);
        if (end == in->port->shape[d] || *end) {
            shape[d] = d == 0 ? in->feed->batch : in->feed->cache_length;
        }
    }
    if (strstr(in->keyword, "_sliding_window_tensor")) {
        ferry_tensor *tensor;
        TRY(add(in, 0, NULL, &tensor));
        set(tensor, 0, in->feed->window);
        return FERRY_OK;
    }
    return add(in, in->port->rank, shape, NULL);
}

/* Zeros [batch, count], or of the size that the program was traced with. */
static ferry_status add_zeros(const Input *in) {
    const int64_t fixed = strtoll(in->port->shape[1], NULL, 10);
    const int64_t shape[2] = {in->feed->batch, fixed > 0 ? fixed : in->feed->count};
    return add(in, 2, shape, NULL);
}

/* Which row each one goes on from, of a model that keeps its cache itself. */
static ferry_status add_beams(const Input *in) {
    ferry_tensor *tensor;
    TRY(add(in, 1, &in->feed->batch, &tensor));
    for (int64_t i = 0; i < in->feed->batch; i++) {
        set(tensor, (size_t)i, in->feed->beams ? in->feed->beams[i] : i);
    }
    return FERRY_OK;
}

static const struct {
    const char *keyword; /* or the keyword before a dot */
    size_t rank;         /* 0: any */
    ferry_status (*add)(const Input *in);
} kinds[] = {
    {"input_ids", 2, add_ids},
    {"decoder_input_ids", 2, add_ids},
    {"position_ids", 0, add_positions},
    {"decoder_position_ids", 0, add_positions},
    {"cache_position", 1, add_slots},
    {"attention_mask", 2, add_key_mask},
    {"attention_mask", 4, add_whole_mask},
    {"decoder_attention_mask", 2, add_key_mask},
    {"decoder_attention_mask", 4, add_whole_mask},
    {"beam_idx", 1, add_beams},
    {"token_type_ids", 2, add_zeros},
    {"mm_token_type_ids", 2, add_zeros},
};

static bool is_kind(const Input *in, size_t kind) {
    size_t length = strlen(kinds[kind].keyword);
    if (kinds[kind].rank && kinds[kind].rank != in->port->rank) return false;
    return strncmp(in->keyword, kinds[kind].keyword, length) == 0 &&
           (!in->keyword[length] || in->keyword[length] == '.');
}

static ferry_status add_input(const Input *in, const StepPort *port) {
    const Feed *feed = in->feed;
    if (port->carried && !feed->starts) return FERRY_OK;
    const ferry_tensor *given = NULL;
    if (port->carried && feed->cache) given = ferry_tensors_find(feed->cache, in->keyword);
    if (!given && feed->given) given = ferry_tensors_find(feed->given, in->keyword);
    if (given) return tensors_lend(in->out, in->keyword, given, in->error);
    if (strncmp(in->keyword, "cache.", 6) == 0) return add_empty_cache(in);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (is_kind(in, i)) return kinds[i].add(in);
    }
    return error_set(in->error, FERRY_INVALID_ARGUMENT, in->keyword,
                     "the component \"%s\" takes this input, which was not given",
                     ferry_exported_name(step_component(in->step)));
}

ferry_status feed_make(const Feed *feed, const Step *step, ferry_tensors **out,
                       ferry_error *error) {
    const StepPort *port;
    ferry_tensors *inputs = ferry_tensors_new();
    ferry_status status = inputs ? FERRY_OK : error_memory(error, "inputs", 0);
    for (size_t i = 0; status == FERRY_OK && (port = step_input(step, i)); i++) {
        const Input in = {.feed = feed,
                          .step = step,
                          .port = port->port,
                          .keyword = port->keyword,
                          .out = inputs,
                          .error = error};
        status = add_input(&in, port);
    }
    if (status == FERRY_OK)
        *out = inputs;
    else
        ferry_tensors_free(inputs);
    return status;
}
