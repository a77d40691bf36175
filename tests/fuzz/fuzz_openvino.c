/* Any bytes as an OpenVINO model, the XML before the first zero byte and the weights behind it: refused
 * with a message, or a program that holds every invariant, prints, and whose weights can all be read. */
#include "base/error.h"
#include "source/openvino/openvino_read.h"

#include <stdlib.h>
#include <string.h>

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
    const uint8_t *zero = size ? memchr(bytes, 0, size) : NULL;
    size_t length = zero ? (size_t)(zero - bytes) : size;
    const MappedFile model = {.path = "/nonexistent/model.xml", .bytes = bytes, .size = length};
    const MappedFile weights = {.path = "/nonexistent/model.bin",
                                .bytes = zero ? zero + 1 : NULL,
                                .size = zero ? size - length - 1 : 0};
    const OpenvinoInputs inputs = {0};
    ferry_error error = {0};
    Program *program = program_new();
    if (!program) abort();
    if (openvino_read_model(&model, zero ? &weights : NULL, &inputs, program, &error) == FERRY_OK) {
        Buffer text = {0};
        if (program_verify(program, "reading", &error) != FERRY_OK) abort();
        program_print(&text, program);
        buffer_free(&text);
        read_weights(program);
    } else if (!error.message[0] || error.status == FERRY_INTERNAL) {
        abort();
    }
    program_free(program);
    return 0;
}
