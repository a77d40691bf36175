/* What libferry_executorch.so offers: the few things that ferry asks of the ExecuTorch runtime, which has
 * C++ interfaces only, as functions of C. The names of the functions have "ferry_et_" in front. One that
 * returns an int returns 0 for success; otherwise `message` tells what went wrong. */
#ifndef RUN_EXECUTORCH_ADAPTER_H
#define RUN_EXECUTORCH_ADAPTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ET_MAX_RANK = 16 };

typedef struct EtMethod EtMethod; /* a loaded program, ready to run */

/* An input or output: as the program declares it, or as a run left it. */
typedef struct EtTensor {
    void *data;
    uint64_t bytes;  /* of the declared sizes, which are the largest */
    int32_t dtype;   /* ExecuTorch's number; -1: no tensor, but a constant of the program */
    int32_t planned; /* its memory is the program's own */
    uint32_t rank;
    int32_t sizes[ET_MAX_RANK];
} EtTensor;

/* FUNCTION(result, name, parameters) */
#define ET_FUNCTIONS(FUNCTION)                                                                     \
    FUNCTION(const char *, version, (void))  /* of the package that it was built for */            \
    FUNCTION(const char *, backends, (void)) /* those that work: "XnnpackBackend" */               \
    FUNCTION(const char *, message, (void))  /* of the last failure in this thread */              \
    FUNCTION(int, open, (const char *path, uint32_t threads, EtMethod **method))                   \
    FUNCTION(void, close, (EtMethod * method))                                                     \
    FUNCTION(uint32_t, input_count, (const EtMethod *method))                                      \
    FUNCTION(uint32_t, output_count, (const EtMethod *method))                                     \
    FUNCTION(int, describe_input, (const EtMethod *method, uint32_t index, EtTensor *tensor))      \
    FUNCTION(int, describe_output, (const EtMethod *method, uint32_t index, EtTensor *tensor))     \
    /* Memory that stays until the run: shared, or copied where the input is planned. */           \
    FUNCTION(int, set_input, (EtMethod * method, uint32_t index, const EtTensor *tensor))          \
    /* Where an output that is not planned goes: as many bytes as it declares. */                  \
    FUNCTION(int, bind_output, (EtMethod * method, uint32_t index, void *data, uint64_t bytes))    \
    FUNCTION(int, run, (EtMethod * method))                                                        \
    /* Valid until the next run. */                                                                \
    FUNCTION(int, output, (const EtMethod *method, uint32_t index, EtTensor *tensor))

#define FUNCTION(result, name, parameters)                                                         \
    __attribute__((visibility("default"))) result ferry_et_##name parameters;
ET_FUNCTIONS(FUNCTION)
#undef FUNCTION

#ifdef __cplusplus
}
#endif
#endif
