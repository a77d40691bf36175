/* What encoder-decoder models share: their inputs, components, caches and outputs.
 *
 * A family's builder reads the configuration and then goes through these steps:
 *
 *   seq2seq_start            the inputs of the whole model, or of the component
 *   the encoder              when seq2seq_has_encoder, and nothing else when seq2seq_is_encoder
 *   seq2seq_enter_decoder    what the encoder made, or as it comes in; masks and caches
 *   the decoder              seq2seq_join for self attention, seq2seq_cross for cross attention
 *   seq2seq_outputs
 *
 * "sequence" is the length of what the encoder makes, "decoder_sequence" that of decoder_input_ids, and
 * "past" that of the decoder's cache. Cross attention's keys and values are made by prefill and come in
 * for decode, which does not read encoder_outputs but to return it. */
#ifndef SOURCE_SEQ2SEQ_H
#define SOURCE_SEQ2SEQ_H

#include "source/checkpoint/attention.h"

typedef struct Seq2Seq {
    Model *m;
    const char *main_input;      /* "input_ids", "input_features" */
    bool masked;                 /* attention_mask hides padding of the encoder's input */
    const char *encoder_outputs; /* the class of what the encoder returns */
    bool shifts; /* decoder_input_ids may be absent: input_ids, shifted, are read then */
    bool wraps;  /* the shifted begin with the last token, not with the start */
    int64_t start, eos, pad; /* tokens, for keys that are absent; start < 0: none */
    int64_t labels;          /* the same */
    Value *ids;              /* of the encoder; NULL: it has none */
    Value *encoded;          /* [batch, length, features] */
    Value *cross_mask;       /* bool [batch, 1, 1, length]; NULL: nothing is hidden */
    CachePair cache;
} Seq2Seq;

/* "encoder", "prefill", "decode". */
extern const char *const seq2seq_components[];

/* A size in the configuration: `alias` (may be NULL) wins over `key`, as in the classes. */
int64_t seq2seq_size(Model *m, const char *key, const char *alias, int64_t otherwise);

/* Choose the inputs; main_input and masked are set. */
void seq2seq_start(Seq2Seq *s);

/* Does the program have the encoder? And nothing else, as the component "encoder" and the class
 * "EncoderModel"? */
bool seq2seq_has_encoder(const Seq2Seq *s);
bool seq2seq_is_encoder(const Seq2Seq *s);

/* The embedding [rows, width] of "encoder" or "decoder": its own where the file has it, else the one that
 * both share. */
Value *seq2seq_embedding(Seq2Seq *s, const char *stack, int64_t rows, int64_t width);

/* The embedding that both share, where the file has it, else `own`: what the logits are tied to. */
Value *seq2seq_shared_embedding(Seq2Seq *s, Value *own);

/* `encoded` is the only output. */
void seq2seq_output_encoder(Seq2Seq *s, Value *encoded);

/* Build the decoder of so many layers from here on. `encoded` is what the encoder made, NULL when it is an
 * input of `length` (NULL: any) positions with `width` features. */
void seq2seq_enter_decoder(Seq2Seq *s, Value *encoded, const Sym *length, int64_t width,
                           int64_t layers);

/* Which keys the decoder's queries see: bool, or NULL for what is_causal says. */
Value *seq2seq_decoder_mask(Seq2Seq *s);

/* Self attention: keys and values that the layer computed, joined with those that come in. */
CacheLayer *seq2seq_join(Seq2Seq *s, int64_t layer, Value *keys, Value *values);

/* Cross attention: keys and values of the layer as they come in; NULL when they are to be computed from
 * s->encoded and given to seq2seq_keep. */
CacheLayer *seq2seq_cross(Seq2Seq *s, int64_t layer, int64_t heads, int64_t size);
CacheLayer *seq2seq_keep(Seq2Seq *s, int64_t layer, Value *keys, Value *values);

/* The decoder's tokens embedded by `words`: decoder_input_ids, decoder_inputs_embeds, or the shifted
 * input_ids. `*ids` (may be NULL) receives the tokens or NULL. */
Value *seq2seq_embed_decoder(Seq2Seq *s, Value *words, Value **ids);

/* The outputs: the fields `names` of the ModelOutput class `type`; then caches, and what the encoder made. */
void seq2seq_output_fields(Seq2Seq *s, const char *type, const char *const *names,
                           Value *const *values, uint32_t count);

/* The same, with logits, or last_hidden_state of the base class. */
void seq2seq_outputs(Seq2Seq *s, Value *result);

/* Is the class one with a head on the decoder's hidden states? Its outputs. */
bool seq2seq_has_head(const Seq2Seq *s);
void seq2seq_output_head(Seq2Seq *s, Value *hidden);

#endif
