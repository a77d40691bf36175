/* Copying and converting strided tensors. */
#include "base/dtype.h"
#include "run/reference/kernels.h"

#include <string.h>

/* Elements that are converted at a time when they do not lie side by side. */
enum { BLOCK = 256 };

/* Move `n` elements of one size; steps in elements. */
static void move(size_t size, unsigned char *to, int64_t to_step, const unsigned char *from,
                 int64_t from_step, int64_t n) {
#define MOVE(type)                                                                                 \
    for (int64_t i = 0; i < n; i++) ((type *)to)[i * to_step] = ((const type *)from)[i * from_step]
    if (to_step == 1 && from_step == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 1)
        MOVE(uint8_t);
    else if (size == 2)
        MOVE(uint16_t);
    else if (size == 4)
        MOVE(uint32_t);
    else
        MOVE(uint64_t);
#undef MOVE
}

void call_load(ferry_dtype from, const unsigned char *source, int64_t step, int64_t n,
               ferry_dtype to, void *block) {
    size_t size = ferry_dtype_size(from), to_size = ferry_dtype_size(to);
    if (step == 1 || n == 1) {
        dtype_convert(from, source, to, block, (size_t)n);
        return;
    }
    uint64_t gathered[BLOCK];
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t length = n - done < BLOCK ? n - done : BLOCK;
        move(size, (unsigned char *)gathered, 1, source + done * step * (int64_t)size, step,
             length);
        dtype_convert(from, gathered, to, (unsigned char *)block + (size_t)done * to_size,
                      (size_t)length);
    }
}

typedef struct Copy {
    const Tensor *from, *to;
} Copy;

static void copy_stretch(void *context, const Loop *loop, const int64_t *offsets, int64_t n) {
    const Copy *copy = context;
    const Tensor *from = copy->from, *to = copy->to;
    int64_t from_size = (int64_t)ferry_dtype_size(from->dtype);
    int64_t to_size = (int64_t)ferry_dtype_size(to->dtype);
    const unsigned char *source = from->data + offsets[0] * from_size;
    unsigned char *target = to->data + offsets[1] * to_size;
    if (from->dtype == to->dtype) {
        move((size_t)to_size, target, loop->steps[1], source, loop->steps[0], n);
        return;
    }
    if (loop->steps[1] == 1) {
        call_load(from->dtype, source, loop->steps[0], n, to->dtype, target);
        return;
    }
    uint64_t block[BLOCK];
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t length = n - done < BLOCK ? n - done : BLOCK;
        call_load(from->dtype, source + done * loop->steps[0] * from_size, loop->steps[0], length,
                  to->dtype, block);
        move((size_t)to_size, target + done * loop->steps[1] * to_size, loop->steps[1],
             (unsigned char *)block, 1, length);
    }
}

void call_copy(const Call *call, const Tensor *from, const Tensor *to) {
    Copy copy = {from, to};
    Loop loop = loop_start(to->rank, to->shape);
    loop_strides(&loop, from->strides);
    loop_strides(&loop, to->strides);
    loop_run(&loop, call->pool, 1, copy_stretch, &copy);
}

ferry_status kernel_to(Call *call) {
    const Tensor *self = call_tensor(call, 0);
    if (self->dtype == call->node->args[1].dtype) return call_share(call, 0, self);
    if (!tensor_same_shape(self, call_output(call, 0))) return call_reject_shape(call);
    TRY(call_allocate(call, 0));
    call_copy(call, self, call_output(call, 0));
    return FERRY_OK;
}
