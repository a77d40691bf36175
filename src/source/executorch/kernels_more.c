/* Kernels that take more, or other, arguments than the operation. */
#include "source/executorch/reader.h"

static const OpArg tensor_type = {.type = ARG_TENSOR}, integer_type = {.type = ARG_INT},
                   integers_type = {.type = ARG_INTS}, float_type = {.type = ARG_FLOAT},
                   bool_type = {.type = ARG_BOOL},
                   maybe_tensor = {.type = ARG_TENSOR, .optional = true},
                   maybe_integers = {.type = ARG_INTS, .optional = true};

/* True when the call has this many arguments. */
static bool counts(Reader *r, const PteCall *call, uint32_t count) {
    return call->count == count ||
           pte_read_bad(r, "expected %u arguments, found %u", count, call->count);
}

static Value *tensor(Reader *r, const PteCall *call, uint32_t i) {
    return pte_read_arg(r, call->args[i], &tensor_type).kind == VALUE_TENSOR
               ? pte_read_tensor(r, call->args[i])
               : &r->b.poison;
}

#define GIVE_OP(r, call, place, op, ...)                                                           \
    pte_read_give(r, (call)->args[place],                                                          \
                  build_op(&(r)->b, op, (const Arg[]){__VA_ARGS__},                                \
                           sizeof((const Arg[]){__VA_ARGS__}) / sizeof(Arg)))

/* ---- integers ---- */

static void set_size(Reader *r, uint64_t index, const Sym *size) {
    PteSlot *slot = pte_read_kind(r, index, SLOT_INT);
    if (slot && size) slot->size = size;
}

void read_sym_size_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 3)) return;
    const Value *value = tensor(r, call, 0);
    const Sym *dim = pte_read_size(r, call->args[1]);
    if (!reader_ok(r)) return;
    if (!sym_is_const(dim) || dim->value < 0 || dim->value >= value->rank)
        pte_read_bad(r, "the tensor has no such dimension");
    else
        set_size(r, call->args[2], value->shape[dim->value]);
}

void read_item_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 2)) return;
    Value *value = tensor(r, call, 0);
    if (!reader_ok(r)) return;
    bool is_integer = value->dtype == FERRY_I64 || value->dtype == FERRY_I32;
    if (value->rank || !is_integer) {
        pte_read_unsupported(r, "the number is no integer of rank 0");
        return;
    }
    const Sym *symbol = pte_read_symbol(r, INT64_MIN);
    VEC_PUSH(&r->b.program->sources, ((SymSource){symbol, value, -1}));
    set_size(r, call->args[1], symbol);
}

typedef const Sym *Arithmetic(SymTable *table, const Sym *a, const Sym *b);

static Arithmetic *arithmetic(const char *kernel) {
    static const struct {
        const char *name;
        Arithmetic *function;
    } all[] = {{"add", sym_add},           {"sub", sym_sub}, {"mul", sym_mul},
               {"floordiv", sym_floordiv}, {"mod", sym_mod}, {"sym_min", sym_min},
               {"sym_max", sym_max}};
    const char *name = strrchr(kernel, ':') + 1;
    size_t i = 0;
    while (strncmp(name, all[i].name, strcspn(name, ".")) != 0) i++;
    return all[i].function;
}

/* The remainder has the sign of the dividend in the kernel: what may be negative is not understood. */
void read_prim_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 3)) return;
    const Sym *a = pte_read_size(r, call->args[0]), *b = pte_read_size(r, call->args[1]);
    Arithmetic *function = arithmetic(call->kernel);
    bool divides = function == sym_floordiv || function == sym_mod;
    if (divides && sym_is_value(b, 0)) pte_read_bad(r, "a division by 0");
    if (function == sym_mod && (a->lower < 0 || b->lower < 0)) {
        pte_read_unsupported(r, "the remainder of a negative number");
    }
    if (reader_ok(r)) set_size(r, call->args[2], function(&r->b.program->symbols, a, b));
}

/* ---- the same elements ---- */

void read_clone_kernel(Reader *r, const PteCall *call) {
    if (counts(r, call, 4)) pte_read_give(r, call->args[2], tensor(r, call, 0));
}

void read_view_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 3)) return;
    Value *from = tensor(r, call, 0);
    Arg sizes = pte_read_arg(r, call->args[1], &integers_type);
    if (!reader_ok(r)) return;
    if (sizes.integers.count > FERRY_MAX_RANK) {
        pte_read_unsupported(r, "a view of rank %u", sizes.integers.count);
        return;
    }
    Value *view = build_view(&r->b, from, sizes.integers.items, sizes.integers.count);
    pte_read_give(r, call->args[2], view);
}

/* ---- in place ---- */

/* An index may not count from the end, which makes no difference to one that may. */
void read_index_put_kernel(Reader *r, const PteCall *call) {
    static const OpArg indices_type = {.type = ARG_OPTIONAL_TENSORS};
    if (!counts(r, call, 5)) return;
    const Arg args[] = {arg_tensor(tensor(r, call, 0)),
                        pte_read_arg(r, call->args[1], &indices_type),
                        arg_tensor(tensor(r, call, 2)), pte_read_arg(r, call->args[3], &bool_type)};
    pte_read_change(r, call->args[0], build_op(&r->b, OP_INDEX_PUT, args, 4));
}

void read_copy_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 4)) return;
    const Value *into = tensor(r, call, 0);
    Value *from = tensor(r, call, 1);
    if (!reader_ok(r)) return;
    if (into->dtype != from->dtype || into->rank != from->rank ||
        !shape_equal(into->rank, into->shape, from->shape))
        pte_read_unsupported(r, "the tensors are of different types");
    else
        pte_read_give(r, call->args[0], from);
}

/* ---- elements ---- */

void read_log1p_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 3)) return;
    Value *sum = build_scalar(&r->b, OP_ADD_SCALAR, tensor(r, call, 0), 1);
    GIVE_OP(r, call, 1, OP_LOG, arg_tensor(sum));
}

void read_nonzero_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 3)) return;
    Value *x = tensor(r, call, 0);
    const Sym *count = pte_read_symbol(r, 0);
    Value *places = build_op(&r->b, OP_NONZERO, (const Arg[]){arg_tensor(x), arg_sym(count)}, 2);
    if (reader_ok(r)) VEC_PUSH(&r->b.program->sources, ((SymSource){count, places, 0}));
    pte_read_give(r, call->args[1], places);
}

void read_scatter_add_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 6)) return;
    GIVE_OP(r, call, 4, OP_SCATTER_REDUCE, arg_tensor(tensor(r, call, 0)),
            pte_read_arg(r, call->args[1], &integer_type), arg_tensor(tensor(r, call, 2)),
            arg_tensor(tensor(r, call, 3)), arg_string("sum"));
}

/* ---- images ---- */

void read_batch_norm_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 11)) return;
    GIVE_OP(r, call, 7, OP_BATCH_NORM, arg_tensor(tensor(r, call, 0)),
            pte_read_arg(r, call->args[1], &maybe_tensor),
            pte_read_arg(r, call->args[2], &maybe_tensor), arg_tensor(tensor(r, call, 3)),
            arg_tensor(tensor(r, call, 4)), arg_bool(false),
            pte_read_arg(r, call->args[5], &float_type),
            pte_read_arg(r, call->args[6], &float_type), arg_bool(false));
}

/* The kernel is told the sizes as well. */
void read_group_norm_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 12)) return;
    GIVE_OP(r, call, 8, OP_GROUP_NORM, arg_tensor(tensor(r, call, 0)),
            pte_read_arg(r, call->args[6], &integer_type),
            pte_read_arg(r, call->args[1], &maybe_tensor),
            pte_read_arg(r, call->args[2], &maybe_tensor),
            pte_read_arg(r, call->args[7], &float_type));
}

void read_constant_pad_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 5)) return;
    GIVE_OP(r, call, 3, OP_PAD, arg_tensor(tensor(r, call, 0)),
            pte_read_arg(r, call->args[1], &integers_type), arg_string("constant"),
            pte_read_arg(r, call->args[2], &float_type));
}

void read_pad_kernel(Reader *r, const PteCall *call) {
    if (!counts(r, call, 4)) return;
    bool reflects = strstr(call->kernel, "reflection") != NULL;
    GIVE_OP(r, call, 2, OP_PAD, arg_tensor(tensor(r, call, 0)),
            pte_read_arg(r, call->args[1], &integers_type),
            arg_string(reflects ? "reflect" : "replicate"), arg_float(0));
}

/* The sizes after an upsampling by factors. */
static Arg scaled_sizes(Reader *r, const Value *x, const PteSlot *factors, double *out) {
    const Sym *sizes[2];
    FlatTable table = factors->table;
    FlatVector items = flat_get_vector(&table, 0, 8);
    if (items.count != 2 || x->rank != 4) {
        pte_read_bad(r, "expected two factors and an image");
        return arg_none();
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t bits = flat_item(&items, i);
        memcpy(&out[i], &bits, sizeof bits);
        const Sym *from = x->shape[2 + i];
        int64_t whole = out[i] >= 1 && out[i] < 1e6 ? (int64_t)out[i] : 0;
        double product = (double)from->value * out[i];
        bool exact = (double)whole == out[i];
        if (!exact && !(sym_is_const(from) && product >= 0 && product < 1e15)) {
            pte_read_unsupported(r, "the size is multiplied by %g", out[i]);
            return arg_none();
        }
        sizes[i] = exact ? sym_mul(&r->b.program->symbols, from, build_const(&r->b, whole))
                         : build_const(&r->b, (int64_t)product);
    }
    return arg_syms(&r->b, sizes, 2);
}

void read_upsample_kernel(Reader *r, const PteCall *call) {
    bool bilinear = strstr(call->kernel, "bilinear") != NULL;
    uint32_t last = bilinear ? 3 : 2;
    if (!counts(r, call, last + 3)) return;
    Value *x = tensor(r, call, 0);
    Arg size = pte_read_arg(r, call->args[1], &maybe_integers), corners = arg_bool(false);
    if (bilinear) corners = pte_read_arg(r, call->args[2], &bool_type);
    const PteSlot *factors = pte_read_slot(r, call->args[last]);
    double by[2] = {0, 0};
    if (!factors || !reader_ok(r)) return;
    bool scaled = factors->kind == SLOT_DOUBLES;
    if (scaled == (size.kind != VALUE_NONE) && pte_read_bad(r, "expected sizes or factors")) return;
    if (scaled) size = scaled_sizes(r, x, factors, by);
    Arg high = scaled ? arg_float(by[0]) : arg_none(),
        wide = scaled ? arg_float(by[1]) : arg_none();
    if (bilinear)
        GIVE_OP(r, call, last + 1, OP_UPSAMPLE_BILINEAR, arg_tensor(x), size, corners, high, wide);
    else
        GIVE_OP(r, call, last + 1, OP_UPSAMPLE_NEAREST, arg_tensor(x), size, high, wide);
}
