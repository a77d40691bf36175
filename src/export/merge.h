/* What the files of multimodal generation share: merge.c (components and the prompt), features.c (encoding
 * images and audio), places.c (positions) and embed.c (its steps). */
#ifndef EXPORT_MERGE_H
#define EXPORT_MERGE_H

#include "export/generator.h"

/* What a tensor of the encoder's outputs is that goes on to the projector, or to the language model. */
typedef enum FeatureKind {
    FEATURES_LAST,   /* last_hidden_state */
    FEATURES_LAYERS, /* hidden_states of the layers that vision_feature_layer names, side by side */
    FEATURES_MERGED, /* pooler_output: what stands for all images, row by row */
} FeatureKind;

/* Which tokens of the prompt see each other, whatever their order. */
typedef enum BlockRule {
    BLOCKS_NONE,
    BLOCKS_IMAGES, /* those of an image: token_type_ids 1 */
    BLOCKS_PREFIX, /* the prefix: token_type_ids 0 */
} BlockRule;

/* What the seconds between frames of a video are to positions. */
typedef enum TimeRule {
    TIME_NONE,    /* frames are numbered */
    TIME_SECONDS, /* by second_per_grid_ts and tokens_per_second */
    TIME_TEXT,    /* timestamps stand between frames, each of which is an image by itself */
} TimeRule;

enum { IMAGES, VIDEOS, AUDIO, MEDIA };

/* How the model types differ. */
typedef struct MergeRule {
    const char *model_type;
    FeatureKind features;
    int64_t tokens[MEDIA]; /* that stand for features, where the configuration does not say it */
    bool nested; /* images are [batch, images, ...], and those that are all 0 are not there */
    bool grids;  /* tokens have a place in time, height and width */
    TimeRule time;
    BlockRule blocks;
    int64_t first_position;
    bool caps_logits; /* by final_logit_softcapping of the text model, outside of lm_head */
} MergeRule;

/* Features of one medium, row by row for all tokens that stand for it. */
typedef struct Features {
    const ferry_tensor *rows;  /* [count, size]; NULL: none are given */
    const ferry_tensor **deep; /* what the first layers of the language model add */
    size_t deep_count;
    int64_t count;
} Features;

/* The token that a slot of the prompt stands for: a row of the features of a medium. */
typedef struct Source {
    int medium;
    int64_t row;
} Source;

struct Merge {
    Arena arena;
    const MergeRule *rule;
    json_t *config;
    Step *encoder, *projector, *embed, *model, *head;
    Features features[MEDIA];
    int64_t tokens[MEDIA]; /* negative: none */
    Source *sources;       /* [batch, prompt]: medium -1 for text */
    ferry_tensors *made;   /* everything behind the features */
    ferry_tensors *given;  /* what the next step is given */
    double softcap;        /* of logits; 0: none */
};

/* An integer of the configuration, in the object `part` (NULL: in the whole). */
int64_t merge_integer(const Merge *merge, const char *part, const char *key, int64_t otherwise);

/* Element `i` of a tensor of integers or truth values. */
int64_t merge_element(const ferry_tensor *tensor, int64_t i);

/* features.c: encode what is given, into merge->features. */
ferry_status features_encode(Generator *g);

/* places.c: g->feed.places, from the grids of images and videos. */
ferry_status places_compute(Generator *g);

#endif
