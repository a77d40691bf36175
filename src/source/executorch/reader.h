/* What the parts of the reader share: the file, its table of values, and the call at hand. */
#ifndef SOURCE_EXECUTORCH_READER_H
#define SOURCE_EXECUTORCH_READER_H

#include "format/executorch.h"
#include "format/flatbuffer.h"
#include "graph/build.h"
#include "source/executorch/executorch_read.h"

/* Of a call and of a list. A file can name one list many times: what is read of it must stay in proportion. */
enum { PTE_MAX_ITEMS = 4096 };

/* The parts of the file (file.c). */
typedef struct PteFile {
    const MappedFile *file;
    FlatReader program;
    uint64_t base; /* of the segments */
    FlatVector values, inputs, outputs, operators, delegates, instructions;
    FlatVector segments, named, constants, initials;
    uint32_t constant_segment, initial_segment;
} PteFile;

/* An entry of the table of values. Of a tensor, `value` is what has been computed; of an integer, `size`. */
typedef struct PteSlot {
    SlotKind kind;
    FlatTable table; /* of what is not told below */
    const Sym *size;
    double number;
    bool boolean;

    /* of a tensor */
    Value *value;
    ferry_dtype dtype;
    uint32_t rank;
    int64_t sizes[FERRY_MAX_RANK]; /* the largest */
    bool dynamic;
    uint32_t constant; /* 0: none */
    uint32_t initial;  /* what a state holds at first; 0: that is elsewhere */
    const char *state; /* the name of a state; NULL: it is none */
    Value *before;     /* of an input or a state: what it held before the run */
    uint64_t place[2]; /* the arena, 0: none, and the offset in it */
} PteSlot;

/* A call of a kernel or delegate. */
typedef struct PteCall {
    const char *kernel;
    const uint32_t *args;
    uint32_t count;
} PteCall;

typedef struct Reader {
    Builder b; /* its sticky status is the reader's */
    ferry_error problem;
    bool told; /* `problem` says where it is */
    PteFile f;
    const PtePorts *ports;
    Arena arena;
    PteSlot *slots;
    Map places;        /* of the arena -> the slot that was last written there */
    Map weights;       /* what is read from the file, by place and type */
    const char *where; /* the kernel at hand, for messages; NULL: none */
} Reader;

static inline bool reader_ok(const Reader *r) {
    return build_ok(&r->b);
}

/* Fail, naming the kernel at hand; returns false. Later failures change nothing. */
bool pte_read_fail(Reader *r, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define pte_read_bad(r, ...)         pte_read_fail(r, FERRY_BAD_FORMAT, __VA_ARGS__)
#define pte_read_unsupported(r, ...) pte_read_fail(r, FERRY_UNSUPPORTED, __VA_ARGS__)
#define pte_read_memory(r)           pte_read_fail(r, FERRY_OUT_OF_MEMORY, "out of memory")

/* ---- file.c ---- */

/* Find the parts, and check what the header says. */
ferry_status pte_file(const MappedFile *file, PteFile *out, ferry_error *error);

/* A segment's place in the file. */
bool pte_segment(const PteFile *f, uint64_t index, uint64_t *offset, uint64_t *size);

/* ---- values.c ---- */

/* Read the table of values. */
bool pte_read_slots(Reader *r);

PteSlot *pte_read_slot(Reader *r, uint64_t index);

/* The slot, which must be of this kind. */
PteSlot *pte_read_kind(Reader *r, uint64_t index, SlotKind kind);

/* The tensor that an index stands for at this point; the poison value after a failure. */
Value *pte_read_tensor(Reader *r, uint64_t index);
const Sym *pte_read_size(Reader *r, uint64_t index);

/* An argument of this type. */
Arg pte_read_arg(Reader *r, uint64_t index, const OpArg *type);

/* The tensor at `index` is `value` from now on. Only inputs and states are written more than once, */
void pte_read_give(Reader *r, uint64_t index, Value *value);
/* and what a kernel changes in place. */
void pte_read_change(Reader *r, uint64_t index, Value *value);

/* `count` elements of a weight at an offset of the file, which has a segment of `size` bytes from there. */
Value *pte_read_weight(Reader *r, uint64_t offset, uint64_t size, ferry_dtype dtype, uint32_t rank,
                       const int64_t *shape);

/* A new symbol for a number that the program computes. */
const Sym *pte_read_symbol(Reader *r, int64_t lower);

/* ---- kernels.c ---- */

void pte_read_kernel(Reader *r, const PteCall *call);

/* kernels_more.c: kernels that take more than their arguments' places. */
typedef void ReadKernel(Reader *r, const PteCall *call);
ReadKernel read_batch_norm_kernel, read_clone_kernel, read_constant_pad_kernel, read_copy_kernel,
    read_group_norm_kernel, read_index_put_kernel, read_item_kernel, read_log1p_kernel,
    read_nonzero_kernel, read_pad_kernel, read_prim_kernel, read_scatter_add_kernel,
    read_sym_size_kernel, read_upsample_kernel, read_view_kernel;

/* grouped.c: a concatenation that is the product of groups of rows; NULL: it is not. */
Value *pte_read_grouped(Reader *r, Value *const *parts, uint32_t count);

/* ---- xnnpack.c ---- */

/* Call the delegate. */
void pte_read_delegate(Reader *r, uint64_t delegate, const PteCall *call);

#endif
