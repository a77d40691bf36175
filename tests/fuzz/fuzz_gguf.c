/* Any bytes as a GGUF file: refused with a message, or a checkpoint whose tensors lie in the file, with a
 * program that the verifier accepts and weights that can be read. */
#include "base/error.h"
#include "source/checkpoint/families.h"
#include "source/checkpoint/open.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void expect(bool holds) {
    if (!holds) abort();
}

static void check_tensors(const Checkpoint *cp, size_t size) {
    for (size_t i = 0; i < cp->gguf->tensor_count; i++) {
        const GgufTensor *tensor = &cp->gguf->tensors[i];
        expect(tensor->offset <= size && tensor->size <= size - tensor->offset);
        expect(gguf_tensor(cp->gguf, tensor->name) == tensor);
    }
}

/* The ends of a weight, in the order of the program and transposed. */
static void read_ends(Program *program, const Recipe *recipe) {
    const int64_t turned[] = {1, 0};
    float ends[64];
    for (int i = 0; recipe && i < 2; i++) {
        uint64_t count = recipe_count(recipe), length = count < 64 ? count : 64;
        if (recipe->dtype != FERRY_F32) return;
        recipe_read(recipe, 0, length, ends);
        recipe_read(recipe, count - length, length, ends);
        recipe_forget(recipe, 0, 0);
        recipe = recipe->rank == 2 ? recipe_permute(&program->arena, recipe, turned) : NULL;
    }
}

static void build(const Checkpoint *cp) {
    Registry registry = {0};
    ModelRequest request = {.dtype = FERRY_F32, .use_cache = true};
    Program *program = program_new();
    ferry_error error = {0};
    families_register(&registry);
    ferry_status status = model_build(cp, &registry, &request, NULL, 0, program, &error);
    if (status == FERRY_OK) status = program_verify(program, "the family", &error);
    expect(status != FERRY_INTERNAL && (status == FERRY_OK || error.message[0]));
    for (size_t i = 0; status == FERRY_OK && i < program->weights.count; i++)
        read_ends(program, program->weights.items[i]->recipe);
    program_free(program);
    registry_free(&registry);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    Shard shard = {.name = "fuzz", .file = {.path = "fuzz", .bytes = bytes, .size = size}};
    Checkpoint *cp = calloc(1, sizeof *cp);
    cp->directory = "fuzz";
    cp->shards = &shard;
    ferry_status status = gguf_checkpoint_read(cp, &error);
    expect(status == FERRY_OK || error.message[0]);
    if (cp->gguf) check_tensors(cp, size);
    if (status == FERRY_OK) build(cp);
    checkpoint_close(cp); /* which has no shards of its own */
    return 0;
}
