/* Private to src/run/executorch: the loaded libraries and an open program. */
#ifndef RUN_EXECUTORCH_ET_H
#define RUN_EXECUTORCH_ET_H

#include "base/arena.h"
#include "run/executorch.h"
#include "run/executorch/adapter.h"

typedef struct EtApi {
#define FUNCTION(result, name, parameters) result(*name) parameters;
    ET_FUNCTIONS(FUNCTION)
#undef FUNCTION
} EtApi;

struct ExecuTorch {
    Arena arena;
    EtApi api;
    const char *version, *path, *backends;
};

struct ExecuTorchSession {
    Arena arena;
    const ExecuTorch *runtime;
    const char *path;
    EtMethod *method;
    ExecuTorchNames names;
    EtTensor *inputs, *outputs; /* as declared */
    uint32_t *places;           /* of the inputs, among which are constants */
    void **rooms;               /* of this run, for inputs that it writes; NULL: others */
    unsigned threads;
};

/* FERRY_OK for 0. Otherwise RUNTIME_FAILED with "<what>: <the runtime's message>". */
ferry_status et_check(const ExecuTorch *runtime, int status, const char *where, const char *what,
                      ferry_error *error);

#endif
