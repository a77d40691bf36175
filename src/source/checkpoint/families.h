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

/* ---- inputs.c, for model.c ---- */

/* Ask for the inputs called `names`, unless the user gives samples of a whole model, and then for those that
 * the user names; where both name one, it has the user's shape. `optional`: those that the model does not
 * take are left out. */
void model_merge_inputs(Model *m, const char *const *names, bool optional);

/* The order of the inputs in the program is the order in which they were asked for. */
void model_order_inputs(Model *m);

/* The registered model type that is most like a misspelt or unknown one. */
const char *families_nearest(const Registry *registry, const char *wanted);

#endif
