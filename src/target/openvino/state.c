/* State in OpenVINO: a variable, which ReadValue reads and Assign leaves. Where a row of the batch comes
 * from is chosen by "beam_idx", by a Gather behind the ReadValue: so the rows of a beam search move, and
 * the CPU plugin makes one operation of cache and attention. */
#include "target/openvino/state.h"
#include "base/error.h"
#include "target/openvino/structure.h"

#include <string.h>

static const char BEAM_INDEX[] = "beam_idx";

/* ---- which caches are state ---- */

typedef struct Match {
    bool *caches[2]; /* by input and by output: is a leaf of a cache */
    bool *gone[2];
    const uint32_t *uses; /* by value id */
} Match;

static int find_port(const Port *ports, size_t count, const bool *caches, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (caches[i] && strcmp(ports[i].name, name) == 0) return (int)i;
    }
    return -1;
}

/* What a step leaves can be what the next one finds. */
static bool can_follow(const Value *before, const Value *after) {
    if (before->dtype != after->dtype || before->rank != after->rank) return false;
    for (uint32_t d = 0; d < before->rank; d++) {
        const Sym *a = before->shape[d], *b = after->shape[d];
        if (sym_is_const(a) && sym_is_const(b) && a != b) return false;
    }
    return true;
}

/* False when a cache that is given has no place to come back: it is not a step that can be repeated. */
static bool match_ports(Program *program, Match *match) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Port *output = &program->outputs.items[i];
        if (!match->caches[1][i]) continue;
        int input =
            find_port(program->inputs.items, program->inputs.count, match->caches[0], output->name);
        if (input < 0 && output->value->rank > 0) return false;
        match->gone[1][i] = true;
        if (input < 0) continue; /* a counter that only tells */
        Value *before = program->inputs.items[input].value;
        if (before == output->value) continue; /* stays as it is: an input, and no output */
        if (match->uses[before->id] == 0) {    /* nobody reads what the last run left */
            match->gone[1][i] = false;
            continue;
        }
        if (!can_follow(before, output->value)) return false;
        match->gone[0][input] = true;
        VEC_PUSH(&program->states, (State){output->name, before, output->value});
    }
    return true;
}

/* The size that the states share as their first: that of the one with the highest rank. */
static const Sym *batch_of(const Program *program) {
    const Value *best = program->states.items[0].before;
    for (size_t i = 1; i < program->states.count; i++) {
        const Value *value = program->states.items[i].before;
        if (value->rank > best->rank) best = value;
    }
    return best->rank ? best->shape[0] : NULL;
}

static ferry_status add_beam_index(Program *program, ferry_error *error) {
    const Sym *batch = batch_of(program);
    if (!batch) return FERRY_OK;
    Value *value = program_value(program, VALUE_INPUT, BEAM_INDEX, FERRY_I32, 1, &batch);
    return structure_add_input(program, BEAM_INDEX, value, error);
}

ferry_status state_keep(Program *program, ferry_error *error) {
    Arena scratch = {0};
    Match match;
    size_t counts[] = {program->inputs.count, program->outputs.count};
    for (int side = 0; side < 2; side++) {
        match.caches[side] = ARENA_ARRAY(&scratch, bool, counts[side]);
        match.gone[side] = ARENA_ARRAY(&scratch, bool, counts[side]);
    }
    match.uses = program_uses(program, &scratch);
    ferry_status status = FERRY_OK;
    if (scratch.failed) {
        status = error_memory(error, program->architecture, 0);
    } else {
        for (int side = 0; side < 2; side++) {
            structure_find_caches(program, side, match.caches[side]);
        }
        if (!match_ports(program, &match)) program->states.count = 0;
    }
    if (status == FERRY_OK && program->states.count) {
        for (int side = 0; side < 2 && status == FERRY_OK; side++) {
            status = structure_prune(program, side, match.gone[side], error);
        }
        if (status == FERRY_OK) status = add_beam_index(program, error);
        program_sweep(program);
    }
    arena_free(&scratch);
    return status == FERRY_OK ? program_health(program, error) : status;
}

/* ---- layers ---- */

/* The CPU plugin has no variables of int64 or bool. */
static ferry_dtype stored_dtype(ferry_dtype dtype) {
    return dtype == FERRY_I64 ? FERRY_I32 : dtype == FERRY_BOOL ? FERRY_U8 : dtype;
}

/* Can the size be read without asking a state? */
static bool is_given(const Ir *ir, const Sym *sym) {
    if (sym->kind == SYM_SYMBOL) {
        const Value *value = ir->dimensions[sym->value].value;
        return value && value->kind == VALUE_INPUT && ir->ports[value->id].layer &&
               !ir->states[value->id].layer;
    }
    for (uint32_t i = 0; i < sym->count; i++) {
        if (!is_given(ir, sym->operands[i])) return false;
    }
    return true;
}

/* What a size that no input tells starts with: 0; where it stays the same, what it was in the sample. */
static int64_t first_size(const State *state, uint32_t d) {
    const Sym *size = state->before->shape[d];
    if (size != state->after->shape[d]) return 0;
    return size->sample > size->lower ? size->sample : size->lower;
}

/* A 0 that is computed, because a plugin may take a literal one for the size that the state always has. */
static IrPort computed_zero(Ir *ir, IrPort beams) {
    IrPort batch =
        ir_layer(ir, "ShapeOf-3", FERRY_I64, FROM(beams), WITH(ATTR_S("output_type", "i64")));
    return ir_layer(ir, "Subtract-1", FERRY_I64, FROM(batch, batch), PLAIN);
}

/* Zeros, of the sizes that the other inputs tell. */
static IrPort initial(Ir *ir, const State *state, IrPort beams) {
    const Value *before = state->before;
    ferry_dtype dtype = stored_dtype(before->dtype);
    IrPort zero = ir_number(ir, 0, dtype), sizes[FERRY_MAX_RANK];
    if (before->rank == 0) return zero;
    for (uint32_t d = 0; d < before->rank; d++) {
        const Sym *size = before->shape[d];
        int64_t first = first_size(state, d);
        if (is_given(ir, size))
            sizes[d] = ir_size(ir, size);
        else
            sizes[d] = first ? ir_ints(ir, &first, 1) : computed_zero(ir, beams);
    }
    IrPort shape =
        ir_layer(ir, "Concat-1", FERRY_I64, sizes, before->rank, WITH(ATTR_I("axis", 0)));
    return ir_layer(ir, "Broadcast-3", dtype, FROM(zero, shape), WITH(ATTR_S("mode", "numpy")));
}

static IrPort read_variable(Ir *ir, const State *state, IrPort beams) {
    const Sym *shape[FERRY_MAX_RANK];
    const Value *before = state->before;
    ferry_dtype dtype = stored_dtype(before->dtype);
    for (uint32_t d = 0; d < before->rank; d++) {
        shape[d] = before->shape[d] == state->after->shape[d] ? before->shape[d] : NULL;
    }
    return ir_layer(ir, "ReadValue-6", dtype, FROM(initial(ir, state, beams)),
                    WITH(ATTR_S("variable_id", state->name),
                         ATTR_S("variable_type", ir_element_type(dtype)),
                         ATTR_S("variable_shape", ir_partial_shape(ir, before->rank, shape))));
}

void state_read(Ir *ir) {
    const Program *program = ir->program;
    if (program->states.count == 0) return;
    const Port *last = &program->inputs.items[program->inputs.count - 1];
    const Sym *batch = batch_of(program);
    IrPort beams = ir->ports[last->value->id];
    for (size_t i = 0; i < program->states.count; i++) {
        const State *state = &program->states.items[i];
        const Value *before = state->before;
        ir->label = state->name;
        IrPort port = ir->states[before->id] = read_variable(ir, state, beams);
        if (before->rank && before->shape[0] == batch) {
            port = ir_layer(ir, "Gather-8", stored_dtype(before->dtype),
                            FROM(port, beams, ir_axis(ir, 0)), PLAIN);
        }
        if (stored_dtype(before->dtype) != before->dtype) {
            port = ir_convert(ir, port, before->dtype);
        }
        ir->ports[before->id] = port;
    }
    ir->label = NULL;
}

void state_assign(Ir *ir) {
    const Program *program = ir->program;
    for (size_t i = 0; i < program->states.count; i++) {
        const State *state = &program->states.items[i];
        ferry_dtype dtype = stored_dtype(state->after->dtype);
        IrPort port = ir_value(ir, state->after);
        if (dtype != state->after->dtype) port = ir_convert(ir, port, dtype);
        ir->label = state->name;
        ir_layer_outputs(ir, "Assign-6", NULL, 0, FROM(port),
                         WITH(ATTR_S("variable_id", state->name)));
    }
    ir->label = NULL;
}
