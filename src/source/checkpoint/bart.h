/* BART and its relatives: a description of their differences, and their layers.
 *
 * Every one is an encoder and a decoder of the same make: embedded tokens and positions, layers of
 * attention and two projections with a LayerNorm each, before the part or after the residual. */
#ifndef SOURCE_BART_H
#define SOURCE_BART_H

#include "source/checkpoint/seq2seq.h"

typedef enum BartPositions {
    BART_LEARNED, /* a table in the file, whose first rows serve padding */
    BART_SINES,   /* a table that may be in the file, else sines and cosines */
    BART_TOKENS,  /* sines and cosines of the number of tokens so far, zero at padding */
} BartPositions;

typedef struct BartTraits {
    BartPositions positions;
    bool norm_first;     /* and after the last layer */
    bool embedding_norm; /* layernorm_embedding */
    bool logits_bias;    /* final_logits_bias */
    bool scales;         /* default of scale_embedding, */
    bool scales_embeds;  /* which concerns inputs_embeds too */
    bool splits;         /* share_encoder_decoder_embeddings may be false */
    const char *activation;
    int64_t vocabulary, pad;
    int64_t width, layers, heads, inner; /* defaults; 0: those of the large models */
    bool no_key_bias;
    bool shifts, wraps; /* as in Seq2Seq */
    const char *logits; /* the projection; NULL: lm_head */
} BartTraits;

/* An encoder or a decoder. */
typedef struct BartStack {
    const char *name;
    int64_t vocabulary, layers, heads, inner;
} BartStack;

typedef struct Bart {
    Seq2Seq s;
    Model *m;
    const BartTraits *traits;
    BartStack encoder, decoder;
    int64_t width, pad;
    double scale; /* of embedded tokens */
    const char *activation;
} Bart;

/* Read what the configurations have in common. */
Bart bart_start(Model *m);

/* "<stack>.<name>". */
const char *bart_name(Bart *bart, const BartStack *stack, const char *name);

/* All layers, and the norm behind them: x [batch, sequence, width]. */
Value *bart_encoder_layers(Bart *bart, Value *x, Value *mask);
Value *bart_decoder_layers(Bart *bart, Value *x, Value *mask);

/* The decoder's outputs, of its normalized hidden states. */
void bart_outputs(Bart *bart, Value *hidden, Value *words);

#endif
