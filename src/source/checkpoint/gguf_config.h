/* Making a configuration of GGUF's metadata: what the architectures use. The first failure is kept. */
#ifndef SOURCE_GGUF_CONFIG_H
#define SOURCE_GGUF_CONFIG_H

#include "source/checkpoint/open.h"

struct GgufConfig {
    const Gguf *gguf;
    const GgufArchitecture *architecture;
    const unsigned char *bytes; /* the file */
    json_t *json;
    json_t *rest; /* keys "ARCH.x" that nothing has been made of yet */
    Arena *arena;
    ferry_status status;
    ferry_error *error;
};

void gguf_fail(GgufConfig *config, ferry_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Set a key of the configuration; takes over `value`. */
void gguf_set(GgufConfig *config, const char *key, json_t *value);

/* An integer that was set before; 0 when there is none. */
int64_t gguf_have(const GgufConfig *config, const char *key);

/* The value of "ARCH.key", which is understood by that; false when there is none. */
bool gguf_take_integer(GgufConfig *config, const char *key, int64_t *out);
bool gguf_take_number(GgufConfig *config, const char *key, double *out);

#endif
