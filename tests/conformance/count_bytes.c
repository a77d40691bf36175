/* Preloaded into a process, counts what it copies and allocates in pieces of at least $COUNT_BYTES, and leaves "BYTES
 * COPIED, BYTES ALLOCATED" in $COUNT_FILE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_ulong copied, allocated;
static size_t threshold = (size_t)-1;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("COUNT_BYTES");
    if (text) threshold = strtoul(text, NULL, 10);
}

__attribute__((destructor)) static void end(void) {
    FILE *file = fopen(getenv("COUNT_FILE"), "w");
    if (!file) return;
    fprintf(file, "%lu %lu\n", (unsigned long)copied, (unsigned long)allocated);
    fclose(file);
}

#define FORWARD(result, name, parameters, arguments, counter)                                      \
    result name parameters {                                                                       \
        static result(*next) parameters;                                                           \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                      \
        if (size >= threshold) counter += size;                                                    \
        return next arguments;                                                                     \
    }

FORWARD(void *, memcpy, (void *to, const void *from, size_t size), (to, from, size), copied)
FORWARD(void *, memmove, (void *to, const void *from, size_t size), (to, from, size), copied)
FORWARD(void *, malloc, (size_t size), (size), allocated)
FORWARD(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), allocated)
FORWARD(int, posix_memalign, (void **out, size_t alignment, size_t size), (out, alignment, size),
        allocated)
