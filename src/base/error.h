/* Reporting failures: every fallible function returns ferry_status and fills the caller's error. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <ferry/status.h>

/* Fill `error` (which may be NULL) and return `status`. `where` (may be NULL) names the file, tensor
 * or node; the message is printf-formatted and is cut at the end of the buffer. */
ferry_status error_set(ferry_error *error, ferry_status status, const char *where,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The same for a failed system call: appends the text of `errno` as it was on entry. ENOSPC, EDQUOT
 * and the like become FERRY_IO, a missing file FERRY_NOT_FOUND, ENOMEM FERRY_OUT_OF_MEMORY. */
ferry_status error_errno(ferry_error *error, const char *where, const char *what);

/* "out of memory", with the size that was asked for (0: unknown). */
ferry_status error_memory(ferry_error *error, const char *where, unsigned long long bytes);

/* Empty an error before a call. */
void error_clear(ferry_error *error);

#define TRY(expression)                                                                            \
    do {                                                                                           \
        ferry_status try_status = (expression);                                                    \
        if (try_status != FERRY_OK) return try_status;                                             \
    } while (0)

#endif
