/* Common subexpressions: two nodes with the same operation and the same arguments are one. */
#include "base/error.h"
#include "pass/pass.h"

#include <stdlib.h>
#include <string.h>

static void append_arg(Buffer *key, const Arg *arg) {
    buffer_append(key, &arg->kind, sizeof arg->kind);
    switch (arg->kind) {
    case VALUE_NONE: break;
    case VALUE_TENSOR: buffer_append(key, &arg->tensor->id, sizeof arg->tensor->id); break;
    case VALUE_TENSORS:
        buffer_append(key, &arg->tensors.count, sizeof arg->tensors.count);
        for (uint32_t i = 0; i < arg->tensors.count; i++) {
            const Value *item = arg->tensors.items[i];
            const uint32_t id = item ? item->id : UINT32_MAX;
            buffer_append(key, &id, sizeof id);
        }
        break;
    case VALUE_INT: buffer_append(key, &arg->integer, sizeof arg->integer); break;
    case VALUE_INTS:
        buffer_append(key, &arg->integers.count, sizeof arg->integers.count);
        buffer_append(key, arg->integers.items, arg->integers.count * sizeof *arg->integers.items);
        break;
    case VALUE_FLOAT: buffer_append(key, &arg->number, sizeof arg->number); break;
    case VALUE_BOOL: buffer_append(key, &arg->boolean, sizeof arg->boolean); break;
    case VALUE_STRING: buffer_append(key, arg->string, strlen(arg->string) + 1); break;
    case VALUE_DTYPE: buffer_append(key, &arg->dtype, sizeof arg->dtype); break;
    }
}

typedef struct Merge {
    Value **map; /* by value id: the value to use instead, or NULL */
    uint32_t count;
} Merge;

static void follow(void *context, Value **use) {
    const Merge *merge = context;
    if ((*use)->id < merge->count && merge->map[(*use)->id]) *use = merge->map[(*use)->id];
}

ferry_status pass_merge(Program *program, ferry_error *error) {
    Arena scratch = {0};
    Map seen = {0};
    Buffer key = {0};
    Merge merge = {.count = program->value_count};
    merge.map = ARENA_ARRAY(&scratch, Value *, program->value_count);
    for (Node *node = program->first, *next; node && merge.map; node = next) {
        next = node->next;
        node_each_tensor(node, follow, &merge);
        key.length = 0;
        buffer_append(&key, &node->op, sizeof node->op);
        uint32_t count = op_schema(node->op)->arg_count;
        for (uint32_t i = 0; i < count; i++) append_arg(&key, &node->args[i]);
        Node *twin = map_get(&seen, key.bytes, key.length);
        if (!twin) {
            const void *copy = arena_copy(&scratch, key.bytes, key.length);
            if (copy) map_set(&seen, copy, key.length, node);
            continue;
        }
        for (uint32_t i = 0; i < node->output_count; i++) {
            merge.map[node->outputs[i]->id] = twin->outputs[i];
        }
        program_remove(program, node);
    }
    bool failed = key.failed || seen.failed || scratch.failed;
    if (!failed) program_replace(program, merge.map, merge.count);
    map_free(&seen);
    buffer_free(&key);
    arena_free(&scratch);
    return failed ? error_memory(error, program->architecture, 0) : FERRY_OK;
}
