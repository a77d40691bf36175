/* One run: the caller's tensors are lent to the runtime. So are the outputs whose shapes are fixed; what
 * else it computes is copied out once. */
#include "base/error.h"
#include "run/inputs.h"
#include "run/openvino/ov.h"

#include <string.h>

/* ---- lending ---- */

typedef OvStatus (*SetTensor)(OvRequest *, size_t, const OvTensor *);

/* Let input or output `index` of the request be the memory of `tensor`. */
static ferry_status lend(OpenVinoSession *session, SetTensor set_tensor, size_t index,
                         const ferry_tensor *tensor, ferry_error *error) {
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
    ferry_status status = ov_check(runtime, set_tensor(session->request, index, lent), tensor->name,
                                   "OpenVINO refused the tensor", error);
    runtime->api.tensor_free(lent);
    return status;
}

static ferry_status lend_inputs(OpenVinoSession *session, const ferry_tensors *inputs,
                                ferry_error *error) {
    for (size_t i = 0; i < session->input_count; i++) {
        const OvSlot *slot = &session->inputs[i];
        const ferry_tensor *tensor;
        TRY(inputs_find(inputs, slot->name, slot->dtype, &tensor, error));
        TRY(lend(session, session->runtime->api.infer_request_set_input_tensor_by_index, i, tensor,
                 error));
    }
    return FERRY_OK;
}

/* Outputs in their order: those of fixed shape are lent, the others are added after the run. */
static ferry_status lend_output(OpenVinoSession *session, size_t index, ferry_tensors *outputs,
                                ferry_error *error) {
    const OvSlot *slot = &session->outputs[index];
    ferry_tensor *tensor;
    TRY(ferry_tensors_add(outputs, slot->name, slot->dtype, slot->rank, slot->shape, &tensor,
                          error));
    return lend(session, session->runtime->api.infer_request_set_output_tensor_by_index, index,
                tensor, error);
}

/* ---- copying ---- */

static ferry_status copy_tensor(const OpenVino *runtime, const OvTensor *found, const char *name,
                                ferry_tensors *outputs, ferry_error *error) {
    const char *what = "cannot read the output";
    OvElementType type = 0;
    OvShape shape = {0};
    void *data = NULL;
    ferry_tensor *tensor = NULL;
    TRY(ov_check(runtime, runtime->api.tensor_get_element_type(found, &type), name, what, error));
    TRY(ov_check(runtime, runtime->api.tensor_get_shape(found, &shape), name, what, error));
    ferry_dtype dtype = ov_dtype(type);
    ferry_status status =
        dtype && shape.rank >= 0 && shape.rank <= FERRY_MAX_RANK
            ? ferry_tensors_add(outputs, name, dtype, (size_t)shape.rank, shape.dims, &tensor,
                                error)
            : error_set(error, FERRY_UNSUPPORTED, name,
                        "the output has rank %lld and OpenVINO's element type %d; ferry's tensors "
                        "have at most rank %d",
                        (long long)shape.rank, type, FERRY_MAX_RANK);
    runtime->api.shape_free(&shape);
    size_t bytes = tensor ? ferry_tensor_bytes(tensor) : 0;
    if (status != FERRY_OK || bytes == 0) return status;
    TRY(ov_check(runtime, runtime->api.tensor_data(found, &data), name, what, error));
    memcpy(tensor->data, data, bytes);
    return FERRY_OK;
}

static ferry_status copy_output(OpenVinoSession *session, size_t index, ferry_tensors *outputs,
                                ferry_error *error) {
    const OpenVino *runtime = session->runtime;
    const char *name = session->outputs[index].name;
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
    for (size_t i = 0; i < session->output_count; i++) {
        if (session->outputs[i].is_fixed) TRY(lend_output(session, i, outputs, error));
    }
    TRY(ov_check(session->runtime, session->runtime->api.infer_request_infer(session->request),
                 session->path, "OpenVINO could not run the model", error));
    for (size_t i = 0; i < session->output_count; i++) {
        if (!session->outputs[i].is_fixed) TRY(copy_output(session, i, outputs, error));
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
