/* Names, values and storages. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <string.h>

Value *reader_fail(Reader *r, ferry_status status, const char *format, ...) {
    if (!build_ok(&r->b)) return &r->b.poison;
    const char *name = json_string_value(json_object_get(r->node, "name"));
    const char *target = json_string_value(json_object_get(r->node, "target"));
    va_list args;
    va_start(args, format);
    const char *text = arena_vformat(&r->pt2->arena, format, args);
    va_end(args);
    if (!target) return build_fail(&r->b, status, "%s: %s", r->pt2->path, text);
    return build_fail(&r->b, status, "%s: node \"%s\" (%s): %s", r->pt2->path, name ? name : "",
                      target, text);
}

Binding *reader_bind(Reader *r, const char *name, Value *value) {
    Binding *binding = ARENA_NEW(&r->pt2->arena, Binding);
    Storage *storage = ARENA_NEW(&r->pt2->arena, Storage);
    if (!binding || !storage) {
        build_fail(&r->b, FERRY_OUT_OF_MEMORY, "out of memory");
        return NULL;
    }
    if (map_find(&r->bindings, name)) {
        reader_fail(r, FERRY_BAD_FORMAT, "the name \"%s\" is given twice", name);
        return NULL;
    }
    *binding = (Binding){.name = name, .value = value, .storage = storage};
    map_put(&r->bindings, name, binding);
    return binding;
}

TensorMeta reader_meta(Reader *r, const char *name) {
    TensorMeta meta = {.dtype = FERRY_DTYPE_NONE};
    ferry_error problem;
    json_t *json = json_object_get(json_object_get(r->graph, "tensor_values"), name);
    if (schema_tensor(&r->b.program->symbols, json, name, &meta, &problem) != FERRY_OK) {
        reader_fail(r, problem.status, "tensor \"%s\": %s", name, problem.message);
    }
    return meta;
}

bool reader_is_complex(Reader *r, const char *name) {
    json_t *types = json_object_get(r->graph, "tensor_values");
    return name && schema_is_complex(json_object_get(types, name));
}

/* The call of the node that made a view, for making it again or writing through it. */
static Call view_call(Reader *r, const Binding *binding) {
    const char *target = json_string_value(json_object_get(binding->node, "target"));
    Call call = {.r = r, .b = &r->b, .node = binding->node};
    if (target && strncmp(target, "torch.ops.", 10) == 0) target += 10;
    call.how = target ? translate_row(r, binding->node, target) : NULL;
    return call;
}

/* Bring a binding up to the version of its storage. */
static void refresh(Reader *r, Binding *binding) {
    if (binding->version == binding->storage->version || !build_ok(&r->b)) return;
    if (!binding->base) return;
    refresh(r, binding->base);
    if (!binding->node) {
        binding->value = binding->base->value;
    } else {
        Call call = view_call(r, binding);
        call.how->translate(&call);
        if (binding->output < call.result_count) binding->value = call.results[binding->output];
    }
    binding->version = binding->storage->version;
}

Value *reader_read(Reader *r, const char *name) {
    if (!build_ok(&r->b)) return &r->b.poison;
    Binding *binding = map_find(&r->bindings, name);
    if (!binding) return reader_fail(r, FERRY_BAD_FORMAT, "the tensor \"%s\" is not defined", name);
    refresh(r, binding);
    return binding->value;
}

void reader_write(Reader *r, const char *name, Value *value) {
    if (!build_ok(&r->b)) return;
    Binding *binding = map_find(&r->bindings, name);
    if (!binding) {
        reader_fail(r, FERRY_BAD_FORMAT, "the tensor \"%s\" is not defined", name);
        return;
    }
    refresh(r, binding);
    if (binding->value == value) return;
    uint32_t version = binding->storage->version + 1;
    /* Up the chain: each base is computed from its value before the write. */
    while (build_ok(&r->b)) {
        binding->value = value;
        binding->version = version;
        if (!binding->base) break;
        Binding *base = binding->base;
        refresh(r, base);
        if (binding->node) {
            Call call = view_call(r, binding);
            if (!call.how->write_back) {
                reader_fail(r, FERRY_UNSUPPORTED, "writing through %s is not supported",
                            call.how->target);
                return;
            }
            value = call.how->write_back(&call, base->value, value, binding->output);
        }
        binding = base;
    }
    binding->storage->version = version;
}
