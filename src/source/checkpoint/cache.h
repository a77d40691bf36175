/* The cache of a decoder: what comes in, how a step joins it, and what goes out.
 *
 * A program is one of these (ModelRequest):
 *
 *   the whole model     nothing comes in; sliding layers return the last entries, as eager does
 *   "prefill"           nothing comes in; all layers return everything, or, with a static cache,
 *                       tensors of the cache's length
 *   "decode"            the cache comes in. A dynamic one is `past` entries long and goes out longer;
 *                       a static one is written in place where its counter stands
 *
 * A layer that is no attention keeps states of a fixed size instead of keys and values. They are zeros at
 * first, and a static cache has the same.
 *
 * Leaf names, their order and the structure are those of transformers.cache_utils as
 * transformers.exporters flattens them: cache.layers.N.keys, .values and then, of a sliding layer,
 * ._sliding_window_tensor, or of a static one, .cumulative_length; of a layer with states,
 * .conv_states.0 and .recurrent_states.0. A decoder with cross attention has two caches,
 * cache.self_attention_cache.layers.N.keys and cache.cross_attention_cache.layers.N.keys. */
#ifndef SOURCE_CACHE_H
#define SOURCE_CACHE_H

#include "source/checkpoint/model.h"

enum { CACHE_MAX_LAYERS = 1024 };

/* One layer of a cache. */
typedef struct CacheLayer {
    Value *keys, *values; /* [batch, heads, length, size] */
    int64_t window;       /* > 0: a sliding layer, which sees the last `window` entries */
    Value *counter;       /* of a static layer that came in: its number of entries, 0-d int64 */
    Value *before[2];     /* keys and values, or states, as they came in; NULL: nothing did */
    Value *marker;        /* of a sliding layer that came in: its window, 0-d int64 */
    Value *states[2];     /* in place of keys and values: the last inputs of a convolution [batch,
                             channels, kernel], and the state of a recurrence */
    bool fixed;           /* of cross attention: nothing joins what prefill leaves */
} CacheLayer;

/* The caches of a decoder that also attends to what an encoder made. */
typedef struct CachePair {
    CacheLayer *self, *cross;
    int64_t layers;
} CachePair;

/* Does the eager model keep a cache, returned or not? */
bool model_keeps_cache(Model *m);

/* Does a cache come in? */
bool model_takes_cache(const Model *m);

/* Where the queries stand among the keys: int64 [sequence]. */
Value *model_slots(Model *m);

/* How many keys there are, hidden ones included. */
const Sym *model_key_count(Model *m);

/* Join what layer `index` computed, in `layer`, with what comes in. Afterwards its keys and values are
 * those to attend to. */
void model_join_cache(Model *m, CacheLayer *layer, int64_t index);

/* What layer `index` finds when it keeps states: those that come in, else zeros. Both are [batch, ...],
 * without the batch of these sizes; the first is in the dtype of the computation, the second float32. */
void model_find_states(Model *m, CacheLayer *layer, int64_t index, const int64_t convolution[2],
                       uint32_t rank, const int64_t *recurrent);

/* Append the cache to the outputs; its structure for the outputs' tree, and the inputs' when one came
 * in (m->cache_tree). NULL after a failure. */
const Tree *model_output_cache(Model *m, const CacheLayer *layers, int64_t count);

/* The decoder's cache is a pair: from here on model_join_cache and model_slots mean the one of self
 * attention, "cache.self_attention_cache". */
void model_use_cache_pair(Model *m);

/* Take keys and values [batch, heads, length, size] of cross attention as they come in. */
void model_take_fixed_cache(Model *m, CacheLayer *layer, int64_t index, const Sym *const *shape);

/* As model_output_cache, for both. */
const Tree *model_output_cache_pair(Model *m, const CachePair *pair);

#endif
