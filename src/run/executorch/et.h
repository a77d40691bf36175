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

/* A pair that is carried. */
typedef struct EtCarry {
    size_t input, output; /* their indices */
    bool in_place, started;
    ferry_tensor held; /* what the next run takes, in memory[0] */
    void *memory[2];   /* the second is where the output goes, when that is elsewhere */
    uint64_t capacity; /* bytes of each */
} EtCarry;

struct ExecuTorchSession {
    Arena arena;
    const ExecuTorch *runtime;
    const char *path;
    EtMethod *method;
    ExecuTorchNames names;
    EtTensor *inputs, *outputs; /* as declared */
    uint32_t *places;           /* of the inputs, among which are constants */
    EtCarry *carries;
    size_t carry_count;
    void **rooms; /* of this run, for inputs that it writes; NULL: others */
    unsigned threads;
};

/* ---- carry.c ---- */

/* The pair with this input or output; NULL when it is not carried. */
EtCarry *et_carry_of_input(const ExecuTorchSession *session, uint32_t input);
EtCarry *et_carry_of_output(const ExecuTorchSession *session, uint32_t output);

/* Start a pair from a tensor, which is copied. */
ferry_status et_carry_start(ExecuTorchSession *session, EtCarry *carry, const ferry_tensor *from,
                            ferry_error *error);

/* Where the output goes; and, after the run, taking it for the next one. */
void *et_carry_room(const EtCarry *carry);
ferry_status et_carry_take(EtCarry *carry, const EtTensor *found, const char *name,
                           ferry_error *error);

/* ---- library.c ---- */

/* FERRY_OK for 0. Otherwise RUNTIME_FAILED with "<what>: <the runtime's message>". */
ferry_status et_check(const ExecuTorch *runtime, int status, const char *where, const char *what,
                      ferry_error *error);

#endif
