/* Any bytes as an ONNX model: refused with a message, or a program that holds every invariant, prints,
 * and whose weights can all be read. There is no external data to be found. */
#include "base/error.h"
#include "source/onnx/onnx_read.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const MappedFile model = {.path = "/nonexistent/model.onnx", .bytes = bytes, .size = size};
    MappedFiles files = {0};
    ferry_error error = {0};
    Program *program = program_new();
    if (!program) abort();
    if (onnx_read_model(&model, &files, program, &error) == FERRY_OK) {
        Buffer text = {0};
        if (program_verify(program, "reading", &error) != FERRY_OK) abort();
        program_print(&text, program);
        buffer_free(&text);
        read_weights(program);
    } else if (!error.message[0] || error.status == FERRY_INTERNAL) {
        abort();
    }
    program_free(program);
    files_unmap(&files);
    return 0;
}
