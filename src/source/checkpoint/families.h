/* The families, each in a file of its own, as lists that end with a null model type. */
#ifndef SOURCE_FAMILIES_H
#define SOURCE_FAMILIES_H

#include "source/checkpoint/model.h"

extern const Family decoder_families[];    /* decoder.c: rotary positions */
extern const Family gpt_families[];        /* gpt.c: gpt2, gpt_neox, bloom, falcon, opt, ... */
extern const Family mamba_families[];      /* mamba.c: mamba, falcon_mamba, mamba2 */
extern const Family jamba_families[];      /* jamba.c: attention, mamba and experts */
extern const Family vit_families[];        /* vit.c: vit, dinov2 */
extern const Family clip_families[];       /* clip.c: clip, siglip */
extern const Family multimodal_families[]; /* multimodal.c */
extern const Family encoder_families[];    /* bert.c: bert and its relatives, modernbert */

extern const Family t5_families[];      /* t5.c: t5, mt5, umt5 */
extern const Family bart_families[];    /* bart.c: bart, mbart, marian, pegasus, m2m_100 */
extern const Family whisper_families[]; /* whisper.c */

/* The registered model type that is most like a misspelt or unknown one. */
const char *families_nearest(const Registry *registry, const char *wanted);

#endif
