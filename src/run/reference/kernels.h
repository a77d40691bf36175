/* The kernels, by the file that has them. */
#ifndef RUN_REFERENCE_KERNELS_H
#define RUN_REFERENCE_KERNELS_H

#include "run/reference/call.h"

/* elementwise.c */
ferry_status kernel_elementwise(Call *call);
ferry_status kernel_where(Call *call);

/* copy.c */
ferry_status kernel_to(Call *call);

/* shape.c */
ferry_status kernel_view(Call *call);
ferry_status kernel_permute(Call *call);
ferry_status kernel_unsqueeze(Call *call);
ferry_status kernel_squeeze(Call *call);
ferry_status kernel_expand(Call *call);
ferry_status kernel_cat(Call *call);
ferry_status kernel_slice(Call *call);
ferry_status kernel_select(Call *call);
ferry_status kernel_split(Call *call);

/* select.c */
ferry_status kernel_embedding(Call *call);
ferry_status kernel_index_select(Call *call);
ferry_status kernel_gather(Call *call);

/* index.c */
ferry_status kernel_index(Call *call);
ferry_status kernel_index_put(Call *call);
ferry_status kernel_nonzero(Call *call);

/* scatter.c */
ferry_status kernel_index_copy(Call *call);
ferry_status kernel_scatter(Call *call);

/* order.c */
ferry_status kernel_topk(Call *call);

/* grouped.c */
ferry_status kernel_grouped_mm(Call *call);

/* reduce.c */
ferry_status kernel_reduce(Call *call);
ferry_status kernel_cumsum(Call *call);

/* create.c */
ferry_status kernel_arange(Call *call);
ferry_status kernel_full(Call *call);
ferry_status kernel_scalar_tensor(Call *call);

/* norm.c */
ferry_status kernel_softmax(Call *call);
ferry_status kernel_layer_norm(Call *call);
ferry_status kernel_rms_norm(Call *call);

/* matmul.c */
ferry_status kernel_linear(Call *call);
ferry_status kernel_matmul(Call *call);

/* attention.c */
ferry_status kernel_attention(Call *call);

/* rotary.c */
ferry_status kernel_rotary_embedding(Call *call);

/* convolution.c */
ferry_status kernel_convolution(Call *call);

/* pool.c */
ferry_status kernel_pool(Call *call);

/* channels.c */
ferry_status kernel_batch_norm(Call *call);
ferry_status kernel_group_norm(Call *call);

/* pad.c */
ferry_status kernel_pad(Call *call);

/* upsample.c */
ferry_status kernel_upsample(Call *call);
/* Keys' cubic kernel: the weight of an element that is `x` away; `a` is its slope at 1. */
double kernel_cubic(double x, double a);

/* grid.c */
ferry_status kernel_grid_sampler(Call *call);

#endif
