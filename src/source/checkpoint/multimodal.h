/* Multimodal models, whose parts are exported one by one: encoders of images and audio, and what takes
 * their outputs to the language model. A family is a list of components. */
#ifndef SOURCE_MULTIMODAL_H
#define SOURCE_MULTIMODAL_H

#include "source/checkpoint/clip.h"

typedef struct Component {
    const char *name; /* of the generation split: "image_encoder" */
    void (*build)(Model *m);
} Component;

/* The component that is asked for, from the family's traits: a list that ends with a null name. */
void multimodal_build(Model *m);

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
