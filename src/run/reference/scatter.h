/* Writing by index: one loop over an index, the elements to write and where they go. */
#ifndef RUN_REFERENCE_SCATTER_H
#define RUN_REFERENCE_SCATTER_H

#include "run/reference/call.h"

typedef enum Combine {
    COMBINE_REPLACE,
    COMBINE_ADD,
    COMBINE_MULTIPLY,
    COMBINE_MAX,
    COMBINE_MIN
} Combine;

typedef struct Scatter {
    Combine combine;
    const Tensor *index, *source;
    int64_t size, stride; /* of the dimension of the output that the index chooses from */
} Scatter;

/* Output 0: a copy of `self`, then element by element of `shape` the source goes to where the index
 * says. The strides are those of the three over `shape`; the output stands still along the chosen
 * dimension. Of two writes to one place the later one counts. */
ferry_status scatter_run(Call *call, const Tensor *self, Scatter *scatter, uint32_t rank,
                         const int64_t *shape, const int64_t *index, const int64_t *source,
                         const int64_t *target);

#endif
