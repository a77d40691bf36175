/* Inputs made up from an export's signature, for checking it: plausible, varied and always the same. */
#include "base/error.h"
#include "export/export.h"

#include <stdlib.h>
#include <string.h>

/* A small deterministic generator (the multiplier of Numerical Recipes). */
static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- sizes ---- */

/* So low that no size computed from it is a size. */
#define UNKNOWN (-((int64_t)1 << 40))

/* The symbols of an export and what they stand for. */
typedef struct Sizes {
    const Manifest *manifest;
    Arena arena;
    SymTable symbols;
    int64_t *values; /* by symbol; UNKNOWN: not chosen yet */
    int64_t cell;    /* patches of an image, where there are grids */
    int round;
    ferry_error *error;
} Sizes;

static const ferry_port *find_input(const Sizes *sizes, const char *keyword) {
    for (size_t i = 0; i < sizes->manifest->input_count; i++) {
        const ferry_port *port = &sizes->manifest->inputs[i];
        if (strcmp(port_keyword(port->name), keyword) == 0) return port;
    }
    return NULL;
}

static ferry_status cannot(const Sizes *sizes, const ferry_port *port, size_t d) {
    return error_set(sizes->error, FERRY_UNSUPPORTED, port->name,
                     "cannot make up a size for the dimension \"%s\": give --inputs",
                     port->shape[d]);
}

/* The grids of images must have as many patches as there are: the fewest that an image can have, for each. */
static void fit_grids(Sizes *sizes) {
    const ferry_port *patches = find_input(sizes, "hidden_states");
    const ferry_port *grids = find_input(sizes, "grid_thw");
    const Sym *rows = patches ? sym_lookup(&sizes->symbols, patches->shape[0]) : NULL;
    const Sym *images = grids ? sym_lookup(&sizes->symbols, grids->shape[0]) : NULL;
    if (!rows || !images) return;
    sizes->cell = rows->lower;
    while (sizes->values[images->value] > 1 &&
           sizes->values[images->value] * rows->lower > rows->upper)
        sizes->values[images->value]--;
    sizes->values[rows->value] = sizes->values[images->value] * rows->lower;
}

/* Choose for every symbol that is a size by itself: 2 and 3 for first sizes, 7 and 11 for others, as far as the
 * range allows. */
static ferry_status choose_sizes(Sizes *sizes) {
    static const int64_t wanted[2][2] = {{2, 7}, {3, 11}};
    const Manifest *manifest = sizes->manifest;
    const char *name;
    json_t *range;
    json_object_foreach(manifest->ranges, name, range) {
        json_t *lower = json_array_get(range, 0), *upper = json_array_get(range, 1);
        int64_t most = json_is_integer(upper) ? json_integer_value(upper) : SYM_UNBOUNDED;
        int64_t least = json_integer_value(lower);
        if (!json_is_integer(lower) || least > most) {
            return error_set(sizes->error, FERRY_BAD_FORMAT, "export.json",
                             "\"ranges\": expected two bounds of \"%s\", the lower one first",
                             name);
        }
        sym_symbol(&sizes->symbols, name, least, most);
    }
    size_t count = sizes->symbols.symbols.count;
    sizes->values = ARENA_ARRAY(&sizes->arena, int64_t, count + 1);
    if (!sizes->values) return error_memory(sizes->error, "inputs", 0);
    for (size_t i = 0; i < count; i++) sizes->values[i] = UNKNOWN;
    for (size_t i = 0; i < manifest->input_count; i++) {
        const ferry_port *port = &manifest->inputs[i];
        for (size_t d = 0; d < port->rank; d++) {
            const Sym *symbol = sym_lookup(&sizes->symbols, port->shape[d]);
            if (!symbol || sizes->values[symbol->value] != UNKNOWN) continue;
            int64_t size = wanted[sizes->round][d > 0];
            if (size < symbol->lower) size = symbol->lower;
            sizes->values[symbol->value] = size > symbol->upper ? symbol->upper : size;
        }
    }
    fit_grids(sizes);
    /* What only states have is empty at first. */
    for (size_t i = 0; manifest->state_count && i < count; i++) {
        if (sizes->values[i] == UNKNOWN) sizes->values[i] = 0;
    }
    return FERRY_OK;
}

static ferry_status sample_size(Sizes *sizes, const ferry_port *port, size_t d, int64_t *out) {
    const Sym *size;
    if (sym_parse(&sizes->symbols, port->shape[d], false, &size, NULL) != FERRY_OK ||
        !sym_evaluate(size, sizes->values, out) || *out < 0) {
        return cannot(sizes, port, d);
    }
    return FERRY_OK;
}

/* ---- contents ---- */

static void fill_integers(const char *name, ferry_tensor *tensor, int64_t vocabulary) {
    int64_t *values = tensor->data;
    size_t count = ferry_tensor_count(tensor);
    int64_t columns = tensor->rank ? tensor->shape[tensor->rank - 1] : 1;
    uint32_t state = 20;
    bool mask = strstr(name, "attention_mask") != NULL;
    bool position = strstr(name, "position_ids") != NULL,
         type = strstr(name, "token_type_ids") != NULL;
    for (size_t i = 0; i < count; i++) {
        int64_t row = (int64_t)i / columns, column = (int64_t)i % columns;
        if (mask)
            values[i] = !(row == 1 && column >= columns - 2 && columns > 2);
        else if (position)
            values[i] = column;
        else if (type || tensor->rank == 0) /* a counter of a cache */
            values[i] = 0;
        else
            values[i] = 3 + (int64_t)(next_random(&state) % (uint32_t)(vocabulary - 3));
    }
}

static ferry_status fill(const ferry_port *port, ferry_tensor *tensor, int64_t vocabulary,
                         ferry_error *error) {
    uint32_t state = 7;
    if (port->dtype == FERRY_I64) {
        fill_integers(port->name, tensor, vocabulary);
    } else if (port->dtype == FERRY_F32) {
        float *values = tensor->data;
        for (size_t i = 0; i < ferry_tensor_count(tensor); i++) {
            values[i] = (float)next_random(&state) / (float)(1 << 23) - 1;
        }
    } else if (port->dtype == FERRY_BOOL) {
        bool one = strcmp(port->name, "visual_pos_masks") == 0; /* there is at least one feature */
        memset(tensor->data, 1, one ? 1 : ferry_tensor_count(tensor));
    } else if (port->dtype == FERRY_I32 && strcmp(port->name, "beam_idx") == 0) {
        int32_t *values = tensor->data; /* every row goes on from itself */
        for (size_t i = 0; i < ferry_tensor_count(tensor); i++) values[i] = (int32_t)i;
    } else {
        return error_set(error, FERRY_UNSUPPORTED, port->name,
                         "cannot make up an input of dtype %s: give --inputs",
                         ferry_dtype_name(port->dtype));
    }
    return FERRY_OK;
}

/* vocab_size of the export's config.json, or a number that every vocabulary has. */
static int64_t vocabulary_size(const char *directory, Arena *arena) {
    json_t *config;
    int64_t size = 0;
    if (json_read_object(path_join(arena, directory, "config.json"), &config, NULL) == FERRY_OK) {
        size = json_integer_value(json_object_get(config, "vocab_size"));
        json_decref(config);
    }
    return size > 3 && size < INT32_MAX ? size : 16;
}

/* Squares of one frame. */
static void fill_grids(const Sizes *sizes, ferry_tensor *tensor) {
    int64_t side = 1;
    while ((side + 1) * (side + 1) <= sizes->cell) side++;
    for (size_t i = 0; i < ferry_tensor_count(tensor); i++) {
        ((int64_t *)tensor->data)[i] = i % 3 ? side : 1;
    }
}

static ferry_status make_input(Sizes *sizes, const ferry_port *port, int64_t vocabulary,
                               ferry_tensors *out) {
    int64_t shape[FERRY_MAX_RANK];
    ferry_tensor *tensor;
    for (size_t d = 0; d < port->rank; d++) TRY(sample_size(sizes, port, d, &shape[d]));
    TRY(ferry_tensors_add(out, port_keyword(port->name), port->dtype, port->rank, shape, &tensor,
                          sizes->error));
    TRY(fill(port, tensor, vocabulary, sizes->error));
    if (sizes->cell && port == find_input(sizes, "grid_thw")) fill_grids(sizes, tensor);
    return FERRY_OK;
}

ferry_status samples_make(const ferry_exported *exported, int round, ferry_tensors **out,
                          ferry_error *error) {
    const Manifest *manifest = &exported->manifest;
    Sizes sizes = {.manifest = manifest, .round = round, .error = error};
    sym_table_init(&sizes.symbols, &sizes.arena);
    int64_t vocabulary = vocabulary_size(exported->directory, &sizes.arena);
    *out = ferry_tensors_new();
    ferry_status status = *out ? choose_sizes(&sizes) : error_memory(error, "inputs", 0);
    if (status == FERRY_OK && manifest->input_count == 0) {
        status = error_set(error, FERRY_UNSUPPORTED, exported->directory,
                           "the export does not describe its inputs: give --inputs");
    }
    for (size_t i = 0; i < manifest->input_count && status == FERRY_OK; i++) {
        status = make_input(&sizes, &manifest->inputs[i], vocabulary, *out);
    }
    sym_table_free(&sizes.symbols);
    arena_free(&sizes.arena);
    return status;
}
