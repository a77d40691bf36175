/* Post-processors: special tokens around the text, and trimmed offsets. */
#ifndef TEXT_POSTPROCESSOR_H
#define TEXT_POSTPROCESSOR_H

#include "text/line.h"
#include "text/settings.h"

/* A token of an encoding. */
typedef struct Encoded {
    uint32_t id, type;
    Span span;              /* of its input */
    uint16_t before, after; /* blank characters that the token begins and ends with */
    bool special;           /* made by a post-processor */
    bool padding;
    bool second; /* of the second input */
} Encoded;

typedef VEC(Encoded) EncodedTokens;
typedef VEC(size_t) Ends;

/* What is processed: tokens in segments, which are one input each at first. */
typedef struct Post {
    EncodedTokens tokens, next;
    Ends ends, next_ends; /* of the segments */
    const char *inputs[2];
    size_t lengths[2];
    bool special_tokens;
} Post;

typedef struct PostProcessor PostProcessor;

/* NULL for null, and after a failure. */
PostProcessor *postprocessor_read(Settings *settings, const Doc *doc);

void postprocessor_run(const PostProcessor *postprocessor, Post *post);

/* How many special tokens it adds to one input, or to a pair. */
size_t postprocessor_added(const PostProcessor *postprocessor, bool pair);

/* Does it look at blanks at all? */
bool postprocessor_trims(const PostProcessor *postprocessor);

#endif
