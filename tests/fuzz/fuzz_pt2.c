/* Any JSON as the program of a .pt2: {"program": {...}, "weights": {...}, "constants": {...}}, all of whose
 * payloads may point at one file of zeros, "weight_0". Refused with a message (a
 * result that contradicts its declaration may be INTERNAL: the reader cannot know which is wrong), or a
 * Program that the verifier accepts. Text that is not JSON is taken as the archive itself. */
#define _GNU_SOURCE
#include "base/error.h"
#include "format/zip_write.h"
#include "mutate_json.h"
#include "source/pt2/pt2.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char path[64];
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    int descriptor = memfd_create("fuzz.pt2", 0);
    if (descriptor < 0) abort();
    if (root)
        write_archive(root, descriptor);
    else if (write(descriptor, bytes, size) != (ssize_t)size)
        abort();
    json_decref(root);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);

    Pt2 *pt2 = NULL;
    ferry_error error = {0};
    ferry_status status = pt2_open(path, &pt2, &error);
    Program *program = status == FERRY_OK ? program_new() : NULL;
    Registry registry = {0};
    translations_register(&registry);
    if (status == FERRY_OK) status = pt2_build(pt2, &registry, program, &error);
    if (status != FERRY_OK && !error.message[0]) abort();
    if (status == FERRY_OK && program_verify(program, "reading", &error) != FERRY_OK) {
        fprintf(stderr, "%s: %s\n", error.where, error.message);
        abort();
    }
    program_free(program);
    registry_free(&registry);
    pt2_close(pt2);
    close(descriptor);
    return 0;
}
