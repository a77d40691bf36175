/* The outputs of a program, and what it leaves in its inputs and states.
 *
 * An output is a tensor of its own: what is an input, a weight, a view or another output is copied. What a
 * program leaves in a state is written over it, and so is what it leaves in an input where both have the
 * same kind of memory: there is one tensor then, which is input and output. It is found at the end, when it
 * is known who reads what and when, that the result of an instruction can lie over what was there before:
 * nothing reads that any more, but possibly the instruction itself, where its kernel can bear it. A state
 * for which that does not hold is copied to at the end. */
#include "target/executorch/emit.h"

#include <string.h>

/* ---- what becomes of inputs ---- */

static bool is_written(const Program *program, const Value *input) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        if (program->outputs.items[i].writes == input) return true;
    }
    return false;
}

/* The input that this value is written to; NULL: none. */
static Value *input_of(const Program *program, const Value *value) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Port *output = &program->outputs.items[i];
        if (output->value == value && output->writes && output->writes->kind == VALUE_INPUT) {
            return output->writes;
        }
    }
    return NULL;
}

void outputs_keep_inputs(Program *program) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        Port *output = &program->outputs.items[i];
        bool same = output->value->kind == VALUE_INPUT && !is_written(program, output->value);
        if (same) output->writes = output->value;
        if (!output->writes) output->writes = input_of(program, output->value);
    }
}

void pte_mark_updates(Pte *p) {
    for (size_t i = 0; i < p->program->outputs.count; i++) {
        const Port *output = &p->program->outputs.items[i];
        const Value *value = output->writes ? output->value : NULL;
        while (value && value->producer &&
               (value->producer->op == OP_INDEX_PUT || value->producer->op == OP_INDEX_COPY)) {
            p->updates[value->id] = true;
            value = value->producer->args[0].tensor;
        }
    }
}

/* ---- writing in place ---- */

static Slot *slot_of(Pte *p, PteValue value) {
    return &p->slots.items[value];
}

static bool same_type(const Slot *a, const Slot *b) {
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank && !a->varies &&
                !b->varies;
    for (uint32_t d = 0; d < a->rank && same; d++) same = a->shape[d] == b->shape[d];
    return same;
}

static bool calls(const Pte *p, const Instruction *instruction, const char *kernel) {
    return !instruction->delegate && strcmp(p->operators.items[instruction->callee], kernel) == 0;
}

/* What an instruction reads and may write its result over, element by element; -1: nothing. */
static PteValue overwritten(const Pte *p, const Instruction *instruction, PteValue wanted) {
    static const struct {
        const char *name;
        uint32_t operands;
    } kernels[] = {{"aten::index_put.out", 1},
                   {"aten::add.out", 2},
                   {"aten::add.Scalar_out", 1},
                   {"aten::where.self_out", 3}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (!calls(p, instruction, kernels[i].name)) continue;
        for (uint32_t k = 1; k < kernels[i].operands; k++) {
            if (instruction->args[k] == wanted) return wanted;
        }
        return instruction->args[0];
    }
    return -1;
}

/* Has the tensor a view that no instruction makes? It would have to move too. */
static bool has_fixed_view(const Pte *p, PteValue value) {
    for (size_t i = 0; i < p->slots.count; i++) {
        const Slot *slot = &p->slots.items[i];
        if (slot->kind == SLOT_TENSOR && slot->base == value && !slot->unplanned) return true;
    }
    return false;
}

/* Can what becomes of `onto`, and ends in `value`, all lie in its memory? `chain` gets what does. */
static uint32_t follow(Pte *p, PteValue value, PteValue onto, PteValue *chain, uint32_t most) {
    const Slot *place = slot_of(p, onto);
    uint32_t count = 0;
    while (value != onto) {
        const Slot *slot = slot_of(p, value);
        bool own = slot->kind == SLOT_TENSOR && slot->base < 0 && slot->onto < 0 &&
                   !slot->constant && !slot->state && same_type(slot, place);
        if (!own || count == most || (place->unplanned && has_fixed_view(p, value))) return 0;
        chain[count++] = value;
        if (place->last < slot->first) return count;
        const Instruction *maker = &p->instructions.items[slot->first];
        if (maker->args[maker->count - 1] != value) return 0;
        PteValue before = overwritten(p, maker, onto);
        if (before < 0 || slot_of(p, before)->last != slot->first) return 0;
        value = before;
    }
    return count;
}

/* The kernel that writes rows in place takes one index of one dimension, and a row for each. */
static bool writes_rows(Pte *p, const Instruction *put) {
    const Slot *into = slot_of(p, put->args[0]), *list = slot_of(p, put->args[1]);
    const Slot *rows = slot_of(p, put->args[2]), *index = NULL;
    uint32_t dim = 0, found = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i] < 0) continue;
        index = slot_of(p, list->items[dim = i]);
        found++;
    }
    bool fits = found == 1 && index->rank == 1 && rows->rank == into->rank && !rows->varies &&
                (index->dtype == FERRY_I64 || index->dtype == FERRY_I32) &&
                !slot_of(p, put->args[3])->integer;
    for (uint32_t d = 0; d < rows->rank && fits; d++) {
        fits = rows->shape[d] == (d == dim ? index->shape[0] : into->shape[d]);
    }
    return fits;
}

static void move(Pte *p, PteValue value, PteValue onto) {
    Slot *slot = slot_of(p, value), *place = slot_of(p, onto);
    Instruction *maker = &p->instructions.items[slot->first];
    if (calls(p, maker, "aten::index_put.out") && writes_rows(p, maker)) {
        maker->callee = pte_operator(p, "aten::index_put_");
        maker->count--;
    }
    if (slot->last > place->last) place->last = slot->last;
    slot->onto = onto;
    slot->used = false;
}

enum { LONGEST_CHAIN = 64 };

/* Have `value` written over `onto`, if that changes nothing else. */
static bool write_over(Pte *p, PteValue value, PteValue onto) {
    PteValue chain[LONGEST_CHAIN];
    uint32_t count = follow(p, value, onto, chain, LONGEST_CHAIN);
    while (count-- > 0) move(p, chain[count], onto);
    return value == onto || slot_of(p, value)->onto == onto;
}

static void replace(Pte *p, PteValue *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (values[i] >= 0 && slot_of(p, values[i])->onto >= 0) {
            values[i] = slot_of(p, values[i])->onto;
        }
    }
}

/* What lies over another tensor is that tensor from now on. */
static void replace_all(Pte *p) {
    for (size_t i = 0; i < p->instructions.count; i++) {
        replace(p, p->instructions.items[i].args, p->instructions.items[i].count);
    }
    for (size_t i = 0; i < p->slots.count; i++) {
        Slot *slot = &p->slots.items[i];
        bool names = slot->kind == SLOT_TENSORS || slot->kind == SLOT_OPTIONAL_TENSORS;
        if (names) replace(p, slot->items, slot->count);
        if (slot->base >= 0) replace(p, &slot->base, 1);
    }
    replace(p, p->outputs, p->program->outputs.count);
}

/* ---- outputs ---- */

static PteValue copy(Pte *p, PteValue value, bool unplanned) {
    const Slot *from = slot_of(p, value);
    PteValue made = pte_temp(p, from->dtype, from->rank, from->shape);
    if (p->status != FERRY_OK) return made;
    slot_of(p, made)->unplanned = unplanned;
    return pte_result(p, "aten::clone.out", made, ARGS(value, pte_null(p)));
}

static bool writes_state(const Port *output) {
    return output->writes && output->writes->kind == VALUE_STATE;
}

/* Is the memory of the tensor an input's or a state's, which this run may write? */
static bool may_change(Pte *p, PteValue value) {
    const Slot *slot = slot_of(p, value);
    if (slot->base >= 0) value = slot->base;
    if (slot_of(p, value)->state) return true;
    for (size_t i = 0; i < p->program->inputs.count; i++) {
        if (pte_value(p, p->program->inputs.items[i].value) == value) return true;
    }
    return false;
}

/* Have inputs and outputs the same kind of memory? Then one tensor can be both. */
static bool shares_inputs(const ExecutorchOptions *options) {
    return options->unplanned_inputs == options->unplanned_outputs;
}

/* Are two outputs what the same input becomes? Then they can be one tensor. */
static bool is_twin(const Pte *p, size_t i, size_t j) {
    const Port *a = &p->program->outputs.items[i], *b = &p->program->outputs.items[j];
    return a->value == b->value && a->writes == b->writes && a->writes &&
           a->writes->kind == VALUE_INPUT && shares_inputs(p->options);
}

/* A tensor for each output. What a state becomes needs none, unless it can change before it is there. */
static void find_outputs(Pte *p) {
    const Program *program = p->program;
    for (size_t i = 0; i < program->outputs.count && p->status == FERRY_OK; i++) {
        const Port *output = &program->outputs.items[i];
        PteValue value = pte_value(p, output->value);
        if (p->status != FERRY_OK) return;
        bool own = output->value->kind == VALUE_NODE && slot_of(p, value)->base < 0;
        for (size_t j = 0; j < i && own; j++) {
            own = program->outputs.items[j].value != output->value || is_twin(p, i, j);
        }
        bool kept = output->value == output->writes;
        if (writes_state(output))
            p->outputs[i] = kept || !may_change(p, value) ? value : copy(p, value, false);
        else if (kept && shares_inputs(p->options))
            p->outputs[i] = value;
        else
            p->outputs[i] = own ? value : copy(p, value, p->options->unplanned_outputs);
    }
}

/* What an input becomes is written over it, or is an output like others. Where the caller gives the memory
 * of both, it may give that of the input: then nothing reads the input once the output is made. */
static void settle_input(Pte *p, const Port *output, PteValue *value) {
    PteValue input = pte_value(p, output->writes);
    if (!shares_inputs(p->options)) return;
    if (write_over(p, *value, input) || !p->options->unplanned_outputs) return;
    if (slot_of(p, input)->last < slot_of(p, *value)->first) return;
    slot_of(p, *value)->unplanned = false;
    *value = copy(p, *value, true);
}

/* Is the tensor given to the caller as well? */
static bool is_given(const Pte *p, PteValue value) {
    bool given = false;
    for (size_t i = 0; i < p->program->outputs.count; i++) {
        given |= p->outputs[i] == value && !writes_state(&p->program->outputs.items[i]);
    }
    return given;
}

static void settle_state(Pte *p, const Port *output, PteValue *value) {
    PteValue state = pte_value(p, output->writes);
    bool given = is_given(p, *value);
    if (given || !write_over(p, *value, state)) {
        if (!given && slot_of(p, *value)->base < 0) slot_of(p, *value)->unplanned = false;
        pte_call(p, "aten::copy_", ARGS(state, *value, pte_bool(p, false), state));
    }
    *value = state;
}

static void keep_outputs(Pte *p) {
    for (size_t i = 0; i < p->program->outputs.count && p->status == FERRY_OK; i++) {
        slot_of(p, p->outputs[i])->last = (uint32_t)p->instructions.count;
    }
}

void pte_add_outputs(Pte *p) {
    const Program *program = p->program;
    find_outputs(p);
    if (p->status == FERRY_OK) keep_outputs(p);
    for (size_t i = 0; i < program->outputs.count && p->status == FERRY_OK; i++) {
        const Port *output = &program->outputs.items[i];
        size_t twin = 0;
        while (twin < i && !is_twin(p, i, twin)) twin++;
        if (writes_state(output))
            settle_state(p, output, &p->outputs[i]);
        else if (twin < i)
            p->outputs[i] = p->outputs[twin];
        else if (output->writes)
            settle_input(p, output, &p->outputs[i]);
    }
    if (p->status != FERRY_OK) return;
    replace_all(p);
    keep_outputs(p);
}
