/* Any JSON as the program of a .pt2: {"program": {...}, "weights": {...}, "constants": {...}}, all of whose
 * payloads may point at one file of zeros, "weight_0". Refused with a message (a
 * result that contradicts its declaration may be INTERNAL: the reader cannot know which is wrong), or a
 * Program that the verifier accepts; what is written of it is read again. Text that is not JSON is taken as
 * the archive itself. */
#define _GNU_SOURCE
#include "base/error.h"
#include "format/zip_write.h"
#include "mutate_json.h"
#include "source/pt2/pt2.h"
#include "target/dynamo/dynamo.h"

#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void add(ZipWriter *zip, const char *name, json_t *json) {
    ferry_error error = {0};
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    if (!text) return;
    if (zip_writer_add(zip, name, text, strlen(text), &error) != FERRY_OK) abort();
    free(text);
}

static void write_archive(json_t *root, int descriptor) {
    static const unsigned char zeros[1 << 14];
    OutputFile file = {.path = "fuzz", .descriptor = descriptor};
    ZipWriter *zip = zip_writer_new(&file);
    ferry_error error = {0};
    if (!zip || zip_writer_add(zip, "m/archive_format", "pt2", 3, &error) != FERRY_OK) abort();
    add(zip, "m/models/model.json", json_object_get(root, "program"));
    add(zip, "m/data/weights/model_weights_config.json", json_object_get(root, "weights"));
    add(zip, "m/data/constants/model_constants_config.json", json_object_get(root, "constants"));
    if (zip_writer_add(zip, "m/data/weights/weight_0", zeros, sizeof zeros, &error) != FERRY_OK ||
        zip_writer_add(zip, "m/data/constants/weight_0", zeros, sizeof zeros, &error) != FERRY_OK ||
        zip_writer_finish(zip, &error) != FERRY_OK)
        abort();
    zip_writer_free(zip);
}

static void fail(const char *step, const ferry_error *error) {
    fprintf(stderr, "%s: %s: %s\n", step, error->where, error->message);
    abort();
}

/* The Program behind a descriptor, or NULL when it is refused. */
static Program *read_archive(int descriptor, Pt2 **pt2, ferry_error *error) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    *pt2 = NULL;
    if (pt2_open(path, pt2, error) != FERRY_OK) return NULL;
    Program *program = program_new();
    if (pt2_build(*pt2, program, error) == FERRY_OK) {
        if (program_verify(program, "reading", error) != FERRY_OK) fail("verify", error);
        return program;
    }
    program_free(program);
    return NULL;
}

static void write_and_read(Program *program) {
    ferry_error error = {0};
    DynamoSizes sizes;
    int descriptor = memfd_create("again.pt2", 0);
    if (descriptor < 0) abort();
    OutputFile file = {.path = "again", .descriptor = descriptor};
    ferry_status status = dynamo_legalize(program, &error);
    if (status == FERRY_OK)
        status = dynamo_write(program, &(DynamoOptions){0}, &file, &sizes, &error);
    if (status == FERRY_OK) {
        Pt2 *pt2;
        Program *again = read_archive(descriptor, &pt2, &error);
        if (!again) fail("again", &error);
        program_free(again);
        pt2_close(pt2);
    }
    if (!error.message[0] && status != FERRY_OK) abort();
    close(descriptor);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    int descriptor = memfd_create("fuzz.pt2", 0);
    if (descriptor < 0) abort();
    if (root)
        write_archive(root, descriptor);
    else if (write(descriptor, bytes, size) != (ssize_t)size)
        abort();
    json_decref(root);

    Pt2 *pt2;
    ferry_error error = {0};
    Program *program = read_archive(descriptor, &pt2, &error);
    if (!program && !error.message[0]) abort();
    if (program) write_and_read(program);
    program_free(program);
    pt2_close(pt2);
    close(descriptor);
    return 0;
}
