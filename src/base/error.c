#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int exit_status;
    const char *meaning;
} statuses[] = {
#define FERRY_STATUS(name, exit_status, meaning) {#name, exit_status, meaning},
#include <ferry/status.def>
#undef FERRY_STATUS
};

enum { STATUS_COUNT = sizeof statuses / sizeof *statuses };

const char *ferry_status_name(ferry_status status) {
    return (unsigned)status < STATUS_COUNT ? statuses[status].name : "UNKNOWN";
}

const char *ferry_status_meaning(ferry_status status) {
    return (unsigned)status < STATUS_COUNT ? statuses[status].meaning : "unknown status";
}

int ferry_status_exit(ferry_status status) {
    return (unsigned)status < STATUS_COUNT ? statuses[status].exit_status : 70;
}

const char *ferry_version(void) {
    return FERRY_VERSION;
}

void error_clear(ferry_error *error) {
    if (error) *error = (ferry_error){.status = FERRY_OK};
}

ferry_status error_set(ferry_error *error, ferry_status status, const char *where,
                       const char *format, ...) {
    if (!error) return status;
    error->status = status;
    snprintf(error->where, sizeof error->where, "%s", where ? where : "");
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return status;
}

ferry_status error_errno(ferry_error *error, const char *where, const char *what) {
    int code = errno;
    ferry_status status = FERRY_IO;
    if (code == ENOENT || code == ENOTDIR) status = FERRY_NOT_FOUND;
    if (code == ENOMEM) status = FERRY_OUT_OF_MEMORY;
    return error_set(error, status, where, "%s: %s", what, strerror(code));
}

ferry_status error_memory(ferry_error *error, const char *where, unsigned long long bytes) {
    if (!bytes) return error_set(error, FERRY_OUT_OF_MEMORY, where, "out of memory");
    return error_set(error, FERRY_OUT_OF_MEMORY, where,
                     "out of memory: could not allocate %llu bytes", bytes);
}
