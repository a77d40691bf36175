/* Transformers over the patches of an image (ViT, DINOv2, the towers of CLIP and SigLIP): patches from a
 * convolution, perhaps a class token, a table of positions, pre-norm layers. */
#ifndef SOURCE_VISION_H
#define SOURCE_VISION_H

#include "source/checkpoint/prenorm.h"

/* Which images a program takes, unless the user says it. */
typedef enum VisionSize {
    SIZE_FIXED, /* those of the configured size */
    SIZE_ANY,
    SIZE_PATCHES, /* those of any number of whole patches */
} VisionSize;

typedef struct VisionTraits {
    const char *patch; /* the convolution */
    bool patch_bias;
    const char *class_token; /* the weight, [hidden] or [1, 1, hidden]; NULL: none */
    const char *positions;   /* the weight, [positions, hidden] or [1, positions, hidden] */
    bool listed;             /* class token and positions have the leading dimensions of 1 */
    const char *pre_norm;    /* before the layers; NULL: none */
    const char *post_norm;   /* after them */
    const PreNormNames *layer;
    PreNormDefaults defaults;
    int64_t image_size, patch_size;
    VisionSize size;
    bool float32; /* positions are interpolated in float32 */
} VisionTraits;

typedef struct Vision {
    Model *m;
    const VisionTraits *traits;
    PreNorm encoder;
    int64_t channels, image[2], patch[2]; /* height, width */
    Value **states;                       /* what comes into layer i; [layers]: out of the last */
} Vision;

/* The configuration of the present part. */
Vision vision_config(Model *m, const VisionTraits *traits, const char *scope);

/* The input pixel_values [batch, channels, height, width]; `batch` names its first dimension. */
Value *vision_pixels(Vision *vision, const char *batch);

/* The patches [batch, rows, columns, hidden] of an image. */
Value *vision_patches(Vision *vision, Value *pixels);

/* What goes into the layers, [batch, (1 +) patches, hidden]. */
Value *vision_embed(Vision *vision, Value *pixels);

/* What comes out of them, before the last norm. */
Value *vision_layers(Vision *vision, Value *x);

/* The last norm. */
Value *vision_norm(Vision *vision, Value *x);

/* The key as [height, width]: a number stands for both. */
void config_pair(Model *m, const char *key, int64_t otherwise, int64_t out[2]);

#endif
