/* Generation: a model in the stages that runtimes run, and running them. */
#ifndef FERRY_GENERATION_H
#define FERRY_GENERATION_H

#include <ferry/exported.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the split ---- */

/* The components that a model is exported as, before it is. */
typedef struct ferry_parts ferry_parts;

/* Split a model: a decoder into "prefill", which takes a prompt, and "decode", which goes on from a cache.
 * Every part starts with a copy of `config`, which must outlive the parts with all that it points to.
 * UNSUPPORTED for a model that does not generate. */
FERRY_API ferry_status ferry_decompose(ferry_model *model, const ferry_export_config *config,
                                       ferry_parts **out, ferry_error *error);
FERRY_API void ferry_parts_free(ferry_parts *parts);

/* What the parts are called, in the order of the export. NULL past the end. */
FERRY_API const char *ferry_parts_name(const ferry_parts *parts, size_t index);

/* How the part is exported: to be looked at, changed (but for its component), and exported by itself with
 * ferry_export. NULL past the end. */
FERRY_API ferry_export_config *ferry_parts_config(ferry_parts *parts, size_t index);

/* Leave a part out of the export. NOT_FOUND when there is none called `name`. */
FERRY_API ferry_status ferry_parts_skip(ferry_parts *parts, const char *name, ferry_error *error);

/* Export all parts that are left, as one export with a component each. An error names the component. */
FERRY_API ferry_status ferry_parts_export(const ferry_parts *parts, ferry_exported **out,
                                          ferry_error *error);

#ifdef __cplusplus
}
#endif
#endif
