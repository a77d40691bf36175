/* Running a program: bind its symbols, then call the kernels in order.
 *
 * Weights are taken when they are first read: in place when they are one window into a file or
 * memory without conversion, else read into memory. Every tensor goes after its last use. */
#include "run/reference.h"
#include "base/dtype.h"
#include "base/error.h"
#include "run/reference/bind.h"

#include <stdlib.h>
#include <string.h>

/* Elements of a weight that a task reads. */
enum { READ_ELEMENTS = 1 << 16 };

typedef struct Run {
    Program *program;
    Pool *pool;
    ferry_error *error;
    Tensor *values;     /* by value id */
    uint32_t *last_use; /* by value id: number of a node, from 1; UINT32_MAX for outputs */
    Bindings bindings;
    uint32_t position; /* number of the node at hand */
    ferry_status status;
} Run;

static ferry_status run_start(Run *run) {
    size_t symbols = run->program->symbols.symbols.count, count = run->program->value_count;
    run->values = calloc(count + 1, sizeof *run->values);
    run->last_use = calloc(count + 1, sizeof *run->last_use);
    run->bindings = (Bindings){.values = calloc(symbols + 1, sizeof *run->bindings.values),
                               .bound = calloc(symbols + 1, sizeof *run->bindings.bound)};
    if (run->values && run->last_use && run->bindings.values && run->bindings.bound) {
        return FERRY_OK;
    }
    return error_memory(run->error, run->program->architecture, count * sizeof *run->values);
}

static void run_end(Run *run) {
    for (uint32_t id = 0; run->values && id < run->program->value_count; id++) {
        tensor_release(&run->values[id]);
    }
    free(run->values);
    free(run->last_use);
    free(run->bindings.values);
    free(run->bindings.bound);
}

/* ---- weights ---- */

typedef struct Read {
    const Recipe *recipe;
    unsigned char *out;
} Read;

static void read_share(void *context, size_t task) {
    const Read *read = context;
    uint64_t first = task * (uint64_t)READ_ELEMENTS, count = recipe_count(read->recipe) - first;
    recipe_read(read->recipe, first, count < READ_ELEMENTS ? count : READ_ELEMENTS,
                read->out + first * ferry_dtype_size(read->recipe->dtype));
}

static ferry_status take_weight(Run *run, const Value *value) {
    Tensor *tensor = &run->values[value->id];
    const Recipe *recipe = value->recipe;
    uint64_t bytes;
    *tensor = (Tensor){.dtype = recipe->dtype, .rank = recipe->rank};
    memcpy(tensor->shape, recipe->shape, sizeof tensor->shape);
    const RecipePart *part = &recipe->parts[0];
    if (recipe->part_count == 1 && !part->blocks && part->dtype == recipe->dtype &&
        (uintptr_t)part->base % ferry_dtype_size(part->dtype) == 0) {
        memcpy(tensor->strides, part->strides, sizeof tensor->strides);
        tensor->data = (unsigned char *)part->base;
        return FERRY_OK;
    }
    if (!tensor_allocate(tensor, &bytes)) return error_memory(run->error, value->name, bytes);
    Read read = {recipe, tensor->data};
    uint64_t tasks = (recipe_count(recipe) + READ_ELEMENTS - 1) / READ_ELEMENTS;
    pool_run(run->pool, (size_t)tasks, read_share, &read);
    return FERRY_OK;
}

static void take_argument(void *context, Value **use) {
    Run *run = context;
    const Value *value = *use;
    if (run->status != FERRY_OK || run->values[value->id].data) return;
    if (value->recipe)
        run->status = take_weight(run, value);
    else
        run->status =
            error_set(run->error, FERRY_INTERNAL, value->name, "a value was not computed");
}

/* ---- nodes ---- */

/* True for a size that is known only when the kernel has run. */
static bool is_measured(const Run *run, const Value *value, uint32_t dim) {
    for (size_t i = 0; i < run->program->sources.count; i++) {
        const SymSource *source = &run->program->sources.items[i];
        if (source->value == value && source->dim == (int)dim) return true;
    }
    return false;
}

static ferry_status run_node(Run *run, Node *node) {
    Call call = {.node = node,
                 .values = run->values,
                 .bindings = &run->bindings,
                 .pool = run->pool,
                 .error = run->error};
    Kernel kernel = kernel_find(node->op);
    if (!kernel) {
        return call_fail(&call, FERRY_UNSUPPORTED, "the reference runtime has no kernel for it");
    }
    node_each_tensor(node, take_argument, run);
    TRY(run->status);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Value *value = node->outputs[i];
        Tensor *tensor = call_output(&call, i);
        *tensor = (Tensor){.dtype = value->dtype, .rank = value->rank};
        for (uint32_t d = 0; d < value->rank; d++) {
            if (is_measured(run, value, d)) continue;
            TRY(call_evaluate(&call, value->shape[d], &tensor->shape[d]));
        }
    }
    ferry_status status = kernel(&call);
    for (uint32_t i = 0; i < call.temporary_count; i++) tensor_release(&call.temporaries[i]);
    return status;
}

static void note_use(void *context, Value **use) {
    const Run *run = context;
    run->last_use[(*use)->id] = run->position;
}

static void release_used(void *context, Value **use) {
    const Run *run = context;
    if (run->last_use[(*use)->id] == run->position) tensor_release(&run->values[(*use)->id]);
}

static void find_last_uses(Run *run) {
    run->position = 0;
    for (Node *node = run->program->first; node; node = node->next) {
        run->position++;
        node_each_tensor(node, note_use, run);
    }
    for (size_t i = 0; i < run->program->outputs.count; i++) {
        run->last_use[run->program->outputs.items[i].value->id] = UINT32_MAX;
    }
    for (size_t i = 0; i < run->program->sources.count; i++) {
        uint32_t *last = &run->last_use[run->program->sources.items[i].value->id];
        if (*last == 0) *last = 1; /* made for its size or value alone */
    }
}

/* Data-dependent symbols: the sizes or the value of what the node made; NULL: of what was given. */
static void bind_sources(Run *run, const Node *node) {
    for (size_t i = 0; i < run->program->sources.count; i++) {
        const SymSource *source = &run->program->sources.items[i];
        if (source->value->producer != node) continue;
        if (!node) take_argument(run, &run->program->sources.items[i].value);
        if (run->status != FERRY_OK) return;
        const Tensor *tensor = &run->values[source->value->id];
        int64_t number = source->dim >= 0 ? tensor->shape[source->dim] : 0;
        if (source->dim < 0) dtype_convert(tensor->dtype, tensor->data, FERRY_I64, &number, 1);
        run->bindings.values[source->symbol->value] = number;
        run->bindings.bound[source->symbol->value] = true;
    }
}

static ferry_status run_nodes(Run *run) {
    find_last_uses(run);
    run->position = 0;
    bind_sources(run, NULL);
    TRY(run->status);
    for (Node *node = run->program->first; node; node = node->next) {
        run->position++;
        TRY(run_node(run, node));
        bind_sources(run, node);
        node_each_tensor(node, release_used, run);
        for (uint32_t i = 0; i < node->output_count; i++) {
            uint32_t id = node->outputs[i]->id;
            if (run->last_use[id] == 0) tensor_release(&run->values[id]);
        }
    }
    return FERRY_OK;
}

/* ---- inputs and outputs ---- */

static void take_inputs(Run *run, const ferry_tensors *inputs) {
    for (size_t i = 0; i < run->program->inputs.count; i++) {
        const Port *port = &run->program->inputs.items[i];
        const ferry_tensor *given = ferry_tensors_find(inputs, port->name);
        Tensor *tensor = &run->values[port->value->id];
        *tensor = (Tensor){.dtype = given->dtype, .rank = (uint32_t)given->rank};
        tensor->data = given->data;
        memcpy(tensor->shape, given->shape, sizeof tensor->shape);
        tensor_row_major(tensor);
    }
}

static ferry_status give_outputs(Run *run, ferry_tensors *outputs) {
    Call call = {.pool = run->pool};
    for (size_t i = 0; i < run->program->outputs.count; i++) {
        Port *port = &run->program->outputs.items[i];
        take_argument(run, &port->value);
        TRY(run->status);
        const Tensor *from = &run->values[port->value->id];
        Tensor to = *from;
        ferry_tensor *given;
        TRY(ferry_tensors_add(outputs, port->name, from->dtype, from->rank, from->shape, &given,
                              run->error));
        to.data = given->data;
        tensor_row_major(&to);
        call_copy(&call, from, &to);
    }
    return FERRY_OK;
}

ferry_status reference_run(Program *program, const ferry_tensors *inputs, Pool *pool,
                           ferry_tensors **outputs, ferry_error *error) {
    if (program->states.count) {
        return error_set(error, FERRY_UNSUPPORTED, program->states.items[0].name,
                         "the reference runtime keeps no state between runs: export with "
                         "--no-stateful");
    }
    Run run = {.program = program, .pool = pool, .error = error};
    ferry_tensors *results = ferry_tensors_new();
    ferry_status status = results ? run_start(&run) : error_memory(error, "the outputs", 0);
    if (status == FERRY_OK) status = bind_inputs(program, inputs, &run.bindings, error);
    if (status == FERRY_OK) {
        take_inputs(&run, inputs);
        status = run_nodes(&run);
    }
    if (status == FERRY_OK) status = give_outputs(&run, results);
    if (results) run_end(&run);
    if (status != FERRY_OK) {
        ferry_tensors_free(results);
        results = NULL;
    }
    *outputs = results;
    return status;
}

static ferry_status give_results(const Run *run, const Node *node, Arena *arena, void **results) {
    Call call = {0};
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Tensor *from = &run->values[node->outputs[i]->id];
        Tensor to = *from;
        size_t bytes = (size_t)tensor_count(from) * ferry_dtype_size(from->dtype);
        to.data = results[i] = arena_alloc(arena, bytes);
        if (!to.data) return error_memory(run->error, node->outputs[i]->name, bytes);
        tensor_row_major(&to);
        call_copy(&call, from, &to);
    }
    return FERRY_OK;
}

ferry_status reference_evaluate(Program *program, const Node *node, Arena *arena, void **results,
                                ferry_error *error) {
    Run run = {.program = program, .error = error};
    ferry_status status = run_start(&run);
    /* the node is only read */
    if (status == FERRY_OK) status = run_node(&run, (Node *)node);
    if (status == FERRY_OK) status = give_results(&run, node, arena, results);
    run_end(&run);
    return status;
}

bool reference_supports(Op op) {
    return kernel_find(op) != NULL;
}
