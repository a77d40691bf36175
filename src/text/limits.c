#include "text/limits.h"
#include "base/error.h"

static const char *const directions[] = {"Right", "Left"};

void truncation_read(Settings *settings, const Doc *doc, Truncation *out) {
    static const char *const strategies[] = {"LongestFirst", "OnlyFirst", "OnlySecond"};
    settings->place = "truncation";
    if (!doc || doc_is_null(doc)) return;
    out->given = true;
    out->max_length = setting_size(settings, doc, "max_length");
    out->strategy = (TruncationStrategy)setting_choice(settings, doc, "strategy", strategies, 3);
    if (doc_get(doc, "direction"))
        out->left = setting_choice(settings, doc, "direction", directions, 2);
}

void padding_read(Settings *settings, const Doc *doc, Padding *out) {
    settings->place = "padding";
    if (!doc || doc_is_null(doc)) return;
    const Doc *strategy = doc_get(doc, "strategy");
    out->given = true;
    if (doc_is_object(strategy))
        out->length = setting_size(settings, strategy, "Fixed");
    else
        setting_choice(settings, doc, "strategy", (const char *const[]){"BatchLongest"}, 1);
    out->left = setting_choice(settings, doc, "direction", directions, 2);
    out->multiple = setting_size_or(settings, doc, "pad_to_multiple_of", 0);
    out->id = (uint32_t)setting_size(settings, doc, "pad_id");
    out->type = (uint32_t)setting_size(settings, doc, "pad_type_id");
    if (out->length > 1 << 20 || out->multiple > 1 << 20)
        setting_fail(settings, FERRY_UNSUPPORTED, "lengths go up to %d", 1 << 20);
}

/* Of a pair that is cut to `max`: the lengths of both. */
static void share(size_t max, size_t lengths[2]) {
    bool swap = lengths[0] > lengths[1];
    size_t a = lengths[swap], b;
    b = a > max ? a : max - a > a ? max - a : a;
    if (a + b > max) {
        a = max / 2;
        b = a + max % 2;
    }
    lengths[swap] = a;
    lengths[!swap] = b;
}

static void cut(Post *post, size_t segment, size_t length, bool left) {
    size_t begin = segment ? post->ends.items[0] : 0, end = post->ends.items[segment];
    if (end - begin <= length) return;
    size_t removed = end - begin - length, from = left ? begin : begin + length;
    Encoded *items = post->tokens.items;
    memmove(items + from, items + from + removed,
            (post->tokens.count - from - removed) * sizeof *items);
    post->tokens.count -= removed;
    for (size_t s = segment; s < post->ends.count; s++) post->ends.items[s] -= removed;
}

ferry_status truncate_inputs(const Truncation *truncation, Post *post, size_t added,
                             const char *path, ferry_error *error) {
    if (!truncation->given)
        return error_set(error, FERRY_INVALID_ARGUMENT, path,
                         "has no \"truncation\"; encode without, or cut off the ids");
    if (added > truncation->max_length)
        return error_set(error, FERRY_INVALID_ARGUMENT, path,
                         "\"truncation\" leaves no room: %zu tokens, of which %zu are special",
                         truncation->max_length, added);
    size_t max = truncation->max_length - added, total = post->tokens.count;
    bool pair = post->ends.count == 2;
    if (total <= max) return FERRY_OK;
    size_t lengths[2] = {post->ends.items[0], total - post->ends.items[0]};
    size_t removed = total - max, only = truncation->strategy == TRUNCATE_ONLY_SECOND;
    if (truncation->strategy == TRUNCATE_LONGEST_FIRST || max == 0) {
        if (max == 0)
            lengths[0] = lengths[1] = 0;
        else if (pair)
            share(max, lengths);
        else
            lengths[0] = max;
    } else if (only && !pair) {
        return error_set(error, FERRY_INVALID_ARGUMENT, path,
                         "\"truncation\" cuts only the second text, and there is one");
    } else if (lengths[only] <= removed) {
        return error_set(error, FERRY_INVALID_ARGUMENT, path,
                         "\"truncation\" would cut %zu tokens, but the text has %zu", removed,
                         lengths[only]);
    } else {
        lengths[only] -= removed;
    }
    cut(post, 0, lengths[0], truncation->left);
    if (pair) cut(post, 1, lengths[1], truncation->left);
    return FERRY_OK;
}

size_t padding_missing(const Padding *padding, size_t count) {
    size_t wanted = padding->length ? padding->length : count;
    if (padding->multiple && wanted % padding->multiple)
        wanted += padding->multiple - wanted % padding->multiple;
    return wanted > count ? wanted - count : 0;
}
