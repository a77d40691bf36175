/* Relative positions in buckets: exact for near keys, then logarithmic, a bias per head and bucket. */
#include "source/checkpoint/attention.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_REACH = 1 << 16 };

/* The bucket of a key `distance` positions after the query, with the classes' arithmetic in float32. */
static int64_t bucket_of(const RelativeBuckets *spec, int64_t distance) {
    int64_t side = spec->both_ways ? spec->buckets / 2 : spec->buckets, exact = side / 2;
    int64_t first = spec->both_ways && distance > 0 ? side : 0;
    int64_t steps = spec->both_ways || distance < 0 ? llabs(distance) : 0;
    if (steps < exact) return first + steps;
    float range = (float)log((double)spec->reach / (double)exact);
    float share = logf((float)steps / (float)exact) / range;
    int64_t bucket = exact + (int64_t)(share * (float)(side - exact));
    return first + (bucket < side ? bucket : side - 1);
}

/* The bias of every distance from -reach on, [2 * reach + 1, heads]. The buckets are computed here, so
 * that no runtime's logarithm decides about the bucket of a power of two. */
static Value *bias_by_distance(Model *m, const RelativeBuckets *spec, Value *table) {
    const int64_t count = 2 * spec->reach + 1;
    int64_t *buckets = ARENA_ARRAY(&m->b.program->arena, int64_t, (size_t)count);
    if (!buckets) return build_fail(&m->b, FERRY_OUT_OF_MEMORY, "out of memory");
    for (int64_t i = 0; i < count; i++) buckets[i] = bucket_of(spec, i - spec->reach);
    Value *bucket =
        build_constant(&m->b, VALUE_CONSTANT, "relative_buckets", FERRY_I64, 1, &count, buckets);
    return build_embedding(&m->b, table, bucket);
}

Value *model_relative_bias(Model *m, const RelativeBuckets *spec, Value *table) {
    Builder *b = &m->b;
    int64_t side = spec->both_ways ? spec->buckets / 2 : spec->buckets;
    if (side < 2 || spec->reach <= side / 2 || spec->reach > MAX_REACH) {
        return build_fail(b, FERRY_UNSUPPORTED,
                          "%s: %lld buckets do not fit distances of up to %lld (at most %d)",
                          m->config_path, (long long)spec->buckets, (long long)spec->reach,
                          MAX_REACH);
    }
    Value *biases = bias_by_distance(m, spec, table);
    Value *keys = build_arange(b, build_const(b, 0), model_key_count(m), FERRY_I64);
    Value *queries = model_slots(m);
    Value *distance = build_sub(b, build_unsqueeze(b, keys, 0), build_unsqueeze(b, queries, 1));
    distance = build_clamp(b, distance, arg_int(b, -spec->reach), arg_int(b, spec->reach));
    Value *row = build_scalar(b, OP_ADD_SCALAR, distance, (double)spec->reach);
    Value *bias = build_permute(b, build_embedding(b, biases, row), (const int64_t[]){2, 0, 1});
    return build_unsqueeze(b, bias, 0);
}
