/* Reading the graph of a torch.export program: names bound to values, aliasing, calls.
 *
 * Functional form. The file's graph may write in place, also through views. Every tensor name is
 * bound to a value and to a storage; a view remembers its base and the node that made it. A write makes
 * a new value for the written name, carries it through the chain of views to the base, and gives the
 * storage a new version; a name whose version is behind is made again from its base when it is read
 * next. The result of an operation in place is another name of the same binding. So the Program has
 * values only, and writes that nobody reads vanish. */
#ifndef SOURCE_PT2_READER_H
#define SOURCE_PT2_READER_H

#include "graph/build.h"
#include "source/pt2/pt2.h"
#include "source/pt2/schema.h"
#include "source/pt2/structure.h"

typedef struct Storage {
    uint32_t version;
} Storage;

typedef struct Binding Binding;
struct Binding {
    const char *name;
    Value *value;     /* as of `version` */
    uint32_t version; /* of the storage */
    Storage *storage;
    Binding *base;   /* the tensor that this is a view of, or NULL */
    uint32_t depth;  /* how many views away the last base is */
    const Doc *node; /* that made the view */
    const struct Translation *how;
    uint32_t output; /* which of its outputs */
};

/* An input or weight: what the program can write for its caller to see, or keep for its next call. */
typedef struct Place {
    const char *name;   /* in the graph */
    const char *target; /* the input's path, or the weight's name */
    Value *value;       /* what it holds at first */
    Binding *binding;
    bool written; /* it holds something else at the end */
} Place;

typedef struct Reader {
    Pt2 *pt2;
    const Registry *registry;
    Builder b;
    const Doc *graph;  /* graph_module.graph */
    Map bindings;      /* tensor name -> Binding */
    Map sizes;         /* SymInt name -> const Sym */
    VEC(Place) places; /* in the order of the signature */
    const Doc *node;   /* at hand */
    bool fills;        /* the write at hand puts one number into every element of a view */
    uint32_t remade;   /* steps through views, which are limited */
} Reader;

/* ---- the signature: signature.c, weights.c ---- */

/* The leaves of a nested structure, and how many of them were met. */
typedef struct Leaves {
    Paths paths;
    uint32_t next;
} Leaves;

/* Read inputs, the graph, and outputs. */
void signature_read(Reader *r, const Doc *signature, Leaves *inputs, Leaves *outputs);

/* A weight from its record. */
Value *reader_weight(Reader *r, const char *fqn, ValueKind kind);

/* ---- names: bind.c ---- */

/* Bind a name to a value with a storage of its own. */
Binding *reader_bind(Reader *r, const char *name, Value *value);

/* Make one binding a view of another. */
void reader_alias(Reader *r, Binding *view, Binding *base);

/* The current value behind a name; poison and a failure when it is not bound. */
Value *reader_read(Reader *r, const char *name);

/* Give a name a new value, in place: everything that shares its storage sees it. */
void reader_write(Reader *r, const char *name, Value *value);

/* The type that the file declares for a tensor. */
TensorMeta reader_meta(Reader *r, const char *name);

/* Does the file say that the tensor holds complex numbers? */
bool reader_is_complex(Reader *r, const char *name);

/* Fail at the node at hand. */
Value *reader_fail(Reader *r, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- calls: take.c ---- */

enum { CALL_MAX_RESULTS = 256 };

/* A node of the graph, about to be translated. */
typedef struct ferry_call {
    Reader *r;
    Builder *b;
    const Doc *node;
    const struct Translation *how;
    Value *results[CALL_MAX_RESULTS];
    uint32_t result_count;
} Call;

/* An argument by its name in ATen's schema. Absent ones and None give the default. */
const Doc *take_arg(Call *c, const char *name);
bool take_has(Call *c, const char *name);      /* present and not None */
Value *take_tensor(Call *c, const char *name); /* required */
Value *take_self(Call *c);                     /* the tensor "self" */
Value *take_optional_tensor(Call *c, const char *name);
const Sym *take_sym(Call *c, const char *name, int64_t otherwise);
int64_t take_int(Call *c, const char *name, int64_t otherwise); /* must be constant */
double take_float(Call *c, const char *name, double otherwise);
bool take_bool(Call *c, const char *name, bool otherwise);
const char *take_string(Call *c, const char *name, const char *otherwise);
bool take_is_tensor(Call *c, const char *name);

/* A Scalar: VALUE_INT, VALUE_FLOAT or VALUE_BOOL; VALUE_NONE when absent. */
Arg take_scalar(Call *c, const char *name);

/* Lists; return the number of entries, at most `most`. A single number counts as a list of one. */
uint32_t take_syms(Call *c, const char *name, const Sym **out, uint32_t most);
uint32_t take_ints(Call *c, const char *name, int64_t *out, uint32_t most);
/* Entries of an optional list may be NULL. */
uint32_t take_tensors(Call *c, const char *name, Value **out, uint32_t most);

/* A dimension argument, counted from the front, for a tensor of `rank` dimensions. */
uint32_t take_dim(Call *c, const char *name, int64_t otherwise, uint32_t rank);

/* The name of a tensor argument in the graph, or NULL. A float that is computed from sizes is a 0-d
 * float32 tensor here. */
const char *take_tensor_name(Call *c, const char *name);

/* Declared types of the results. */
uint32_t result_count(Call *c);
const char *result_name(Call *c, uint32_t index);
TensorMeta result_meta(Call *c, uint32_t index);
ferry_dtype result_dtype(Call *c);

/* Set a result. */
void result_set(Call *c, uint32_t index, Value *value);

Value *take_fail(Call *c, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- translations: translate.c and ops_*.c ---- */

/* When a result shares the storage of the argument: `self`, or the tensor of the list that has the
 * result's place. */
typedef enum AliasRule {
    ALIAS_NEVER,
    ALIAS_ALWAYS,     /* a view */
    ALIAS_SAME_VALUE, /* when nothing changes, strides included: to, contiguous */
    ALIAS_RESHAPE,    /* when no copy is needed: reshape, flatten */
} AliasRule;

typedef struct Translation {
    const char *target; /* "aten.add.Tensor" */
    void (*translate)(Call *c);
    Op op; /* for functions that serve several */
    AliasRule alias;
    /* For a view: its base after `updated` was written through result `index` of the view. For the
     * operation that does only that, such as slice_scatter: the same. */
    Value *(*write_back)(Call *c, Value *base, Value *updated, uint32_t index);
} Translation;

/* The tables; each ends with a null target. */
extern const Translation translate_elementwise[], translate_shape[], translate_create[],
    translate_reduce[], translate_layer[];
extern const Translation translate_indexing[], translate_order[], translate_math[],
    translate_binary[], translate_arrange[], translate_product[], translate_stats[];
extern const Translation translate_conv[], translate_pool[], translate_norm[], translate_image[],
    translate_slices[], translate_windows[], translate_permutations[];
/* These two are for nodes with complex tensors. */
extern const Translation translate_complexes[], translate_fourier[];

/* Translate every node of the graph. */
void translate_graph(Reader *r);

/* ---- views: ops_slice.c, ops_shape.c, ops_window.c ---- */

/* diagonal, and diag of a matrix. */
void translate_diagonal(Call *c);

/* The operations that are a write through a view: slice_scatter and the like. */
void translate_scatter_view(Call *c);

/* The write through expand. */
Value *write_expanded(Call *c, Value *base, Value *updated, uint32_t index);

/* Fail unless the write at hand is of one number, for a view that shows an element more than once. */
void check_overlap(Call *c);

/* ---- helpers for translations: promote.c ---- */

/* x converted to `dtype` when it has another. */
Value *promote_to(Call *c, Value *x, ferry_dtype dtype);

/* x for computing with it in several steps: half precisions as float32, as ATen's kernels do. */
Value *promote_to_compute(Call *c, Value *x);

/* The dtype in which ATen computes on these operands (torch.result_type). `b` may be NULL: then
 * `scalar` is the other operand. */
ferry_dtype promote_types(const Value *a, const Value *b, const Arg *scalar);

/* ---- data-dependent sizes: ops_index.c ---- */

/* `declared` when it is a symbol that nothing determines yet, else a new symbol. */
const Sym *fresh_symbol(Call *c, const Sym *declared);

/* The symbol is this size of the value; dim -1: it is the value itself, a 0-d int64. */
void bind_symbol(Call *c, const Sym *symbol, Value *value, int dim);

/* ---- what vision translations share: ops_conv.c, ops_image.c ---- */

/* A list with a number for each of `count` spatial dimensions; a single number stands for all. */
void take_spatial(Call *c, const char *name, int64_t otherwise, uint32_t count, int64_t *out);

/* Pad as aten::pad does, the last dimension first; also "circular". */
Value *make_pad(Call *c, Value *x, const Sym *const *pads, uint32_t count, const char *mode,
                double value);

#endif
