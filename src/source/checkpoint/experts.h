/* Layers of experts: a router chooses a few of many feed-forward parts for each token. */
#ifndef SOURCE_EXPERTS_H
#define SOURCE_EXPERTS_H

#include "source/checkpoint/model.h"

struct Decoder;

typedef enum RouterKind {
    ROUTER_SOFTMAX, /* the largest of softmax(logits) */
    ROUTER_CHOSEN,  /* the largest logits, and the softmax over these */
    ROUTER_SIGMOID, /* sigmoid(logits); a correction is added for the choice, from the best groups */
} RouterKind;

typedef enum SharedKind {
    SHARED_NONE,
    SHARED_GATED, /* shared_expert, times sigmoid(shared_expert_gate) */
    SHARED_PLAIN, /* shared_experts, n_shared_experts times as wide as one expert */
} SharedKind;

typedef enum SparseRule {
    SPARSE_ALWAYS,
    SPARSE_STEP,   /* every decoder_sparse_step-th layer that is not in mlp_only_layers */
    SPARSE_LATER,  /* from layer first_k_dense_replace on */
    SPARSE_PERIOD, /* layers expert_layer_offset of every expert_layer_period, of several experts */
} SparseRule;

typedef struct ExpertTraits {
    RouterKind router;
    SharedKind shared;
    SparseRule sparse;
    const char *count_keys[2]; /* the second is another spelling; may be NULL */
    int64_t count, chosen;     /* defaults of the number of experts and of num_experts_per_tok */
    int64_t size;              /* default of moe_intermediate_size; 0: it is intermediate_size */
    int64_t dense;             /* default of first_k_dense_replace */
    int64_t groups, chosen_groups; /* defaults of n_group and topk_group, */
    double factor;                 /* and of routed_scaling_factor */
    int64_t shared_size;           /* default of shared_expert_intermediate_size */
    const char *normalize_key; /* whether the weights are divided by their sum; NULL: `normalize` */
    bool normalize;            /* default of that */
    const char *module;        /* "mlp" in version 5 of Transformers; what it was called before */
    const char *router_name;
    const char *names[3]; /* of gate, up and down in files with a matrix per expert */
    bool clamped; /* GPT-OSS: biases, transposed, gate and up alternate, clamped activation */
} ExpertTraits;

/* What the configuration says. */
typedef struct Experts {
    int64_t count, chosen, size, shared_size;
    int64_t groups, chosen_groups;
    bool normalizes;
    double factor;         /* on the weights */
    double alpha, limit;   /* of the clamped activation */
    unsigned char *sparse; /* per layer */
} Experts;

/* Read the configuration, of a decoder whose sizes are known. */
void experts_read(struct Decoder *d);

/* The experts of a layer, x [batch, sequence, hidden]. */
Value *experts_layer(struct Decoder *d, Value *x, int64_t layer);

#endif
