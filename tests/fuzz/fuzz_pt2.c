/* Any JSON as the program of a .pt2, and any other bytes as the archive itself. What is written of a Program
 * that is read is read again. */
#define _GNU_SOURCE
#include "check_pt2.h"
#include "mutate_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error;
    json_t *root = json_loadb((const char *)bytes, size, 0, NULL);
    int descriptor = memfd_create("fuzz.pt2", 0);
    if (descriptor < 0) abort();
    if (root)
        archive_write(root, descriptor);
    else if (write(descriptor, bytes, size) != (ssize_t)size)
        abort();
    json_decref(root);
    if (!archive_check(descriptor, &error)) abort();
    close(descriptor);
    return 0;
}
