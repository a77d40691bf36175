/* Who computes parts of a program besides the kernels. A backend takes nodes; partition.c divides the program
 * between it and the kernels; it makes a graph of each part, the blob of a delegate. */
#ifndef TARGET_EXECUTORCH_BACKEND_H
#define TARGET_EXECUTORCH_BACKEND_H

#include "target/executorch/emit.h"

/* When each node runs. The delegate 1 runs after the kernels of level 0, the kernels of level 1 after it,
 * and so on. */
typedef struct Partition {
    uint32_t *levels; /* by the id of a node's first output */
    bool *taken;      /* the same: by the delegate of the level */
    bool *escapes;    /* by value id: it is read outside of the delegate that makes it */
    bool *folded;     /* by value id: a transposition that is left to the products that read it */
    uint32_t last;    /* the highest level */
} Partition;

struct Backend {
    const char *name;   /* the user's */
    const char *id;     /* the runtime's */
    bool (*has)(Op op); /* it takes some nodes of this operation */
    bool (*takes)(const Node *node);
    bool (*decomposes)(const Node *node); /* kernels have it, but this one computes its parts */
    ferry_status (*prepare)(Program *program, ferry_error *error); /* before legalizing */

    /* Its graphs compute with sizes, and what they take costs nothing more there: they take all of it.
     * Otherwise shapes are fixed by the inputs, and small chains that only kernels read stay with them. */
    bool computes_sizes;

    bool multiplies_transposed; /* its products take the second factor with rows for columns */

    /* Call a delegate made of the nodes of this level. */
    void (*delegate)(Pte *p, const Partition *partition, uint32_t level);
};

extern const Backend xnnpack_backend, mlx_backend;

/* partition.c; without a backend everything is the kernels'. */
bool partition_make(Pte *p, const Backend *backend, Partition *out);

#endif
