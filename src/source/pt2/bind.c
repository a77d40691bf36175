/* Names, values and storages. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <string.h>

Value *reader_fail(Reader *r, ferry_status status, const char *format, ...) {
    if (!build_ok(&r->b)) return &r->b.poison;
    const char *name = doc_text(doc_get(r->node, "name"));
    const char *target = doc_text(doc_get(r->node, "target"));
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
    const Doc *json = doc_get(doc_get(r->graph, "tensor_values"), name);
    if (schema_tensor(&r->b.program->symbols, json, name, &meta, &problem) != FERRY_OK) {
        reader_fail(r, problem.status, "tensor \"%s\": %s", name, problem.message);
    }
    return meta;
}

bool reader_is_complex(Reader *r, const char *name) {
    const Doc *types = doc_get(r->graph, "tensor_values");
    return name && schema_is_complex(doc_get(types, name));
}

/* Views of views are followed to their base: a file could make that endless. */
enum { MAX_VIEW_DEPTH = 256, MAX_REMADE = 1 << 20 };

void reader_alias(Reader *r, Binding *view, Binding *base) {
    view->storage = base->storage;
    view->version = base->storage->version;
    view->base = base;
    view->depth = base->depth + 1;
    if (view->depth > MAX_VIEW_DEPTH) {
        reader_fail(r, FERRY_UNSUPPORTED, "a view of a view more than %d times over",
                    MAX_VIEW_DEPTH);
    }
}

static void count_step(Reader *r) {
    if (r->remade++ > MAX_REMADE)
        reader_fail(r, FERRY_UNSUPPORTED, "more than %d writes through views", MAX_REMADE);
}

/* A view of what its base is now. */
static Value *remake(Reader *r, const Binding *view) {
    Call call = {.r = r, .b = &r->b, .node = view->node, .how = view->how};
    count_step(r);
    view->how->translate(&call);
    return view->output < call.result_count ? call.results[view->output] : view->value;
}

/* The base of a view after `value` was written through it. */
static Value *write_back(Reader *r, const Binding *view, Value *value) {
    Call call = {.r = r, .b = &r->b, .node = view->node, .how = view->how};
    count_step(r);
    if (view->how->write_back)
        return view->how->write_back(&call, view->base->value, value, view->output);
    return reader_fail(r, FERRY_UNSUPPORTED, "writing through %s is not supported",
                       view->how->target);
}

/* Bring a binding up to the version of its storage. */
static void refresh(Reader *r, Binding *binding) {
    if (binding->version == binding->storage->version || !build_ok(&r->b)) return;
    if (!binding->base) return;
    refresh(r, binding->base);
    binding->value = remake(r, binding);
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
        value = write_back(r, binding, value);
        r->fills = false;
        binding = binding->base;
    }
    binding->storage->version = version;
}
