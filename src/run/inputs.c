/* Finding inputs, with messages for those that are missing or of another type. */
#include "run/inputs.h"
#include "base/buffer.h"
#include "base/error.h"

#include <string.h>

static ferry_status missing(const ferry_tensors *inputs, const char *name, ferry_error *error) {
    Buffer given = {0};
    for (size_t i = 0; i < ferry_tensors_count(inputs) && given.length < 600; i++) {
        buffer_format(&given, "%s%s", i ? ", " : "", ferry_tensors_at(inputs, i)->name);
    }
    ferry_status status = error_set(error, FERRY_INVALID_ARGUMENT, name,
                                    "the model's input \"%s\" was not given; given: %s", name,
                                    given.length ? buffer_string(&given) : "nothing");
    buffer_free(&given);
    return status;
}

ferry_status inputs_find(const ferry_tensors *inputs, const char *name, ferry_dtype dtype,
                         const ferry_tensor **out, ferry_error *error) {
    *out = ferry_tensors_find(inputs, name);
    if (!*out) return missing(inputs, name, error);
    if ((*out)->dtype == dtype) return FERRY_OK;
    return error_set(error, FERRY_INVALID_ARGUMENT, name,
                     "the model's input \"%s\" is %s, the tensor given is %s", name,
                     ferry_dtype_name(dtype), ferry_dtype_name((*out)->dtype));
}

ferry_status inputs_place(const char *const *names, size_t count, const char *name,
                          const char *path, size_t *out, ferry_error *error) {
    for (*out = 0; *out < count; ++*out) {
        if (strcmp(names[*out], name) == 0) return FERRY_OK;
    }
    return error_set(error, FERRY_INVALID_ARGUMENT, path, "the model has no input or output \"%s\"",
                     name);
}
