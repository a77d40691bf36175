/* One run: the caller's tensors are lent to the runtime, what it computes is copied out once. (Outputs
 * could be lent, too, where their shapes are fixed. But OpenVINO finds an output by its tensor, and takes
 * an input or another output for it that has the same one.) */
#include "base/error.h"
#include "run/inputs.h"
#include "run/openvino/ov.h"

#include <string.h>

/* ---- lending ---- */

/* Let input `index` of the request be the memory of `tensor`. */
static ferry_status lend(OpenVinoSession *session, size_t index, const ferry_tensor *tensor,
                         ferry_error *error) {
    static char nothing; /* a tensor without elements may have no data */
    const OpenVino *runtime = session->runtime;
    int64_t dims[FERRY_MAX_RANK];
    OvTensor *lent = NULL;
    memcpy(dims, tensor->shape, sizeof dims);
    OvShape shape = {(int64_t)tensor->rank, dims};
    TRY(ov_check(runtime,
                 runtime->api.tensor_create_from_host_ptr(ov_element_type(tensor->dtype), shape,
                                                          tensor->data ? tensor->data : &nothing,
                                                          &lent),
                 tensor->name, "OpenVINO refused the tensor", error));
    ferry_status status = ov_check(
        runtime,
        runtime->api.infer_request_set_input_tensor_by_index(session->request, index, lent),
        tensor->name, "OpenVINO refused the tensor", error);
    runtime->api.tensor_free(lent);
    return status;
}

static ferry_status lend_inputs(OpenVinoSession *session, const ferry_tensors *inputs,
                                ferry_error *error) {
    for (size_t i = 0; i < session->input_count; i++) {
        const ferry_tensor *tensor;
        TRY(inputs_find(inputs, session->inputs[i], session->input_dtypes[i], &tensor, error));
        TRY(lend(session, i, tensor, error));
    }
    return FERRY_OK;
}

/* ---- copying ---- */

/* The C API has no shapes of rank 0: asked for that of a scalar, it fails. */
static ferry_status read_shape(const OpenVino *runtime, const OvTensor *found, const char *name,
                               OvShape *shape, ferry_error *error) {
    size_t count = 0;
    OvStatus failed = runtime->api.tensor_get_shape(found, shape);
    bool is_scalar = failed && runtime->api.tensor_get_size(found, &count) == 0 && count == 1;
    if (is_scalar) *shape = (OvShape){0};
    return is_scalar ? FERRY_OK : ov_check(runtime, failed, name, "cannot read the output", error);
}

static ferry_status add_output(const OvShape *shape, OvElementType type, const char *name,
                               ferry_tensors *outputs, ferry_tensor **out, ferry_error *error) {
    static const int64_t none[1];
    ferry_dtype dtype = ov_dtype(type);
    if (!dtype || shape->rank < 0 || shape->rank > FERRY_MAX_RANK) {
        return error_set(error, FERRY_UNSUPPORTED, name,
                         "the output has rank %lld and OpenVINO's element type %d; ferry's tensors "
                         "have at most rank %d",
                         (long long)shape->rank, type, FERRY_MAX_RANK);
    }
    return ferry_tensors_add(outputs, name, dtype, (size_t)shape->rank,
                             shape->dims ? shape->dims : none, out, error);
}

static ferry_status copy_tensor(const OpenVino *runtime, const OvTensor *found, const char *name,
                                ferry_tensors *outputs, ferry_error *error) {
    OvElementType type = 0;
    OvShape shape = {0};
    void *data = NULL;
    ferry_tensor *tensor = NULL;
    TRY(ov_check(runtime, runtime->api.tensor_get_element_type(found, &type), name,
                 "cannot read the output", error));
    TRY(read_shape(runtime, found, name, &shape, error));
    ferry_status status = add_output(&shape, type, name, outputs, &tensor, error);
    if (shape.dims) runtime->api.shape_free(&shape);
    if (status != FERRY_OK || ferry_tensor_bytes(tensor) == 0) return status;
    TRY(ov_check(runtime, runtime->api.tensor_data(found, &data), name, "cannot read the output",
                 error));
    memcpy(tensor->data, data, ferry_tensor_bytes(tensor));
    return FERRY_OK;
}

static ferry_status copy_output(OpenVinoSession *session, size_t index, ferry_tensors *outputs,
                                ferry_error *error) {
    const OpenVino *runtime = session->runtime;
    const char *name = session->outputs[index];
    OvTensor *found = NULL;
    TRY(ov_check(
        runtime,
        runtime->api.infer_request_get_output_tensor_by_index(session->request, index, &found),
        name, "cannot read the output", error));
    ferry_status status = copy_tensor(runtime, found, name, outputs, error);
    runtime->api.tensor_free(found);
    return status;
}

/* ---- the run ---- */

static ferry_status run(OpenVinoSession *session, const ferry_tensors *inputs,
                        ferry_tensors *outputs, ferry_error *error) {
    TRY(lend_inputs(session, inputs, error));
    TRY(ov_check(session->runtime, session->runtime->api.infer_request_infer(session->request),
                 session->path, "OpenVINO could not run the model", error));
    for (size_t i = 0; i < session->output_count; i++) {
        TRY(copy_output(session, i, outputs, error));
    }
    return FERRY_OK;
}

ferry_status openvino_run(OpenVinoSession *session, const ferry_tensors *inputs,
                          ferry_tensors **outputs, ferry_error *error) {
    *outputs = NULL;
    ferry_tensors *made = ferry_tensors_new();
    if (!made) return error_memory(error, session->path, 0);
    ferry_status status = run(session, inputs, made, error);
    if (status == FERRY_OK)
        *outputs = made;
    else
        ferry_tensors_free(made);
    return status;
}
