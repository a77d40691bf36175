/* Translations of discrete Fourier transforms. A transform over n elements is a product with the n x n
 * matrix of cos and sin of 2 pi j k / n: quadratic, but expressible on every target and for any n.
 * Complex tensors have a last dimension of 2 here (ops_complex.c). */
#include "source/pt2/reader.h"

#include <math.h>
#include <string.h>

enum { MAX_DIMS = FERRY_MAX_RANK };

/* A complex tensor in two parts; `imaginary` is NULL for a real one. */
typedef struct Signal {
    Value *real, *imaginary;
} Signal;

static Signal split_parts(Call *c, const char *name) {
    Value *value = take_tensor(c, name);
    if (!reader_is_complex(c->r, take_tensor_name(c, name))) return (Signal){value, NULL};
    return (Signal){build_select(c->b, value, -1, 0), build_select(c->b, value, -1, 1)};
}

static Value *join_parts(Call *c, Signal signal) {
    Value *parts[] = {build_unsqueeze(c->b, signal.real, -1),
                      build_unsqueeze(c->b, signal.imaginary, -1)};
    return build_cat(c->b, parts, 2, -1);
}

/* cos and sin of 2 pi j k / n for j < rows, k < columns. The product is reduced modulo n before it becomes
 * a float, so that large angles lose nothing. */
static Signal fourier_matrix(Call *c, const Sym *rows, const Sym *columns, const Sym *n,
                             ferry_dtype dtype) {
    const Sym *zero = build_const(c->b, 0);
    Value *j = build_unsqueeze(c->b, build_arange(c->b, zero, rows, FERRY_I64), 1);
    Value *k = build_unsqueeze(c->b, build_arange(c->b, zero, columns, FERRY_I64), 0);
    Value *turns = build_binary(c->b, OP_REMAINDER, build_mul(c->b, j, k),
                                build_scalar_tensor(c->b, n, FERRY_I64));
    Value *part = build_binary(c->b, OP_DIV, build_to(c->b, turns, dtype),
                               build_scalar_tensor(c->b, n, dtype));
    Value *angle = build_scalar(c->b, OP_MUL_SCALAR, part, 2 * acos(-1.0));
    return (Signal){build_unary(c->b, OP_COS, angle), build_unary(c->b, OP_SIN, angle)};
}

/* x times the matrix along its last dimension; NULL for a part that is zero. */
static Value *times(Call *c, Value *x, Value *matrix) {
    return x ? build_matmul(c->b, x, matrix) : NULL;
}

static Value *sum(Call *c, Value *x, Value *y) {
    return !x ? y : !y ? x : build_add(c->b, x, y);
}

static Value *negative(Call *c, Value *x) {
    return x ? build_unary(c->b, OP_NEG, x) : NULL;
}

static Signal swap_last(Call *c, Signal x, uint32_t dim) {
    if (dim + 1 == x.real->rank) return x;
    x.real = build_transpose(c->b, x.real, (int)dim, -1);
    if (x.imaginary) x.imaginary = build_transpose(c->b, x.imaginary, (int)dim, -1);
    return x;
}

/* One dimension. The first `count` elements of the result are computed. */
static Signal transform(Call *c, Signal x, uint32_t dim, const Sym *count, bool forward) {
    const Sym *n = build_dim(c->b, x.real, (int)dim);
    Signal matrix = fourier_matrix(c, n, count, n, x.real->dtype);
    x = swap_last(c, x, dim);
    /* (a + bi)(cos -+ i sin) */
    Value *cross = times(c, x.imaginary, matrix.imaginary);
    Value *turned = times(c, x.real, matrix.imaginary);
    Signal result = {
        sum(c, times(c, x.real, matrix.real), forward ? cross : negative(c, cross)),
        sum(c, times(c, x.imaginary, matrix.real), forward ? negative(c, turned) : turned)};
    return swap_last(c, result, dim);
}

/* Half of a spectrum, whose other half is its conjugate, back to `n` real elements: every element but
 * the first, and the middle one of an even n, stands for two. */
static Value *transform_to_real(Call *c, Signal x, uint32_t dim, const Sym *n) {
    const Sym *half = build_dim(c->b, x.real, (int)dim);
    ferry_dtype dtype = x.real->dtype;
    Signal matrix = fourier_matrix(c, half, n, n, dtype);
    Value *place = build_arange(c->b, build_const(c->b, 0), half, FERRY_I64);
    Value *twice = build_binary(c->b, OP_REMAINDER, build_scalar(c->b, OP_MUL_SCALAR, place, 2),
                                build_scalar_tensor(c->b, n, FERRY_I64));
    Value *paired = build_to(c->b, build_scalar(c->b, OP_NE_SCALAR, twice, 0), dtype);
    Value *weight = build_scalar(c->b, OP_ADD_SCALAR, paired, 1);
    x = swap_last(c, x, dim);
    Value *real = build_matmul(c->b, build_mul(c->b, x.real, weight), matrix.real);
    Value *imaginary = build_matmul(c->b, build_mul(c->b, x.imaginary, weight), matrix.imaginary);
    return swap_last(c, (Signal){build_sub(c->b, real, imaginary), NULL}, dim).real;
}

/* ---- normalization ---- */

typedef enum Norm {
    NORM_NONE,
    NORM_ROOT,
    NORM_COUNT
} Norm; /* numbered as in the _fft_* operations */

/* "backward" (the default) divides the inverse by n, "forward" the other, "ortho" both by its root. */
static Norm named_norm(Call *c, bool forward) {
    const char *name = take_string(c, "norm", "backward");
    if (strcmp(name, "ortho") == 0) return NORM_ROOT;
    return (strcmp(name, "forward") == 0) == forward ? NORM_COUNT : NORM_NONE;
}

static Value *divide(Call *c, Value *x, const Sym *count, Norm norm) {
    if (norm == NORM_NONE) return x;
    Value *number = build_scalar_tensor(c->b, count, x->dtype);
    if (norm == NORM_ROOT) number = build_unary(c->b, OP_SQRT, number);
    return build_binary(c->b, OP_DIV, x, number);
}

/* ---- arguments ---- */

/* The dimensions to transform, counted from the front; all of them by default. */
static uint32_t take_dims(Call *c, uint32_t rank, uint32_t *dims) {
    int64_t given[MAX_DIMS];
    uint32_t count = take_has(c, "dim") ? take_ints(c, "dim", given, MAX_DIMS) : rank;
    for (uint32_t i = 0; i < count; i++) {
        int64_t dim = take_has(c, "dim") ? given[i] : (int64_t)i;
        if (dim < 0) dim += rank;
        if (dim < 0 || dim >= rank) {
            take_fail(c, FERRY_BAD_FORMAT, "the dimension is out of range");
            return 0;
        }
        dims[i] = (uint32_t)dim;
    }
    return count;
}

/* "n" and "s" ask for other lengths than the input has. */
static void refuse_lengths(Call *c, Value *x, const uint32_t *dims, uint32_t count) {
    const Sym *wanted[MAX_DIMS];
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "s" : "n";
        if (!take_has(c, name)) continue;
        uint32_t given = take_syms(c, name, wanted, MAX_DIMS);
        for (uint32_t d = 0; d < given && d < count; d++) {
            if (wanted[d] != build_dim(c->b, x, (int)dims[d]))
                take_fail(c, FERRY_UNSUPPORTED, "a transform that trims or pads its input");
        }
    }
}

/* ---- operations ---- */

/* Complex to complex, over `count` dimensions. */
static void set_complex(Call *c, Signal x, const uint32_t *dims, uint32_t count, bool forward,
                        Norm norm) {
    const Sym *elements = build_const(c->b, 1);
    for (uint32_t i = 0; i < count && build_ok(c->b); i++) {
        const Sym *n = build_dim(c->b, x.real, (int)dims[i]);
        elements = sym_mul(&c->b->program->symbols, elements, n);
        x = transform(c, x, dims[i], n, forward);
    }
    if (!x.imaginary) x.imaginary = build_scalar(c->b, OP_MUL_SCALAR, x.real, 0);
    x.real = divide(c, x.real, elements, norm);
    x.imaginary = divide(c, x.imaginary, elements, norm);
    result_set(c, 0, join_parts(c, x));
}

static void translate_fft(Call *c) {
    Signal x = split_parts(c, "self");
    bool forward = strstr(c->how->target, "ifft") == NULL;
    bool one = strstr(c->how->target, "fftn") == NULL && strstr(c->how->target, "fft2") == NULL;
    uint32_t dims[MAX_DIMS], rank = x.real->rank, count = 1;
    if (one) {
        dims[0] = take_dim(c, "dim", -1, rank);
    } else if (strstr(c->how->target, "fft2") && !take_has(c, "dim") && rank >= 2) {
        count = 2;
        dims[0] = rank - 2;
        dims[1] = rank - 1;
    } else {
        count = take_dims(c, rank, dims);
    }
    refuse_lengths(c, x.real, dims, count);
    set_complex(c, x, dims, count, forward, named_norm(c, forward));
}

/* _fft_c2c(self, int[] dim, int normalization, bool forward) */
static void translate_fft_c2c(Call *c) {
    Signal x = split_parts(c, "self");
    uint32_t dims[MAX_DIMS], count = take_dims(c, x.real->rank, dims);
    set_complex(c, x, dims, count, take_bool(c, "forward", true),
                (Norm)take_int(c, "normalization", 0));
}

/* Real to half a spectrum: n / 2 + 1 elements. */
static void set_half(Call *c, Value *x, uint32_t dim, Norm norm) {
    SymTable *table = &c->b->program->symbols;
    const Sym *n = build_dim(c->b, x, (int)dim), *one = build_const(c->b, 1);
    const Sym *half = sym_add(table, sym_floordiv(table, n, build_const(c->b, 2)), one);
    Signal result = transform(c, (Signal){x, NULL}, dim, half, true);
    result.real = divide(c, result.real, n, norm);
    result.imaginary = divide(c, result.imaginary, n, norm);
    result_set(c, 0, join_parts(c, result));
}

static void translate_rfft(Call *c) {
    Value *x = take_tensor(c, "self");
    uint32_t dim = take_dim(c, "dim", -1, x->rank);
    refuse_lengths(c, x, &dim, 1);
    set_half(c, x, dim, named_norm(c, true));
}

/* _fft_r2c(self, int[] dim, int normalization, bool onesided) */
static void translate_fft_r2c(Call *c) {
    Value *x = take_tensor(c, "self");
    uint32_t dims[MAX_DIMS], count = take_dims(c, x->rank, dims);
    Norm norm = (Norm)take_int(c, "normalization", 0);
    if (!take_bool(c, "onesided", true))
        set_complex(c, (Signal){x, NULL}, dims, count, true, norm);
    else if (count == 1)
        set_half(c, x, dims[0], norm);
    else
        take_fail(c, FERRY_UNSUPPORTED, "half a spectrum of several dimensions");
}

/* irfft(self, n, dim, norm), and _fft_c2r(self, dim, normalization, last_dim_size) */
static void translate_irfft(Call *c) {
    SymTable *table = &c->b->program->symbols;
    Signal x = split_parts(c, "self");
    bool named = strstr(c->how->target, "irfft") != NULL;
    uint32_t dims[MAX_DIMS] = {0}, count = 1;
    if (!x.imaginary) {
        take_fail(c, FERRY_UNSUPPORTED, "an inverse transform of a real tensor");
        return;
    }
    if (named)
        dims[0] = take_dim(c, "dim", -1, x.real->rank);
    else
        count = take_dims(c, x.real->rank, dims);
    if (count != 1) {
        take_fail(c, FERRY_UNSUPPORTED, "half a spectrum of several dimensions");
        return;
    }
    /* 2 (half - 1) when it is not given */
    const Sym *half = build_dim(c->b, x.real, (int)dims[0]), *two = build_const(c->b, 2);
    const Sym *even = sym_mul(table, two, sym_sub(table, half, build_const(c->b, 1)));
    const char *length = named ? "n" : "last_dim_size";
    const Sym *n = take_has(c, length) ? take_sym(c, length, 0) : even;
    if (sym_add(table, sym_floordiv(table, n, two), build_const(c->b, 1)) != half) {
        take_fail(c, FERRY_UNSUPPORTED, "a transform that trims or pads its input");
        return;
    }
    Norm norm = named ? named_norm(c, false) : (Norm)take_int(c, "normalization", 0);
    result_set(c, 0, divide(c, transform_to_real(c, x, dims[0], n), n, norm));
}

#define SIMPLE(target, function)                                                                   \
    { target, function, OP_COUNT, ALIAS_NEVER, NULL }

const Translation translate_fourier[] = {
    SIMPLE("aten.fft_fft.default", translate_fft),
    SIMPLE("aten.fft_ifft.default", translate_fft),
    SIMPLE("aten.fft_fft2.default", translate_fft),
    SIMPLE("aten.fft_ifft2.default", translate_fft),
    SIMPLE("aten.fft_fftn.default", translate_fft),
    SIMPLE("aten.fft_ifftn.default", translate_fft),
    SIMPLE("aten._fft_c2c.default", translate_fft_c2c),
    SIMPLE("aten.fft_rfft.default", translate_rfft),
    SIMPLE("aten._fft_r2c.default", translate_fft_r2c),
    SIMPLE("aten.fft_irfft.default", translate_irfft),
    SIMPLE("aten._fft_c2r.default", translate_irfft),
    {0},
};
