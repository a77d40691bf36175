/* Dividing a program between kernels and delegates.
 *
 * A node has a level: 0 for kernels that read no delegate's results. A delegate's level is one more than
 * that of the kernels it reads and that of the delegates it reads; a kernel's is that of the delegates it
 * reads. So all nodes that a backend takes at a level are one delegate, nothing waits in a circle, and there
 * are as many delegates as a chain of values passes from kernels to the backend.
 *
 * A second factor of products that is only transposed for them is read as it is: nobody transposes it. */
#include "target/executorch/backend.h"

static const uint32_t NEVER = UINT32_MAX; /* a level */

typedef struct Levels {
    const Partition *partition;
    const Dimension *dimensions; /* where symbols come from */
    bool taken;
    uint32_t level;
} Levels;

/* What is read where a value is. */
static const Value *source_of(const Partition *partition, const Value *value) {
    return partition->folded[value->id] ? value->producer->args[0].tensor : value;
}

static void follow_input(void *context, Value **use) {
    Levels *levels = context;
    const Node *producer = source_of(levels->partition, *use)->producer;
    if (!producer) return;
    uint32_t id = producer->outputs[0]->id, level = levels->partition->levels[id];
    if (levels->taken && !levels->partition->taken[id]) level++;
    if (level > levels->level) levels->level = level;
}

/* What is given a size reads the value that has it. */
static void visit_size(Levels *levels, const Sym *size, void (*visit)(void *, Value **)) {
    Value *source = NULL;
    if (size->kind == SYM_SYMBOL) source = (Value *)levels->dimensions[size->value].value;
    if (source) visit(levels, &source);
    for (uint32_t i = 0; i < size->count; i++) visit_size(levels, size->operands[i], visit);
}

static void visit_sizes(Levels *levels, const Node *node, void (*visit)(void *, Value **)) {
    for (uint32_t i = 0; i < op_schema(node->op)->arg_count; i++) {
        const Arg *arg = &node->args[i];
        if (arg->kind == VALUE_INT) visit_size(levels, arg->integer, visit);
        for (uint32_t k = 0; arg->kind == VALUE_INTS && k < arg->integers.count; k++) {
            visit_size(levels, arg->integers.items[k], visit);
        }
    }
    for (uint32_t i = 0; i < node->output_count; i++) {
        const Value *out = node->outputs[i];
        for (uint32_t d = 0; d < out->rank; d++) {
            const Sym *size = out->shape[d];
            bool own = size->kind == SYM_SYMBOL && levels->dimensions[size->value].value == out;
            if (!own) visit_size(levels, size, visit);
        }
    }
}

/* A value leaves its delegate where a node of another level or kind reads it. */
static void mark_escape(void *context, Value **use) {
    Levels *levels = context;
    const Value *source = source_of(levels->partition, *use);
    const Node *producer = source->producer;
    if (!producer) return;
    uint32_t id = producer->outputs[0]->id;
    bool inside = levels->taken && levels->partition->taken[id] &&
                  levels->partition->levels[id] == levels->level;
    if (!inside) levels->partition->escapes[source->id] = true;
}

/* ---- what is left to kernels ---- */

enum { READ_BY_KERNEL = 1, READ_BY_DELEGATE = 2 };

typedef struct Readers {
    uint8_t *who; /* by value id */
    uint8_t mark;
} Readers;

static void mark_reader(void *context, Value **use) {
    Readers *readers = context;
    readers->who[(*use)->id] |= readers->mark;
}

/* Values that a product is on the way to; by value id. */
typedef struct Heavy {
    bool *values;
    bool found;
} Heavy;

static void look_for_heavy(void *context, Value **use) {
    Heavy *heavy = context;
    heavy->found = heavy->found || heavy->values[(*use)->id];
}

static bool is_heavy(Op op) {
    return op == OP_LINEAR || op == OP_MATMUL || op == OP_CONVOLUTION;
}

static void mark_heavy(const Program *program, Heavy *heavy) {
    for (Node *node = program->first; node; node = node->next) {
        heavy->found = is_heavy(node->op);
        node_each_tensor(node, look_for_heavy, heavy);
        for (uint32_t i = 0; i < node->output_count; i++) {
            heavy->values[node->outputs[i]->id] = heavy->found;
        }
    }
}

/* From the last node to the first, so that chains of small nodes go together. */
static bool keep_small_ones(const Program *program, Arena *arena, bool *taken) {
    Readers readers = {.who = ARENA_ARRAY(arena, uint8_t, program->value_count)};
    Heavy heavy = {.values = ARENA_ARRAY(arena, bool, program->value_count)};
    if (!readers.who || !heavy.values) return false;
    mark_heavy(program, &heavy);
    for (size_t i = 0; i < program->outputs.count; i++) {
        readers.who[program->outputs.items[i].value->id] |= READ_BY_DELEGATE;
    }
    for (Node *node = program->last; node; node = node->previous) {
        uint32_t id = node->outputs[0]->id;
        uint8_t who = 0;
        for (uint32_t i = 0; i < node->output_count; i++) who |= readers.who[node->outputs[i]->id];
        if (who == READ_BY_KERNEL && !heavy.values[id]) taken[id] = false;
        readers.mark = taken[id] ? READ_BY_DELEGATE : READ_BY_KERNEL;
        node_each_tensor(node, mark_reader, &readers);
    }
    return true;
}

/* ---- transpositions ---- */

static bool swaps_last(const Node *node) {
    if (node->op != OP_PERMUTE || node->outputs[0]->rank < 3) return false;
    uint32_t rank = node->outputs[0]->rank;
    for (uint32_t d = 0; d < rank; d++) {
        uint32_t from = d + 2 < rank ? d : d + 2 == rank ? rank - 1 : rank - 2;
        int64_t dim = node->args[1].integers.items[d]->value;
        if ((dim < 0 ? dim + rank : dim) != from) return false;
    }
    return !value_fixed(node->args[0].tensor);
}

typedef struct Unfold {
    bool *folded;
    const Value *factor; /* may be */
} Unfold;

static void unfold(void *context, Value **use) {
    Unfold *unfold = context;
    if (*use != unfold->factor) unfold->folded[(*use)->id] = false;
}

static bool is_view(Op op) {
    return op == OP_VIEW || op == OP_UNSQUEEZE || op == OP_SQUEEZE;
}

/* Kernels transpose the other factor and the product instead, which are small where this one is a cache. */
static bool takes_transposed(const Pte *p, const Backend *backend, const Partition *partition,
                             const Node *node) {
    const Value *factor = node->op == OP_MATMUL ? node->args[1].tensor : NULL;
    if (!factor || !partition->folded[factor->id] || factor == node->args[0].tensor) return false;
    if (partition->taken[node->outputs[0]->id]) return backend->multiplies_transposed;
    const Value *source = factor->producer->args[0].tensor;
    while (source->producer && is_view(source->producer->op)) {
        source = source->producer->args[0].tensor;
    }
    return node->args[0].tensor->rank >= 3 &&
           (source->kind == VALUE_INPUT || p->updates[source->id]);
}

static void fold_transpositions(const Pte *p, const Backend *backend, Partition *out) {
    const Program *program = p->program;
    for (const Node *node = program->first; node; node = node->next) {
        out->folded[node->outputs[0]->id] = swaps_last(node);
    }
    for (Node *node = program->first; node; node = node->next) {
        bool takes = takes_transposed(p, backend, out, node);
        Unfold context = {out->folded, takes ? node->args[1].tensor : NULL};
        node_each_tensor(node, unfold, &context);
    }
    for (size_t i = 0; i < program->outputs.count; i++) {
        out->folded[program->outputs.items[i].value->id] = false;
    }
}

bool partition_make(Pte *p, const Backend *backend, Partition *out) {
    const Program *program = p->program;
    const Dimension *dimensions = p->dimensions;
    Arena *arena = &p->arena;
    out->levels = ARENA_ARRAY(arena, uint32_t, program->value_count);
    out->taken = ARENA_ARRAY(arena, bool, program->value_count);
    out->escapes = ARENA_ARRAY(arena, bool, program->value_count);
    out->folded = ARENA_ARRAY(arena, bool, program->value_count);
    out->last = 0;
    if (!out->levels || !out->taken || !out->escapes || !out->folded) return false;
    for (Node *node = program->first; node && backend; node = node->next) {
        out->taken[node->outputs[0]->id] = backend->takes(node);
    }
    bool small = backend && !backend->computes_sizes;
    if (small && !keep_small_ones(program, arena, out->taken)) return false;
    fold_transpositions(p, backend, out);
    for (Node *node = program->first; node; node = node->next) {
        uint32_t id = node->outputs[0]->id;
        if (out->folded[id]) out->levels[id] = NEVER;
        if (out->folded[id]) continue;
        Levels levels = {out, dimensions, out->taken[id], out->taken[id]};
        node_each_tensor(node, follow_input, &levels);
        if (!out->taken[id] || backend->computes_sizes) visit_sizes(&levels, node, follow_input);
        out->levels[id] = levels.level;
        if (levels.level > out->last) out->last = levels.level;
    }
    for (Node *node = program->first; node; node = node->next) {
        uint32_t id = node->outputs[0]->id;
        if (out->folded[id]) continue;
        Levels levels = {out, dimensions, out->taken[id], out->levels[id]};
        node_each_tensor(node, mark_escape, &levels);
        visit_sizes(&levels, node, mark_escape);
    }
    for (size_t i = 0; i < program->outputs.count; i++) {
        out->escapes[program->outputs.items[i].value->id] = true;
    }
    return true;
}
