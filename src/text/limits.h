/* Truncation and padding, as tokenizer.json sets them. */
#ifndef TEXT_LIMITS_H
#define TEXT_LIMITS_H

#include "text/postprocessor.h"

typedef enum TruncationStrategy {
    TRUNCATE_LONGEST_FIRST,
    TRUNCATE_ONLY_FIRST,
    TRUNCATE_ONLY_SECOND,
} TruncationStrategy;

typedef struct Truncation {
    bool given, left;
    size_t max_length;
    TruncationStrategy strategy;
} Truncation;

typedef struct Padding {
    bool given, left;
    size_t length;   /* 0: that of the longest, which is the only one here */
    size_t multiple; /* 0: any length */
    uint32_t id, type;
} Padding;

void truncation_read(Settings *settings, const Doc *doc, Truncation *out);
void padding_read(Settings *settings, const Doc *doc, Padding *out);

/* Cut the inputs, before post-processing adds `added` tokens. */
ferry_status truncate_inputs(const Truncation *truncation, Post *post, size_t added,
                             const char *path, ferry_error *error);

/* How many tokens are missing from `count`. */
size_t padding_missing(const Padding *padding, size_t count);

#endif
