/* Multimodal models, whose parts are exported one by one: encoders of images and audio, what takes their
 * outputs to the language model, and that model, which is a decoder as others are. */
#ifndef SOURCE_MULTIMODAL_H
#define SOURCE_MULTIMODAL_H

#include "source/checkpoint/clip.h"

typedef struct Component {
    const char *name; /* of the generation split: "image_encoder" */
    void (*build)(Model *m);
} Component;

/* What there is to say about a family. */
typedef struct Multimodal {
    Component encoders[3]; /* the components before the language model; ends with a null name */
    const char *text;      /* the language model's type, where its configuration does not say it */
    const char *output;    /* the class of what has logits and a cache */
    bool both_ways;        /* tokens of images see later ones: masks come whole */
    bool caps_logits;      /* by final_logit_softcapping of the language model */
    bool deepstack;        /* features of an image go to the first layers too */
} Multimodal;

/* The component that is asked for, from the family's traits. */
void multimodal_build(Model *m);

/* language_model.c: the components of the language model; false when `name` is none of them. */
bool language_model_build(Model *m, const Multimodal *family, const char *name);

/* An input of features [images, length, size] called `name`; `length` is a number or a symbol. */
Value *multimodal_features(Model *m, const char *name, const Sym *length, int64_t size);

/* The only output of a component that returns a tensor. */
void multimodal_output(Model *m, const char *class_name, Value *value);

/* The components. */
void llava_image_encoder(Model *m);
void llava_projector(Model *m);
void siglip_image_encoder(Model *m);
void gemma3_projector(Model *m);
void paligemma_projector(Model *m);
void idefics3_image_encoder(Model *m);
void idefics3_connector(Model *m);
void qwen2_image_encoder(Model *m);
void qwen2_5_image_encoder(Model *m);
void qwen3_image_encoder(Model *m);
void qwen2_audio_encoder(Model *m);
void qwen2_audio_projector(Model *m);

#endif
