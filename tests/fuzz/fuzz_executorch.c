/* Any bytes as an ExecuTorch program: refused with a message, or one that the runtime would load; and read
 * back, a program that holds every invariant, prints, and whose weights can all be read. */
#include "base/error.h"
#include "source/executorch/executorch_read.h"
#include "target/executorch/executorch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_weights(const Program *program) {
    for (size_t i = 0; i < program->weights.count; i++) {
        const Recipe *recipe = program->weights.items[i]->recipe;
        void *content = malloc(recipe_bytes_size(recipe) + 1);
        if (!content) abort();
        recipe_read(recipe, 0, recipe_count(recipe), content);
        free(content);
    }
}

static void read_back(const uint8_t *bytes, size_t size) {
    const MappedFile file = {.path = "/nonexistent/model.pte", .bytes = bytes, .size = size};
    const PtePorts ports = {0};
    ferry_error error = {0};
    Program *program = program_new();
    if (!program) abort();
    if (executorch_read_file(&file, &ports, program, &error) == FERRY_OK) {
        Buffer text = {0};
        if (program_verify(program, "reading", &error) != FERRY_OK) abort();
        program_print(&text, program);
        buffer_free(&text);
        read_weights(program);
    } else if (!error.message[0] || error.status == FERRY_INTERNAL) {
        abort();
    }
    program_free(program);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    ferry_status status = executorch_verify("fuzz", bytes, size, size, &error);
    if (status != FERRY_OK && !error.message[0]) abort();
    read_back(bytes, size);
    return 0;
}
