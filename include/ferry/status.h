/* Status codes and error details, shared by every function of the C API. */
#ifndef FERRY_STATUS_H
#define FERRY_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FERRY_API __attribute__((visibility("default")))
#else
#define FERRY_API
#endif

typedef enum ferry_status {
#define FERRY_STATUS(name, exit_status, meaning) FERRY_##name,
#include <ferry/status.def>
#undef FERRY_STATUS
} ferry_status;

/* Filled by the first failure of a call. A caller may pass NULL when the code alone is enough.
 * `message` says what was expected, what was found and what to do; `where` names the file, tensor
 * or node concerned and may be empty. Both are always terminated. */
typedef struct ferry_error {
    ferry_status status;
    char where[512];
    char message[1024];
} ferry_error;

/* "BAD_FORMAT" for FERRY_BAD_FORMAT; "UNKNOWN" for a number that is no status. Static storage. */
FERRY_API const char *ferry_status_name(ferry_status status);

/* One sentence on what the status means. Static storage. */
FERRY_API const char *ferry_status_meaning(ferry_status status);

/* The exit status that the `ferry` command uses for `status`. */
FERRY_API int ferry_status_exit(ferry_status status);

/* The library's version, "MAJOR.MINOR.PATCH". Static storage. */
FERRY_API const char *ferry_version(void);

#ifdef __cplusplus
}
#endif
#endif
