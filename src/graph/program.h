/* The Program: a graph of typed operations with a signature, independent of where it came from and
 * where it goes.
 *
 * A program owns everything in it through one arena. Nodes form a list in execution order; every
 * value knows its complete type. Weights are values with a recipe (graph/recipe.h). Nodes always
 * carry all the arguments of their schema, defaults filled in. */
#ifndef GRAPH_PROGRAM_H
#define GRAPH_PROGRAM_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "graph/op.h"
#include "graph/recipe.h"
#include "graph/sym.h"
#include "graph/tree.h"
#include <ferry/dtype.h>

typedef struct ferry_value Value;
typedef struct ferry_node Node;

/* What a value is to the program. */
typedef enum ValueKind {
    VALUE_NODE,              /* an output of a node */
    VALUE_INPUT,             /* given by the user, or kept from the last run */
    VALUE_PARAMETER,         /* a weight of the checkpoint, under its own name */
    VALUE_PERSISTENT_BUFFER, /* kept with the parameters, such as batch statistics */
    VALUE_BUFFER,            /* a tensor that the model computes once, such as rotary frequencies */
    VALUE_CONSTANT,          /* a constant made by a builder or a pass */
    VALUE_STATE, /* a weight that the program writes; the recipe is what it holds at first */
} ValueKind;

/* A tensor. */
struct ferry_value {
    const char *name; /* unique in the program */
    ValueKind kind;
    ferry_dtype dtype;
    uint32_t rank;
    const Sym *const *shape;
    Node *producer;       /* VALUE_NODE */
    uint32_t index;       /* among the producer's outputs */
    const Recipe *recipe; /* of a weight: VALUE_PARAMETER to VALUE_STATE */
    ValueKind role;       /* of a state: what else it is; see value_role */
    uint32_t id;          /* dense: [0, program->value_count) */
};

typedef enum ArgKind {
    VALUE_NONE,
    VALUE_TENSOR,
    VALUE_TENSORS,
    VALUE_INT,
    VALUE_INTS,
    VALUE_FLOAT,
    VALUE_BOOL,
    VALUE_STRING,
    VALUE_DTYPE,
} ArgKind;

typedef struct Arg {
    ArgKind kind;
    union {
        Value *tensor;
        struct {
            Value **items; /* NULL: absent, where the schema says Tensor?[] */
            uint32_t count;
        } tensors;
        const Sym *integer;
        struct {
            const Sym *const *items;
            uint32_t count;
        } integers;
        double number;
        bool boolean;
        const char *string;
        ferry_dtype dtype;
    };
} Arg;

struct ferry_node {
    Op op;
    Node *previous, *next;
    const char *scope; /* the module it belongs to, such as "model.layers.0.self_attn"; may be "" */
    Arg *args;         /* op_schema(op)->arg_count of them */
    uint32_t output_count;
    Value **outputs;
};

/* A user input or output: a leaf of the nested structure. Behind the leaves of the outputs come those of
 * writes: what an input or a state holds after the call, called "mutated.NAME". A leaf that is the
 * input or state itself stands for it instead. */
typedef struct Port {
    const char *name; /* the leaf's path: "input_ids", "cache.layers.0.keys" */
    Value *value;
    /* of outputs: */
    Value *writes;  /* the input or state that this is when the call ends, or NULL */
    bool is_number; /* the caller gets the number in this tensor of no dimensions */
} Port;

/* A leaf of the nested structure that is no tensor: a keyword or a result that the program was traced
 * with as a constant. */
typedef struct ConstantLeaf {
    uint32_t leaf;    /* its index among all leaves */
    const char *name; /* its path */
    const char *json; /* "null", "true", "3", "0.5" or a quoted string */
} ConstantLeaf;

typedef VEC(ConstantLeaf) ConstantLeaves;

/* Where a data-dependent symbol gets its value when the program runs. */
typedef struct SymSource {
    const Sym *symbol;
    Value *value;
    int dim; /* the symbol is this size of the value; -1: it is the value itself, a 0-d integer */
} SymSource;

/* A tensor that the program keeps between runs: nobody gives or takes it. */
typedef struct State {
    const char *name; /* the leaf's path */
    Value *before;    /* of kind VALUE_INPUT: what the last run left, zeros at first */
    Value *after;     /* what this run leaves */
} State;

typedef struct ferry_program {
    Arena arena;
    SymTable symbols;
    Node *first, *last;
    uint32_t value_count;
    VEC(Value *) weights; /* parameters, buffers, constants and states, in order of creation */
    VEC(Port) inputs;
    VEC(Port) outputs;
    VEC(State) states;
    ConstantLeaves input_constants, output_constants;
    VEC(SymSource) sources;   /* of the symbols that no input has */
    const Tree *input_tree;   /* of ((), {keyword: ...}) */
    const Tree *output_tree;  /* of what the model's forward returns */
    const char *architecture; /* "LlamaForCausalLM" */
    const char *model_type;   /* "llama" */
    ferry_dtype dtype;        /* of the computation */
    Map names;                /* every value by name */
    Map counters;             /* how many values were named after a stem */
} Program;

/* A new, empty program; NULL when memory is exhausted. */
Program *program_new(void);
void program_free(Program *program);

/* A value called `name`, or `name_1`, `name_2`, ... when that is taken. The shape is copied. */
Value *program_value(Program *program, ValueKind kind, const char *name, ferry_dtype dtype,
                     uint32_t rank, const Sym *const *shape);

/* A weight with the type of its recipe; it joins program->weights. */
Value *program_weight(Program *program, ValueKind kind, const char *name, const Recipe *recipe);

/* How many outputs are leaves of the nested structure. */
size_t program_leaf_outputs(const Program *program);

/* The dtype of the first floating-point weight; float32 when there is none. */
ferry_dtype program_float_dtype(const Program *program);

/* What a weight is, written or not: VALUE_PARAMETER, VALUE_PERSISTENT_BUFFER, VALUE_BUFFER or
 * VALUE_CONSTANT. */
ValueKind value_role(const Value *value);

/* The recipe of a weight that stays what it is; NULL: it is no weight, or a state. */
static inline const Recipe *value_fixed(const Value *value) {
    return value->kind == VALUE_STATE ? NULL : value->recipe;
}

/* Make a weight a state. A constant that is written is a buffer in truth. */
void value_make_state(Value *weight);

/* Make persistent buffers mere buffers: they may be computed with, and vanish when nobody reads them. */
void program_drop_persistence(Program *program);

/* Exchange the names of two values. */
void program_swap_names(Program *program, Value *a, Value *b);

/* Insert an unlinked node before `before` (NULL: at the end). */
void program_insert(Program *program, Node *node, Node *before);

/* Unlink a node. Its outputs must not be used any more. */
void program_remove(Program *program, Node *node);

/* Call visit(context, &use) for every place where a node reads a tensor. Optional tensors that are
 * absent are skipped. */
void node_each_tensor(Node *node, void (*visit)(void *context, Value **use), void *context);

/* Make everything that reads value i read map[i] instead, where that is not NULL.
 * `map` has program->value_count entries as they were at the call. Chains are followed. */
void program_replace(Program *program, Value **map, uint32_t count);

/* uses[id] = number of places that read the value; an array in `arena`. */
uint32_t *program_uses(Program *program, Arena *arena);

/* Remove nodes whose outputs nobody reads, and weights without a reader. User inputs, states and persistent
 * buffers stay. */
void program_sweep(Program *program);

/* FERRY_OUT_OF_MEMORY, or an overflow of a symbolic size, that happened on the way; else FERRY_OK. */
ferry_status program_health(Program *program, ferry_error *error);

/* Check every invariant. FERRY_INTERNAL with the node's place on the first violation; `when` is the
 * name of the pass that just ran. */
ferry_status program_verify(Program *program, const char *when, ferry_error *error);

/* The readable text of a program (`ferry show`, --dump-after). */
void program_print(Buffer *buffer, const Program *program);

/* "float32[batch, 8]" */
void value_print_type(Buffer *buffer, const Value *value);

/* True when the sizes are all the same expression. */
bool shape_equal(uint32_t rank, const Sym *const *a, const Sym *const *b);

/* Product of the sizes. */
const Sym *shape_count(SymTable *table, uint32_t rank, const Sym *const *shape);

#endif
