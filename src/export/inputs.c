/* Which inputs a program gets, and what is dynamic about them.
 *
 *   samples, not dynamic    the samples' names, dtypes and sizes
 *   samples, dynamic        the samples' names and dtypes; every size symbolic
 *   neither                 the inputs that the family has by default, every size symbolic
 *   dynamic_shapes          on top of any of these: names, bounds and fixed sizes per input
 *
 * dynamic_shapes := input (";" input)*          input := NAME "=" size ("," size)*
 * size := NUMBER | NAME [":" [LOW] ".." [HIGH]]   (LOW defaults to 1, HIGH to no bound) */
#include "base/error.h"
#include "export/export.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUTS = 64 };

typedef struct Inputs {
    const ferry_export_config *config;
    Program *program;
    InputRequest *items;
    size_t count;
    ferry_error *error;
} Inputs;

/* The request called `name`, appended when it is new. NULL when there are too many. */
static InputRequest *request(Inputs *in, const char *name) {
    for (size_t i = 0; i < in->count; i++) {
        if (strcmp(in->items[i].name, name) == 0) return &in->items[i];
    }
    if (in->count == MAX_INPUTS) return NULL;
    InputRequest *added = &in->items[in->count++];
    *added = (InputRequest){.name = arena_string(&in->program->arena, name)};
    return added;
}

static ferry_status too_many(Inputs *in) {
    return error_set(in->error, FERRY_UNSUPPORTED, "inputs", "more than %d inputs", MAX_INPUTS);
}

/* ---- samples ---- */

static ferry_status add_sample(Inputs *in, const ferry_tensor *sample) {
    InputRequest *added = request(in, sample->name);
    if (!added) return too_many(in);
    added->dtype = sample->dtype;
    if (in->config->dynamic) return FERRY_OK;
    if (sample->rank == 0) return FERRY_OK;
    added->rank = (uint32_t)sample->rank;
    for (size_t d = 0; d < sample->rank; d++) {
        added->shape[d] = sym_const(&in->program->symbols, sample->shape[d]);
    }
    return FERRY_OK;
}

/* ---- dynamic_shapes ---- */

typedef struct Spec {
    Inputs *in;
    const char *text, *next;
} Spec;

static ferry_status bad_spec(const Spec *spec, const char *problem) {
    return error_set(spec->in->error, FERRY_INVALID_ARGUMENT, "dynamic shapes",
                     "%s at column %d of \"%s\" (expected something like "
                     "\"input_ids=batch:1..32,seq:1..2048;attention_mask=batch,seq\")",
                     problem, (int)(spec->next - spec->text) + 1, spec->text);
}

static void skip_spaces(Spec *spec) {
    while (isspace((unsigned char)*spec->next)) spec->next++;
}

static bool accept(Spec *spec, const char *token) {
    skip_spaces(spec);
    if (strncmp(spec->next, token, strlen(token)) != 0) return false;
    spec->next += strlen(token);
    return true;
}

static ferry_status read_name(Spec *spec, const char **out) {
    skip_spaces(spec);
    const char *start = spec->next;
    while (isalnum((unsigned char)*spec->next) || strchr("_.", *spec->next)) {
        if (!*spec->next) break;
        if (strncmp(spec->next, "..", 2) == 0) break;
        spec->next++;
    }
    if (spec->next == start) return bad_spec(spec, "expected a name");
    *out = arena_string_n(&spec->in->program->arena, start, (size_t)(spec->next - start));
    return FERRY_OK;
}

/* An optional number. */
static ferry_status read_number(Spec *spec, int64_t otherwise, int64_t *out) {
    skip_spaces(spec);
    *out = otherwise;
    if (!isdigit((unsigned char)*spec->next)) return FERRY_OK;
    char *end;
    errno = 0;
    *out = strtoll(spec->next, &end, 10);
    if (errno) return bad_spec(spec, "the number does not fit 64 bits");
    spec->next = end;
    return FERRY_OK;
}

static ferry_status read_size(Spec *spec, const Sym **out) {
    SymTable *symbols = &spec->in->program->symbols;
    int64_t lower = 1, upper = SYM_UNBOUNDED;
    skip_spaces(spec);
    if (isdigit((unsigned char)*spec->next)) {
        TRY(read_number(spec, 0, &lower));
        *out = sym_const(symbols, lower);
        return FERRY_OK;
    }
    const char *name;
    TRY(read_name(spec, &name));
    bool bounded = accept(spec, ":");
    if (bounded) {
        TRY(read_number(spec, 1, &lower));
        if (!accept(spec, "..")) return bad_spec(spec, "expected \"..\"");
        TRY(read_number(spec, SYM_UNBOUNDED, &upper));
        if (upper < lower) return bad_spec(spec, "the upper bound is below the lower one");
    }
    const Sym *known = sym_lookup(symbols, name);
    if (known && bounded && (known->lower != lower || known->upper != upper)) {
        return bad_spec(spec, "the dimension was given other bounds before");
    }
    *out = sym_symbol(symbols, name, lower, upper);
    return FERRY_OK;
}

static ferry_status read_input(Spec *spec) {
    const char *name;
    TRY(read_name(spec, &name));
    if (!accept(spec, "=")) return bad_spec(spec, "expected \"=\"");
    InputRequest *input = request(spec->in, name);
    if (!input) return too_many(spec->in);
    uint32_t rank = 0;
    do {
        if (rank == FERRY_MAX_RANK) return bad_spec(spec, "more than 8 dimensions");
        TRY(read_size(spec, &input->shape[rank++]));
    } while (accept(spec, ","));
    if (input->rank && input->rank != rank) {
        return error_set(spec->in->error, FERRY_INVALID_ARGUMENT, "dynamic shapes",
                         "\"%s\" has %u dimensions here and %u in the sample inputs", name, rank,
                         input->rank);
    }
    input->rank = rank;
    return FERRY_OK;
}

ferry_status inputs_resolve(const ferry_export_config *config, Program *program,
                            InputRequest **inputs, size_t *count, ferry_error *error) {
    Inputs in = {.config = config, .program = program, .error = error};
    in.items = ARENA_ARRAY(&program->arena, InputRequest, MAX_INPUTS);
    if (!in.items) return error_memory(error, "inputs", 0);
    size_t samples = config->inputs ? ferry_tensors_count(config->inputs) : 0;
    for (size_t i = 0; i < samples; i++) {
        TRY(add_sample(&in, ferry_tensors_at(config->inputs, i)));
    }
    if (config->dynamic_shapes) {
        Spec spec = {&in, config->dynamic_shapes, config->dynamic_shapes};
        do {
            TRY(read_input(&spec));
        } while (accept(&spec, ";"));
        skip_spaces(&spec);
        if (*spec.next) return bad_spec(&spec, "unexpected text");
    }
    *inputs = in.items;
    *count = in.count;
    return FERRY_OK;
}

/* ---- bounds of a program that was traced ---- */

static ferry_status bound_size(Program *program, const Port *port, uint32_t d, const Sym *wanted,
                               ferry_error *error) {
    const Sym *size = port->value->shape[d];
    if (size == wanted || (sym_is_const(size) && sym_is_value(wanted, size->value))) {
        return FERRY_OK;
    }
    if (size->kind != SYM_SYMBOL || sym_is_const(wanted) || wanted->upper < size->lower) {
        return error_set(error, FERRY_UNSUPPORTED, port->name,
                         "size %" PRIu32 " was fixed or bounded otherwise when the program was "
                         "traced: only the upper bound of a dynamic size can be lowered",
                         d);
    }
    sym_narrow(&program->symbols, size, wanted->upper);
    return FERRY_OK;
}

static ferry_status bound_input(Program *program, const InputRequest *request, ferry_error *error) {
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Port *port = &program->inputs.items[i];
        if (strcmp(port->name, request->name) != 0) continue;
        if (port->value->rank != request->rank) {
            return error_set(error, FERRY_INVALID_ARGUMENT, "dynamic shapes",
                             "\"%s\" has %" PRIu32 " dimensions here and %" PRIu32
                             " in the program",
                             port->name, request->rank, port->value->rank);
        }
        for (uint32_t d = 0; d < request->rank; d++) {
            if (!sym_is_const(request->shape[d]) && request->shape[d]->upper == SYM_UNBOUNDED) {
                continue;
            }
            TRY(bound_size(program, port, d, request->shape[d], error));
        }
        return FERRY_OK;
    }
    return error_set(error, FERRY_INVALID_ARGUMENT, "dynamic shapes",
                     "the program has no input \"%s\"", request->name);
}

ferry_status inputs_bound(const ferry_export_config *config, Program *program, ferry_error *error) {
    ferry_export_config shapes = {.dynamic_shapes = config->dynamic_shapes, .inputs = NULL};
    Program *scratch = program_new(); /* whose symbols have the names of the specification */
    InputRequest *inputs;
    size_t count = 0;
    if (!scratch) return error_memory(error, "dynamic shapes", 0);
    ferry_status status = inputs_resolve(&shapes, scratch, &inputs, &count, error);
    for (size_t i = 0; i < count && status == FERRY_OK; i++) {
        if (inputs[i].rank) status = bound_input(program, &inputs[i], error);
    }
    program_free(scratch);
    return status;
}
