/* Private to src/run/openvino: the part of OpenVINO's C API that ferry calls, declared here because the
 * runtime is loaded and not linked, and what the files of this folder share.
 *
 * Functions are found by their names, which are OpenVINO's own with "ov_" in front. A function that
 * returns OvStatus returns 0 for success. */
#ifndef RUN_OPENVINO_OV_H
#define RUN_OPENVINO_OV_H

#include "base/arena.h"
#include "run/library.h"
#include "run/openvino.h"

typedef int OvStatus;
typedef int OvElementType;
typedef struct OvCore OvCore;
typedef struct OvModel OvModel;
typedef struct OvCompiled OvCompiled; /* ov_compiled_model_t */
typedef struct OvRequest OvRequest;   /* ov_infer_request_t */
typedef struct OvPort OvPort;         /* ov_output_const_port_t */
typedef struct OvTensor OvTensor;

typedef struct OvVersion {
    const char *build_number, *description;
} OvVersion;

typedef struct OvDevices {
    char **names;
    size_t count;
} OvDevices;

typedef struct OvShape {
    int64_t rank;
    int64_t *dims;
} OvShape;

/* FUNCTION(result, name, parameters) */
#define OV_FUNCTIONS(FUNCTION)                                                                     \
    FUNCTION(const char *, get_last_err_msg, (void)) /* to be freed */                             \
    FUNCTION(OvStatus, get_openvino_version, (OvVersion * version))                                \
    FUNCTION(void, version_free, (OvVersion * version))                                            \
    FUNCTION(void, free, (const char *text))                                                       \
    FUNCTION(OvStatus, core_create, (OvCore * *core))                                              \
    FUNCTION(void, core_free, (OvCore * core))                                                     \
    FUNCTION(OvStatus, core_get_available_devices, (const OvCore *core, OvDevices *devices))       \
    FUNCTION(void, available_devices_free, (OvDevices * devices))                                  \
    FUNCTION(OvStatus, core_read_model,                                                            \
             (const OvCore *core, const char *path, const char *weights, OvModel **model))         \
    FUNCTION(void, model_free, (OvModel * model))                                                  \
    FUNCTION(OvStatus, core_compile_model,                                                         \
             (const OvCore *core, const OvModel *model, const char *device, size_t words,          \
              OvCompiled **compiled, ...))                                                         \
    FUNCTION(void, compiled_model_free, (OvCompiled * compiled))                                   \
    FUNCTION(OvStatus, compiled_model_inputs_size, (const OvCompiled *compiled, size_t *count))    \
    FUNCTION(OvStatus, compiled_model_outputs_size, (const OvCompiled *compiled, size_t *count))   \
    FUNCTION(OvStatus, compiled_model_input_by_index,                                              \
             (const OvCompiled *compiled, size_t index, OvPort **port))                            \
    FUNCTION(OvStatus, port_get_element_type, (const OvPort *port, OvElementType *type))           \
    FUNCTION(void, output_const_port_free, (OvPort * port))                                        \
    FUNCTION(OvStatus, compiled_model_create_infer_request,                                        \
             (const OvCompiled *compiled, OvRequest **request))                                    \
    FUNCTION(void, infer_request_free, (OvRequest * request))                                      \
    FUNCTION(OvStatus, infer_request_set_input_tensor_by_index,                                    \
             (OvRequest * request, size_t index, const OvTensor *tensor))                          \
    FUNCTION(OvStatus, infer_request_get_output_tensor_by_index,                                   \
             (const OvRequest *request, size_t index, OvTensor **tensor))                          \
    FUNCTION(OvStatus, infer_request_infer, (OvRequest * request))                                 \
    FUNCTION(OvStatus, tensor_create_from_host_ptr,                                                \
             (OvElementType type, OvShape shape, void *data, OvTensor **tensor))                   \
    FUNCTION(OvStatus, tensor_get_shape, (const OvTensor *tensor, OvShape *shape))                 \
    FUNCTION(OvStatus, tensor_get_size, (const OvTensor *tensor, size_t *count))                   \
    FUNCTION(OvStatus, tensor_get_element_type, (const OvTensor *tensor, OvElementType *type))     \
    FUNCTION(OvStatus, tensor_data, (const OvTensor *tensor, void **data))                         \
    FUNCTION(void, tensor_free, (OvTensor * tensor))                                               \
    FUNCTION(OvStatus, shape_free, (OvShape * shape))

typedef struct OvApi {
#define FUNCTION(result, name, parameters) result(*name) parameters;
    OV_FUNCTIONS(FUNCTION)
#undef FUNCTION
} OvApi;

struct OpenVino {
    Arena arena;
    OvApi api;
    const char *version, *path, *devices;
    OvCore *core;
};

struct OpenVinoSession {
    Arena arena;
    OpenVino *runtime;
    const char *path;
    OvCompiled *compiled;
    OvRequest *request; /* holds the state */
    size_t input_count, output_count;
    const char **inputs, **outputs;
    ferry_dtype *input_dtypes;
};

/* FERRY_OK for 0. Otherwise RUNTIME_FAILED with "<what>: <the runtime's message>". */
ferry_status ov_check(const OpenVino *runtime, OvStatus status, const char *where, const char *what,
                      ferry_error *error);

/* OpenVINO's number for an element type, and back; 0 and FERRY_DTYPE_NONE where the other side has no
 * such type. */
OvElementType ov_element_type(ferry_dtype dtype);
ferry_dtype ov_dtype(OvElementType type);

/* True for a version string from "2026.0" on, which is when the numbers of the element types settled. */
bool ov_version_accepted(const char *version);

#endif
