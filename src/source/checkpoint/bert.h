/* BERT and its relatives: what they share, and the table of their differences.
 *
 * Every model type is an embedding (words, positions, segments, LayerNorm, perhaps a projection), a
 * stack of post-norm layers, and a head per task. Where they differ, a field of BertTraits says
 * how; names in it are those of weights, without ".weight" and ".bias". */
#ifndef SOURCE_BERT_H
#define SOURCE_BERT_H

#include "source/checkpoint/attention.h"

/* What the configuration calls the sizes. */
typedef struct BertKeys {
    const char *hidden, *layers, *heads, *intermediate, *activation;
    const char *eps; /* NULL: the class has no such key */
} BertKeys;

/* The class's defaults, for keys that older checkpoints omit. */
typedef struct BertDefaults {
    int64_t hidden, layers, heads, intermediate;
    int64_t embedding; /* of embedding_size; 0: embeddings are as wide as the hidden states */
    const char *activation;
} BertDefaults;

/* Parts of a layer, below the layer's own name. */
typedef struct BertLayerNames {
    const char *query, *key, *value, *attention_output, *attention_norm;
    const char *up, *down, *output_norm;
} BertLayerNames;

/* dense, activation, LayerNorm, and a decoder that may be tied to the words. */
typedef struct BertPredictionHead {
    const char *dense;
    const char *activation; /* NULL: that of the layers */
    const char *norm, *decoder;
    const char *bias; /* the decoder's bias, where it is not called "<decoder>.bias" */
} BertPredictionHead;

/* dense and activation on the first token, then the projection to the labels. */
typedef struct BertClassifier {
    const char *dense; /* NULL: the pooler takes the place of both */
    const char *activation;
    const char *projection;
} BertClassifier;

typedef struct BertTraits {
    const BertKeys *keys;
    BertDefaults defaults;
    const char *projection; /* from the embedding to the hidden size; NULL: none */
    bool always_projects;   /* also between equal sizes */
    bool segments;          /* token_type_ids */
    bool skips_padding;     /* positions count the tokens that are not padding, from padding + 1 */
    int64_t padding;        /* the padding token; default of pad_token_id unless fixed */
    bool fixed_padding;
    const char *layers; /* the list of layers, or of groups of shared layers */
    const BertLayerNames *layer;
    const char *shared_layers; /* the list in a group; NULL: layers are not shared */
    bool relative_bias;
    const char *pooler;         /* of the base model; NULL: none */
    const char *features_class; /* what the base model returns */
    BertPredictionHead prediction;
    BertClassifier classifier;
} BertTraits;

typedef struct Bert {
    Model *m;
    const BertTraits *traits;
    int64_t vocabulary, embedding, hidden, layers, heads, intermediate;
    int64_t groups, group_layers; /* of shared layers */
    double eps;
    const char *activation;
    Value *words; /* the embedding matrix */
} Bert;

/* bert_encoder.c: hidden states [batch, sequence, hidden]. */
Value *bert_encode(Bert *bert);

/* bert_heads.c: the outputs for the task. */
void bert_outputs(Bert *bert, Value *hidden);

/* modernbert.c */
void modernbert_build(Model *m);

#endif
