/* Reading {"program": {...}, "weights": {...}, "constants": {...}} as a .pt2, all of whose payloads may point
 * at one file of zeros, "weight_0". For the fuzzer and for the unit test. */
#ifndef TESTS_FUZZ_CHECK_PT2_H
#define TESTS_FUZZ_CHECK_PT2_H

#include "base/error.h"
#include "format/json.h"
#include "format/zip_write.h"
#include "source/pt2/pt2.h"
#include "target/dynamo/dynamo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void archive_add(ZipWriter *zip, const char *name, json_t *json) {
    ferry_error error = {0};
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) return;
    if (zip_writer_add(zip, name, text, strlen(text), &error) != FERRY_OK) abort();
    free(text);
}

static void archive_write(json_t *root, int descriptor) {
    static const unsigned char zeros[1 << 14];
    OutputFile file = {.path = "hostile", .descriptor = descriptor};
    ZipWriter *zip = zip_writer_new(&file);
    ferry_error error = {0};
    if (!zip || zip_writer_add(zip, "m/archive_format", "pt2", 3, &error) != FERRY_OK) abort();
    archive_add(zip, "m/models/model.json", json_object_get(root, "program"));
    archive_add(zip, "m/data/weights/model_weights_config.json", json_object_get(root, "weights"));
    archive_add(zip, "m/data/constants/model_constants_config.json",
                json_object_get(root, "constants"));
    if (zip_writer_add(zip, "m/data/weights/weight_0", zeros, sizeof zeros, &error) != FERRY_OK ||
        zip_writer_add(zip, "m/data/constants/weight_0", zeros, sizeof zeros, &error) != FERRY_OK ||
        zip_writer_finish(zip, &error) != FERRY_OK)
        abort();
    zip_writer_free(zip);
}

/* The Program behind a descriptor, or NULL when it is refused. */
static Program *archive_read(int descriptor, const Registry *registry, Pt2 **pt2,
                             ferry_error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    *pt2 = NULL;
    *error = (ferry_error){0};
    Program *program = pt2_open(path, pt2, error) == FERRY_OK ? program_new() : NULL;
    if (!program || pt2_build(*pt2, registry, program, error) == FERRY_OK) return program;
    program_free(program);
    return NULL;
}

/* Whether what is written of the program can be read, unless it is refused. */
static bool archive_check_again(Program *program, const Registry *registry, ferry_error *error) {
    DynamoSizes sizes;
    int descriptor = memfd_create("again.pt2", 0);
    if (descriptor < 0) abort();
    OutputFile file = {.path = "again", .descriptor = descriptor};
    ferry_status status = dynamo_legalize(program, registry, error);
    if (status == FERRY_OK)
        status = dynamo_write(program, &(DynamoOptions){0}, &file, &sizes, error);
    bool sound = status == FERRY_OK || error->message[0];
    if (status == FERRY_OK) {
        Pt2 *pt2;
        Program *again = archive_read(descriptor, registry, &pt2, error);
        sound = again && program_verify(again, "reading again", error) == FERRY_OK;
        program_free(again);
        pt2_close(pt2);
    }
    close(descriptor);
    return sound;
}

/* Read the file: refused with a message that names it, or a Program that the verifier accepts and whose
 * own file can be read. A result that contradicts its declaration may be INTERNAL: the reader cannot know
 * which is wrong. Whether that holds; else what is wrong is printed. */
static bool archive_check(int descriptor, ferry_error *error) {
    Pt2 *pt2;
    Registry registry = {0};
    translations_register(&registry);
    Program *program = archive_read(descriptor, &registry, &pt2, error);
    bool sound = program || error->message[0];
    if (program) {
        sound = program_verify(program, "reading", error) == FERRY_OK &&
                archive_check_again(program, &registry, error);
    }
    if (!sound) fprintf(stderr, "%s: %s\n", error->where, error->message);
    program_free(program);
    registry_free(&registry);
    pt2_close(pt2);
    return sound;
}

#endif
