/* Any JSON as config.json, with tensors of any shape: {"config": {...}, "tensors": {name: shape}}.
 * Refused with a message, or a Program that the verifier accepts. */
#include "base/dtype.h"
#include "base/error.h"
#include "mutate_json.h"
#include "source/checkpoint/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { DATA_SIZE = 1 << 16, MAX_TENSORS = 256 };
static const unsigned char data[DATA_SIZE];

/* One shard whose tensors share the same zeros. */
static void add_tensors(Checkpoint *cp, Shard *shard, json_t *tensors) {
    const char *name;
    json_t *shape;
    json_object_foreach(tensors, name, shape) {
        CheckpointTensor *tensor = &cp->tensors[cp->tensor_count];
        uint64_t bytes;
        if (cp->tensor_count == MAX_TENSORS || json_array_size(shape) > FERRY_MAX_RANK) continue;
        *tensor =
            (CheckpointTensor){.name = name, .storage = "F32", .dtype = FERRY_F32, .shard = shard};
        for (size_t d = 0; d < json_array_size(shape); d++) {
            tensor->shape[tensor->rank++] = json_integer_value(json_array_get(shape, d));
        }
        if (!dtype_bytes(FERRY_F32, tensor->rank, tensor->shape, &bytes) || bytes > DATA_SIZE)
            continue;
        tensor->size = bytes;
        cp->tensor_count++;
        map_put(&cp->by_name, name, tensor);
    }
}

static void build_one(const Checkpoint *cp, const Registry *registry, const ModelRequest *request) {
    Program *program = program_new();
    ferry_error error = {0};
    ferry_status status = model_build(cp, registry, request, NULL, 0, program, &error);
    if (status == FERRY_OK) status = program_verify(program, "the family", &error);
    if (status == FERRY_INTERNAL || (status != FERRY_OK && !error.message[0])) abort();
    program_free(program);
}

/* Every task, the class in the configuration (-1), and every component, with growing and static caches. */
static void build(const Checkpoint *cp, const Registry *registry) {
    const char *const *components;
    for (int task = -1; task < TASK_COUNT; task++) {
        const ModelRequest request = {
            .has_task = task >= 0, .task = task < 0 ? 0 : (Task)task, .default_inputs = true};
        build_one(cp, registry, &request);
    }
    if (model_components(cp, registry, &components, NULL) != FERRY_OK) return;
    for (size_t i = 0; components[i / 2]; i++) {
        const ModelRequest request = {.component = components[i / 2],
                                      .static_cache = i % 2 ? 16 : 0,
                                      .multi_token = i % 2,
                                      .use_cache = true,
                                      .default_inputs = true};
        build_one(cp, registry, &request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    json_t *root = NULL;
    ferry_error error = {0};
    if (json_parse("fuzz", bytes, size, &root, &error) != FERRY_OK) return 0;
    CheckpointTensor tensors[MAX_TENSORS];
    Shard shard = {.name = "model.safetensors", .file = {.bytes = data, .size = DATA_SIZE}};
    Checkpoint cp = {.directory = "fuzz",
                     .config_path = "config.json",
                     .config = json_object_get(root, "config"),
                     .tensors = tensors};
    cp.model_type = json_string_value(json_object_get(cp.config, "model_type"));
    if (cp.model_type) {
        add_tensors(&cp, &shard, json_object_get(root, "tensors"));
        Registry registry = {0};
        families_register(&registry);
        build(&cp, &registry);
        registry_free(&registry);
        map_free(&cp.by_name);
    }
    json_decref(root);
    return 0;
}
