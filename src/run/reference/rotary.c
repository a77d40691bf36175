/* Rotary position embedding: the rows of all heads are one loop; cos and sin are broadcast. */
#include "run/reference/kernels.h"
#include "run/reference/layers.h"

typedef struct Rotary {
    const Tensor *input, *cosine, *sine, *output;
    bool interleaved;
    int64_t rotated, size;
} Rotary;

#define ROTATE(real, suffix)                                                                       \
    layers_rotate_##suffix((const real *)rotary->input->data + offsets[1] + i * loop->steps[1],    \
                           (const real *)rotary->cosine->data + offsets[2] + i * loop->steps[2],   \
                           (const real *)rotary->sine->data + offsets[3] + i * loop->steps[3],     \
                           rotary->interleaved, rotary->rotated, rotary->size,                     \
                           (real *)rotary->output->data + offsets[0] + i * loop->steps[0])

static void rotate_stretch(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    const Rotary *rotary = context;
    for (int64_t i = 0; i < n; i++) {
        if (rotary->output->dtype == FERRY_F64)
            ROTATE(double, f64);
        else
            ROTATE(float, f32);
    }
}

/* The argument in the compute type, its features side by side; `*rows` is it without them. */
static ferry_status take_rows(Call *call, uint32_t arg, ferry_dtype dtype, const Tensor **out,
                              Tensor *rows) {
    const Tensor *tensor = call_tensor(call, arg);
    if (tensor->rank == 0) return call_reject_shape(call);
    TRY(call_convert(call, &tensor, dtype));
    if (tensor->strides[tensor->rank - 1] != 1) TRY(call_contiguous(call, &tensor));
    *out = tensor;
    *rows = *tensor;
    rows->rank--;
    return FERRY_OK;
}

ferry_status kernel_rotary_embedding(Call *call) {
    Rotary rotary = {.interleaved = call->node->args[3].boolean};
    Tensor input, cosine, sine, *output;
    ferry_dtype dtype = call_compute_dtype(call_tensor(call, 0)->dtype);
    if (dtype != FERRY_F32 && dtype != FERRY_F64) {
        return call_reject_dtype(call, call_tensor(call, 0)->dtype);
    }
    TRY(take_rows(call, 0, dtype, &rotary.input, &input));
    TRY(take_rows(call, 1, dtype, &rotary.cosine, &cosine));
    TRY(take_rows(call, 2, dtype, &rotary.sine, &sine));
    TRY(call_start(call, dtype, &output));
    rotary.output = output;
    rotary.size = input.shape[input.rank];
    rotary.rotated = cosine.shape[cosine.rank];
    if (rotary.rotated > rotary.size || rotary.rotated % 2 ||
        rotary.rotated != sine.shape[sine.rank]) {
        return call_fail(call, FERRY_INVALID_ARGUMENT,
                         "cannot rotate %lld of %lld features: expected an even number, not above "
                         "the size, the same in cos and sin",
                         (long long)rotary.rotated, (long long)rotary.size);
    }
    Tensor target = *output;
    target.rank--;
    Loop loop = loop_start(target.rank, target.shape);
    if (!loop_tensor(&loop, &target) || !loop_tensor(&loop, &input) ||
        !loop_tensor(&loop, &cosine) || !loop_tensor(&loop, &sine)) {
        return call_reject_shape(call);
    }
    loop_run(&loop, call->pool, rotary.size > 0 ? 2 * rotary.size : 1, rotate_stretch, &rotary);
    call_finish(call, output);
    return FERRY_OK;
}
