/* Every invariant of a program, checked after each pass in debug and test builds:
 * names are unique; every argument has the kind that the schema asks for; every tensor is defined
 * before it is read; types are what the type rules say; weights have recipes of their type; the
 * leaves of the nested structures are the inputs and outputs; writes keep types. */
#include "base/error.h"
#include "graph/infer.h"
#include "graph/program.h"

#include <string.h>

typedef struct Verify {
    Program *program;
    const char *when;
    unsigned char *defined; /* by value id */
    const Node *node;
    ferry_status status;
    ferry_error *error;
} Verify;

static void fail(Verify *v, const char *problem, const char *detail) {
    if (v->status != FERRY_OK) return;
    const char *scope = v->node ? v->node->scope : v->program->architecture;
    v->status =
        error_set(v->error, FERRY_INTERNAL, scope, "after %s: %s%s%s%s", v->when,
                  v->node ? op_name(v->node->op) : "", v->node ? ": " : "", problem, detail);
}

static void check_use(void *context, Value **use) {
    Verify *v = context;
    if (!*use)
        fail(v, "reads a missing tensor", "");
    else if ((*use)->id >= v->program->value_count)
        fail(v, "reads a foreign value ", (*use)->name);
    else if (!v->defined[(*use)->id])
        fail(v, "reads a value before it is made: ", (*use)->name);
}

static void define(Verify *v, const Value *value) {
    if (value->id >= v->program->value_count)
        fail(v, "a foreign value ", value->name);
    else if (v->defined[value->id]++)
        fail(v, "a value is made twice: ", value->name);
    if (map_find(&v->program->names, value->name) != value) {
        fail(v, "a name is not registered for its value: ", value->name);
    }
}

static void check_node(Verify *v, Node *node) {
    v->node = node;
    node_each_tensor(node, check_use, v);
    if (v->status != FERRY_OK) return;
    InferredType types[INFER_MAX_OUTPUTS];
    uint32_t count;
    ferry_error problem = {0};
    if (infer_types(v->program, node->op, node->args, types, &count, &problem) != FERRY_OK) {
        fail(v, "", problem.message);
        return;
    }
    if (count != node->output_count) fail(v, "the number of outputs is wrong", "");
    for (uint32_t i = 0; i < count && v->status == FERRY_OK; i++) {
        const Value *value = node->outputs[i];
        if (value->producer != node || value->index != i)
            fail(v, "an output has another maker", "");
        if (value->dtype != types[i].dtype || value->rank != types[i].rank ||
            !shape_equal(value->rank, value->shape, types[i].shape)) {
            fail(v, "the recorded type differs from the inferred one: ", value->name);
        }
        define(v, value);
    }
}

static void check_weight(Verify *v, const Value *weight) {
    const Recipe *recipe = weight->recipe;
    define(v, weight);
    if (!recipe) {
        fail(v, "a weight without a recipe: ", weight->name);
        return;
    }
    bool equal = recipe->dtype == weight->dtype && recipe->rank == weight->rank;
    for (uint32_t d = 0; equal && d < recipe->rank; d++) {
        equal = sym_is_value(weight->shape[d], recipe->shape[d]);
    }
    if (!equal) fail(v, "a recipe makes another type: ", weight->name);
}

static void check_state(Verify *v, State *state) {
    check_use(v, &state->after);
    if (state->before->dtype != state->after->dtype || state->before->rank != state->after->rank) {
        fail(v, "a state changes its type: ", state->name);
    }
}

/* Leaves of the structure, and behind them only what inputs and states hold afterwards. */
static void check_outputs(Verify *v) {
    const Program *program = v->program;
    size_t leaves = program_leaf_outputs(program);
    bool equal = !program->output_tree ||
                 tree_leaves(program->output_tree) == leaves + program->output_constants.count;
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Port *port = &program->outputs.items[i];
        const Value *place = port->writes;
        equal = equal && (i < leaves || place);
        if (place && place->kind != VALUE_INPUT && place->kind != VALUE_STATE)
            fail(v, "an output writes what is no input or state: ", port->name);
        if (place && (place->dtype != port->value->dtype || place->rank != port->value->rank))
            fail(v, "an output changes the type of ", place->name);
    }
    if (!equal) fail(v, "the output structure has another number of leaves", "");
}

ferry_status program_verify(Program *program, const char *when, ferry_error *error) {
    Arena scratch = {0};
    Verify v = {.program = program, .when = when, .error = error};
    TRY(program_health(program, error));
    v.defined = arena_alloc(&scratch, program->value_count);
    if (!v.defined) return error_memory(error, "the verifier", program->value_count);
    for (size_t i = 0; i < program->inputs.count; i++) define(&v, program->inputs.items[i].value);
    for (size_t i = 0; i < program->states.count; i++) define(&v, program->states.items[i].before);
    for (size_t i = 0; i < program->weights.count; i++) check_weight(&v, program->weights.items[i]);
    for (Node *node = program->first; node && v.status == FERRY_OK; node = node->next) {
        check_node(&v, node);
    }
    v.node = NULL;
    for (size_t i = 0; i < program->outputs.count && v.status == FERRY_OK; i++) {
        check_use(&v, &program->outputs.items[i].value);
    }
    for (size_t i = 0; i < program->states.count && v.status == FERRY_OK; i++) {
        check_state(&v, &program->states.items[i]);
    }
    if (program->input_tree && tree_leaves(program->input_tree) !=
                                   program->inputs.count + program->input_constants.count) {
        fail(&v, "the input structure has another number of leaves", "");
    }
    check_outputs(&v);
    arena_free(&scratch);
    return v.status;
}
