/* Elementwise operations: one driver for all of them.
 *
 * Operands are read where they are when they have the compute type and lie side by side (or are one
 * element for the whole stretch); otherwise block by block through conversion. So halves compute in
 * float32 and round once, and integers compute in int64. */
#include "base/dtype.h"
#include "run/reference/kernels.h"
#include "run/reference/rows.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

typedef union Number {
    float f32;
    double f64;
    int64_t i64;
} Number;

typedef struct Elementwise {
    Row row;
    ferry_dtype compute, result; /* `result`: what the row writes */
    uint32_t count;
    ferry_dtype dtypes[ROW_MAX_OPERANDS];
    const unsigned char *data[ROW_MAX_OPERANDS];
    Number scalars[ROW_MAX_OPERANDS];
    const Tensor *output;
} Elementwise;

static void run_stretch(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    const Elementwise *work = context;
    const Tensor *output = work->output;
    Number blocks[ROW_MAX_OPERANDS][BLOCK], results[BLOCK];
    const void *in[ROW_MAX_OPERANDS];
    int64_t steps[ROW_MAX_OPERANDS], most = n;
    bool direct[ROW_MAX_OPERANDS], stored = output->dtype == work->result;
    for (uint32_t k = 0; k < work->count; k++) {
        int64_t step = loop->steps[k + 1];
        direct[k] = work->dtypes[k] == work->compute && (step == 0 || step == 1);
        steps[k] = step != 0;
        if (!direct[k]) most = BLOCK;
    }
    if (!stored) most = BLOCK;
    unsigned char *target = output->data + offsets[0] * (int64_t)ferry_dtype_size(output->dtype);
    for (int64_t done = 0; done < n; done += most) {
        int64_t length = n - done < most ? n - done : most;
        for (uint32_t k = 0; k < work->count; k++) {
            int64_t step = loop->steps[k + 1];
            int64_t size = (int64_t)ferry_dtype_size(work->dtypes[k]);
            in[k] = work->data[k] + (offsets[k + 1] + done * step) * size;
            if (direct[k]) continue;
            call_load(work->dtypes[k], in[k], step, step ? length : 1, work->compute, blocks[k]);
            in[k] = blocks[k];
        }
        unsigned char *out = target + done * (int64_t)ferry_dtype_size(output->dtype);
        work->row(stored ? (void *)out : results, in, steps, length);
        if (!stored) dtype_convert(work->result, results, output->dtype, out, (size_t)length);
    }
}

static RowSet find_rows(const Call *call, ferry_dtype dtype) {
    const Node *node = call->node;
    if (node->op == OP_NOT && dtype == FERRY_BOOL) return rows_not_bool;
    if (node->op == OP_GELU && strcmp(node->args[1].string, "tanh") == 0) return rows_gelu_tanh;
    return rows_find(node->op);
}

/* A scalar operand, in the compute type. An absent one is a bound of clamp: the first argument
 * after the tensor is the lower. Comparisons round the scalar to the tensor's dtype first, as ATen
 * does. */
static ferry_status take_scalar(const Call *call, uint32_t arg, ferry_dtype dtype, bool compares,
                                Elementwise *work) {
    Number *number = &work->scalars[work->count];
    Scalar scalar = {.is_float = work->compute != FERRY_I64,
                     .integer = arg == 1 ? INT64_MIN : INT64_MAX,
                     .number = arg == 1 ? -INFINITY : INFINITY};
    if (call_is_given(call, arg)) TRY(call_scalar(call, arg, &scalar));
    if (work->compute == FERRY_I64) {
        if (scalar.is_float) {
            return call_fail(call, FERRY_UNSUPPORTED, "a fractional scalar with %s",
                             ferry_dtype_name(dtype));
        }
        number->i64 = scalar.integer;
        return FERRY_OK;
    }
    if (work->compute == FERRY_F64)
        number->f64 = scalar.number;
    else
        number->f32 = (float)scalar.number;
    if (compares && dtype != work->compute) {
        Number rounded;
        dtype_convert(FERRY_F64, &scalar.number, dtype, &rounded, 1);
        dtype_convert(dtype, &rounded, work->compute, number, 1);
    }
    return FERRY_OK;
}

/* Row, types and operands of the call; `loop` gets an operand for the output and each argument. */
static ferry_status prepare(const Call *call, Elementwise *work, Loop *loop) {
    static const int64_t still[FERRY_MAX_RANK] = {0};
    const OpSchema *schema = op_schema(call->node->op);
    const Tensor *first = call_tensor(call, schema->args[0].type == ARG_TENSOR ? 0 : 1);
    RowSet rows = find_rows(call, first->dtype);
    work->compute = call_compute_dtype(first->dtype);
    work->result = rows.to_bool ? FERRY_BOOL : work->compute;
    work->row = work->compute == FERRY_F32   ? rows.f32
                : work->compute == FERRY_F64 ? rows.f64
                : work->compute == FERRY_I64 ? rows.i64
                                             : NULL;
    if (!work->row) return call_reject_dtype(call, first->dtype);
    if (!loop_tensor(loop, work->output)) return call_reject_shape(call);
    for (uint32_t arg = 0; arg < schema->arg_count; arg++) {
        if (schema->args[arg].type == ARG_TENSOR) {
            const Tensor *tensor = call_tensor(call, arg);
            work->dtypes[work->count] = tensor->dtype;
            work->data[work->count++] = tensor->data;
            if (!loop_tensor(loop, tensor)) return call_reject_shape(call);
        } else if (schema->args[arg].type == ARG_SCALAR) {
            TRY(take_scalar(call, arg, first->dtype, rows.to_bool, work));
            work->dtypes[work->count] = work->compute;
            work->data[work->count] = (const unsigned char *)&work->scalars[work->count];
            work->count++;
            loop_strides(loop, still);
        }
    }
    return FERRY_OK;
}

ferry_status kernel_elementwise(Call *call) {
    Elementwise work = {.output = call_output(call, 0)};
    Loop loop = loop_start(work.output->rank, work.output->shape);
    TRY(call_allocate(call, 0));
    TRY(prepare(call, &work, &loop));
    if (call->node->op == OP_POW_SCALAR && work.compute == FERRY_I64 && work.scalars[1].i64 < 0) {
        return call_fail(call, FERRY_INVALID_ARGUMENT, "an integer to a negative integer power");
    }
    loop_run(&loop, call->pool, 4, run_stretch, &work);
    return FERRY_OK;
}

/* ---- where: a choice of bytes ---- */

typedef struct Choice {
    const Tensor *output, *condition, *first, *second;
} Choice;

static void choose_stretch(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    const Choice *choice = context;
    const uint8_t *condition = choice->condition->data + offsets[1];
    int64_t size = (int64_t)ferry_dtype_size(choice->output->dtype);
    int64_t condition_step = loop->steps[1], a_step = loop->steps[2], b_step = loop->steps[3];
    unsigned char *target = choice->output->data + offsets[0] * size;
    const unsigned char *first = choice->first->data + offsets[2] * size;
    const unsigned char *second = choice->second->data + offsets[3] * size;
#define CHOOSE(type)                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                              \
        ((type *)target)[i] = condition[i * condition_step] ? ((const type *)first)[i * a_step]    \
                                                            : ((const type *)second)[i * b_step];  \
    }
    if (size == 1)
        CHOOSE(uint8_t)
    else if (size == 2)
        CHOOSE(uint16_t)
    else if (size == 4)
        CHOOSE(uint32_t)
    else
        CHOOSE(uint64_t)
#undef CHOOSE
}

ferry_status kernel_where(Call *call) {
    Choice choice = {call_output(call, 0), call_tensor(call, 0), call_tensor(call, 1),
                     call_tensor(call, 2)};
    Loop loop = loop_start(choice.output->rank, choice.output->shape);
    TRY(call_allocate(call, 0));
    if (!loop_tensor(&loop, choice.output) || !loop_tensor(&loop, choice.condition) ||
        !loop_tensor(&loop, choice.first) || !loop_tensor(&loop, choice.second)) {
        return call_reject_shape(call);
    }
    loop_run(&loop, call->pool, 2, choose_stretch, &choice);
    return FERRY_OK;
}
