/* Choosing tokens. */
#include "run/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers: xoroshiro128+ (Blackman and Vigna), seeded by splitmix64 ---- */

static uint64_t split_mix(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void sample_seed(SampleRandom *random, uint64_t seed) {
    random->state[0] = split_mix(&seed);
    random->state[1] = split_mix(&seed);
}

static uint64_t rotate(uint64_t x, int by) {
    return (x << by) | (x >> (64 - by));
}

/* In [0, 1). */
static double draw(SampleRandom *random) {
    uint64_t a = random->state[0], b = random->state[1], result = a + b;
    b ^= a;
    random->state[0] = rotate(a, 24) ^ b ^ (b << 16);
    random->state[1] = rotate(b, 37);
    return (double)(result >> 11) * 0x1p-53;
}

/* ---- processors ---- */

static void forbid(float *scores, size_t vocabulary, const int64_t *tokens, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] >= 0 && (size_t)tokens[i] < vocabulary) scores[tokens[i]] = -INFINITY;
    }
}

/* Each token that has occurred is penalized once, however often it did. */
static void penalize_repetition(float *scores, size_t vocabulary, const SampleHistory *history,
                                double penalty, uint32_t *seen) {
    float factor = (float)penalty;
    memset(seen, 0, vocabulary * sizeof *seen);
    for (size_t i = 0; i < history->count; i++) {
        int64_t token = history->tokens[i];
        if (token < 0 || (size_t)token >= vocabulary || seen[token]++) continue;
        scores[token] = scores[token] < 0 ? scores[token] * factor : scores[token] / factor;
    }
}

/* Forbid what would complete a run of `size` tokens that has occurred. */
static void forbid_repeated(float *scores, size_t vocabulary, const SampleHistory *history,
                            size_t size) {
    if (history->count + 1 < size) return;
    const int64_t *last = history->tokens + history->count + 1 - size;
    for (size_t i = 0; i + size <= history->count; i++) {
        if (memcmp(history->tokens + i, last, (size - 1) * sizeof *last) != 0) continue;
        forbid(scores, vocabulary, &history->tokens[i + size - 1], 1);
    }
}

static void force(float *scores, size_t vocabulary, int64_t token) {
    if (token < 0 || (size_t)token >= vocabulary) return;
    for (size_t i = 0; i < vocabulary; i++) scores[i] = -INFINITY;
    scores[token] = 0;
}

void sample_process(float *scores, size_t vocabulary, const SampleHistory *history,
                    const SampleOptions *o, uint32_t *scratch) {
    size_t added = history->count - history->prompt;
    if (o->repetition_penalty > 0 && o->repetition_penalty != 1) {
        penalize_repetition(scores, vocabulary, history, o->repetition_penalty, scratch);
    }
    if (o->no_repeat_ngram_size > 0) {
        forbid_repeated(scores, vocabulary, history, (size_t)o->no_repeat_ngram_size);
    }
    if (history->count < (size_t)o->min_length || added < (size_t)o->min_new_tokens) {
        forbid(scores, vocabulary, o->stop_tokens, o->stop_count);
    }
    if (history->count == 1) force(scores, vocabulary, o->forced_bos);
    if (history->count + 1 == history->limit) force(scores, vocabulary, o->forced_eos);
    forbid(scores, vocabulary, o->suppress_tokens, o->suppress_count);
    if (added == 0) {
        forbid(scores, vocabulary, o->begin_suppress_tokens, o->begin_suppress_count);
    }
}

int64_t sample_best(const float *scores, size_t vocabulary) {
    size_t best = 0;
    for (size_t i = 1; i < vocabulary; i++) {
        if (scores[i] > scores[best]) best = i;
    }
    return (int64_t)best;
}

/* ---- drawing ---- */

/* Tokens by falling score, in a heap of which only as many are taken out as are wanted. */
typedef struct Heap {
    const float *scores;
    uint32_t *items;
    size_t count;
} Heap;

static bool before(const Heap *heap, uint32_t a, uint32_t b) {
    float left = heap->scores[a], right = heap->scores[b];
    return left > right || (left == right && a < b);
}

static void sift(Heap *heap, size_t at) {
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count) return;
        if (child + 1 < heap->count && before(heap, heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!before(heap, heap->items[child], heap->items[at])) return;
        uint32_t moved = heap->items[at];
        heap->items[at] = heap->items[child];
        heap->items[child] = moved;
        at = child;
    }
}

/* The next one, which moves behind the heap's end. */
static uint32_t take(Heap *heap) {
    uint32_t top = heap->items[0];
    heap->items[0] = heap->items[--heap->count];
    heap->items[heap->count] = top;
    sift(heap, 0);
    return top;
}

/* The sum of e^(score - highest) over all tokens. */
static double total(const float *scores, size_t vocabulary, float highest) {
    double sum = 0;
    for (size_t i = 0; i < vocabulary; i++) sum += exp((double)(scores[i] - highest));
    return sum;
}

/* How many of the tokens, by falling score, stay in: of the `top_k` highest, those before which less than
 * top_p has been seen, and of these, those that are at least min_p as probable as the first. */
static size_t keep(Heap *heap, size_t vocabulary, const SampleOptions *o, double *sum) {
    size_t most = vocabulary;
    bool limited = o->top_k > 0 && (size_t)o->top_k < vocabulary;
    if (limited) most = (size_t)o->top_k;
    bool nucleus = o->top_p > 0 && o->top_p < 1;
    float highest = heap->scores[heap->items[0]];
    double all = 0, seen = 0, inside = 0;
    size_t kept = 0, candidates = 0;
    if (nucleus && !limited) all = total(heap->scores, vocabulary, highest);
    if (nucleus && limited) { /* the probabilities are those among the top_k */
        while (candidates < most) {
            all += exp((double)(heap->scores[take(heap)] - highest));
            candidates++;
        }
    }
    for (; kept < most; kept++) {
        uint32_t token = kept < candidates ? heap->items[vocabulary - 1 - kept] : take(heap);
        double weight = exp((double)(heap->scores[token] - highest));
        bool out = nucleus && kept > 0 && seen >= o->top_p * all;
        if (out || (o->min_p > 0 && weight < o->min_p) || (kept > 0 && weight == 0)) break;
        seen += weight;
        inside += weight;
    }
    *sum = inside;
    return kept;
}

bool sample_is_among(const int64_t *tokens, size_t count, int64_t token) {
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] == token) return true;
    }
    return false;
}

int64_t sample_draw(float *scores, size_t vocabulary, const SampleOptions *options,
                    uint32_t *scratch, SampleRandom *random) {
    Heap heap = {.scores = scores, .items = scratch, .count = vocabulary};
    double sum = 0, seen = 0;
    for (size_t i = 0; i < vocabulary; i++) {
        if (options->temperature > 0) scores[i] = (float)((double)scores[i] / options->temperature);
        scratch[i] = (uint32_t)i;
    }
    for (size_t i = vocabulary / 2; i-- > 0;) sift(&heap, i);
    float highest = scores[scratch[0]];
    size_t kept = keep(&heap, vocabulary, options, &sum);
    double wanted = draw(random) * sum;
    for (size_t i = 0; i < kept; i++) {
        uint32_t token = scratch[vocabulary - 1 - i];
        seen += exp((double)(scores[token] - highest));
        if (seen > wanted || i + 1 == kept) return token;
    }
    return sample_best(scores, vocabulary);
}
