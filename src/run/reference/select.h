/* Selection by index: one loop over the output, the index and the source. */
#ifndef RUN_REFERENCE_SELECT_H
#define RUN_REFERENCE_SELECT_H

#include "run/reference/call.h"

#include <stdatomic.h>

typedef struct Selection {
    const Tensor *output, *index, *source;
    int64_t size, stride; /* of the chosen dimension of the source */
    atomic_bool failed;
    _Atomic int64_t bad; /* an index that is out of range */
} Selection;

/* Fill output 0. `index` and `source` are the strides of both over the dimensions of the output; the
 * source stands still along the dimension that the index chooses from. */
ferry_status select_run(Call *call, Selection *selection, const int64_t *index,
                        const int64_t *source);

#endif
