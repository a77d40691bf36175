/* Calls of torch operators, for plug-ins. */
#include "plugin/plugin.h"
#include "source/pt2/reader.h"

ferry_builder *ferry_call_builder(ferry_call *call) {
    return call->b;
}

bool ferry_call_has(ferry_call *call, const char *name) {
    return take_has(call, name);
}

ferry_value *ferry_call_tensor(ferry_call *call, const char *name) {
    return take_tensor(call, name);
}

const ferry_size *ferry_call_size(ferry_call *call, const char *name, int64_t otherwise) {
    return take_sym(call, name, otherwise);
}

int64_t ferry_call_int(ferry_call *call, const char *name, int64_t otherwise) {
    return take_int(call, name, otherwise);
}

double ferry_call_float(ferry_call *call, const char *name, double otherwise) {
    return take_float(call, name, otherwise);
}

bool ferry_call_bool(ferry_call *call, const char *name, bool otherwise) {
    return take_bool(call, name, otherwise);
}

const char *ferry_call_string(ferry_call *call, const char *name, const char *otherwise) {
    return take_string(call, name, otherwise);
}

void ferry_call_result(ferry_call *call, size_t index, ferry_value *value) {
    result_set(call, (uint32_t)index, value);
}
