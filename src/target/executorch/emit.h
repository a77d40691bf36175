/* Building a program of the ExecuTorch runtime: a table of values, and instructions that call kernels on
 * them. Values are numbers in that table; a kernel's arguments come in the order of its schema, then its
 * result, twice. */
#ifndef TARGET_EXECUTORCH_EMIT_H
#define TARGET_EXECUTORCH_EMIT_H

#include "base/buffer.h"
#include "base/map.h"
#include "format/executorch.h"
#include "target/executorch/bounds.h"
#include "target/executorch/executorch.h"
#include "target/signature.h"

typedef int32_t PteValue;

/* An entry of the table of values. */
typedef struct Slot {
    SlotKind kind;
    int64_t integer; /* also of a bool */
    double number;
    const char *string;
    PteValue *items;       /* of a list; -1: an absent tensor */
    const double *numbers; /* of a list of doubles */
    uint32_t count;

    /* of a tensor */
    ferry_dtype dtype;
    uint32_t rank;
    const Sym *const *shape;
    uint32_t constant;  /* its number in the constant segment; 0: none */
    const Value *state; /* which the program keeps from run to run; NULL: none */
    uint32_t
        initial;    /* the number of what that holds at first in its segment; 0: it is elsewhere */
    bool varies;    /* it may be smaller, also where the shape is constant */
    bool unplanned; /* its memory is given at run time */
    PteValue base;  /* it has this tensor's memory; -1: its own */
    PteValue onto;  /* it is written over this tensor, in place; -1: it is not */
    uint32_t first, last; /* instructions that use the memory */
    bool used;
    uint64_t bytes, offset; /* of the memory, in the arena */
} Slot;

typedef struct Instruction {
    bool delegate;
    uint32_t callee; /* an operator, or a delegate */
    PteValue *args;
    uint32_t count;
} Instruction;

/* A blob that a backend computes from. */
typedef struct Delegate {
    const unsigned char *bytes;
    size_t length;
} Delegate;

/* Weights in segments of their own, which delegates find by name. */
typedef struct NamedData {
    const char *key;
    const Recipe *recipe;
} NamedData;

typedef struct Pte {
    Program *program;
    const ExecutorchOptions *options;
    Arena arena;
    VEC(Slot) slots;
    VEC(Instruction) instructions;
    VEC(const char *) operators;   /* names of kernels */
    VEC(const Recipe *) constants; /* the constant segment has them as 1, 2, ... */
    VEC(const Recipe *)
    initials; /* what states hold at first; the mutable segment has them so, too */
    VEC(Delegate) delegates;
    VEC(NamedData) named;
    VEC(const Recipe *) numbers; /* small constants among them */
    Map known;                   /* scalars, lists, sizes and operators that exist already */
    PteValue *values;            /* by value id, plus 1; 0: none yet */
    bool *is_output;             /* by value id */
    bool *updates;               /* by value id: it is what a state or input holds from there on */
    PteValue *inputs, *outputs;  /* of the program; inputs for every leaf of the arguments */
    const Dimension *dimensions; /* by symbol */
    const bool *folded;          /* by value id: a transposition that its products make */
    Bounds bounds;
    uint64_t planned; /* bytes of the arena */
    bool measuring;   /* only that number counts */
    const Node *node; /* being lowered */
    ferry_status status;
    ferry_error *error;
} Pte;

ferry_status pte_fail(Pte *p, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- values ---- */

PteValue pte_null(Pte *p);
PteValue pte_int(Pte *p, int64_t value);
PteValue pte_bool(Pte *p, bool value);
PteValue pte_double(Pte *p, double value);
PteValue pte_string(Pte *p, const char *text);
PteValue pte_doubles(Pte *p, const double *numbers, uint32_t count);
PteValue pte_list(Pte *p, SlotKind kind, const PteValue *items, uint32_t count);

/* A symbolic integer, computed when it is first asked for, and a list of them. */
PteValue pte_size(Pte *p, const Sym *sym);
PteValue pte_sizes(Pte *p, const Sym *const *sizes, uint32_t count);

/* An integer that an instruction computes. */
PteValue pte_computed(Pte *p);

/* An int, float, bool, list, dtype or absent argument of a node. */
PteValue pte_arg(Pte *p, const Arg *arg);

/* A tensor that nothing else has; the shape must live as long as the program. */
PteValue pte_temp(Pte *p, ferry_dtype dtype, uint32_t rank, const Sym *const *shape);

/* One that may turn out smaller than the shape says. */
PteValue pte_varying(Pte *p, ferry_dtype dtype, uint32_t rank, const Sym *const *shape);

/* A value of the program, which its producer has made, or a weight. */
PteValue pte_value(Pte *p, const Value *value);

/* The tensor for an output of a node. */
PteValue pte_output(Pte *p, const Value *value);

/* The tensor with another shape over the same elements, at most an instruction. */
PteValue pte_view(Pte *p, PteValue from, uint32_t rank, const Sym *const *shape);

/* Make `value` the tensor for an output of a node. */
void pte_bind(Pte *p, const Value *output, PteValue value);

/* The number that is known for an equal recipe in the same use; otherwise -1, and it has this number from
 * now on, unless that is -1. */
PteValue pte_recipe(Pte *p, char use, const Recipe *recipe, PteValue number);

/* The tensor that a recipe makes. */
PteValue pte_constant(Pte *p, const Recipe *recipe);

/* The key of a weight that delegates look up; equal weights have one. */
const char *pte_named(Pte *p, const Recipe *recipe, const char *name);

/* ---- instructions ---- */

#define ARGS(...)                                                                                  \
    (const PteValue[]){__VA_ARGS__}, sizeof((const PteValue[]){__VA_ARGS__}) / sizeof(PteValue)

/* The number of a kernel, such as "aten::add.out"; a failure when the runtime has none of that name. */
uint32_t pte_operator(Pte *p, const char *kernel);

/* Call a kernel. */
void pte_call(Pte *p, const char *kernel, const PteValue *args, size_t count);

/* The same with `result` behind the arguments, twice. Returns the result. */
PteValue pte_result(Pte *p, const char *kernel, PteValue result, const PteValue *args,
                    size_t count);

void pte_delegate(Pte *p, Delegate delegate, const PteValue *args, size_t count);

/* ---- the steps of writing ---- */

/* lower.c: the instructions of a node. */
void pte_lower(Pte *p, const Node *node);

/* outputs.c: an output that is an input tells what that holds after the call, even if it is the same. */
void outputs_keep_inputs(Program *program);

/* outputs.c: which values `updates` marks; the outputs; what is written in place of what. */
void pte_mark_updates(Pte *p);
void pte_add_outputs(Pte *p);

/* plan.c: give every tensor its place in the arena. */
void pte_plan(Pte *p);

/* What write.c has put into the file besides the program. */
typedef struct Segment {
    uint64_t offset, size;
} Segment;

/* How many there are: that of the constants, delegates, named data, and what states hold at first. */
static inline size_t pte_segment_count(const Pte *p) {
    return 1 + p->delegates.count + p->named.count + (p->initials.count > 0);
}

/* serialize.c: the FlatBuffer with room for the extended header; NULL after a failure. */
typedef struct FlatBuilder FlatBuilder;
unsigned char *pte_serialize(Pte *p, FlatBuilder *builder, const Segment *segments,
                             const uint64_t *constant_offsets, const uint64_t *initial_offsets);

#endif
