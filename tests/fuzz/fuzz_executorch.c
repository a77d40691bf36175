/* Any bytes as an ExecuTorch program: refused with a message, or one that the runtime would load. */
#include "target/executorch/executorch.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    ferry_error error = {0};
    ferry_status status = executorch_verify("fuzz", bytes, size, size, &error);
    if (status != FERRY_OK && !error.message[0]) abort();
    return 0;
}
