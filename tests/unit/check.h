/* What the unit tests share: cmocka with its prerequisites, a scratch directory, and assertions that
 * say what was found. It is included first. */
#ifndef UNIT_CHECK_H
#define UNIT_CHECK_H

#define _GNU_SOURCE

#include "base/error.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline void check_contains(const char *text, const char *part, const char *file, int line) {
    if (strstr(text, part)) return;
    print_error("\"%s\" is not in \"%s\"\n", part, text);
    _fail(file, line);
}

/* The text contains the part. */
#define assert_contains(text, part) check_contains(text, part, __FILE__, __LINE__)

static inline void check_ok(ferry_status status, const ferry_error *error, const char *file,
                            int line) {
    if (status == FERRY_OK) return;
    print_error("%s: %s: %s\n", ferry_status_name(status), error->where, error->message);
    _fail(file, line);
}

/* The call, which fills `error`, succeeds. */
#define assert_ok(call, error) check_ok(call, error, __FILE__, __LINE__)

static inline void check_fails(ferry_status found, ferry_status wanted, const ferry_error *error,
                               const char *part, const char *file, int line) {
    if (found == wanted && strstr(error->message, part)) return;
    print_error("expected %s with \"%s\", found %s: %s\n", ferry_status_name(wanted), part,
                ferry_status_name(found), error->message);
    _fail(file, line);
}

/* The call fails with this status, and its message contains the part. */
#define assert_fails(call, status, error, part)                                                    \
    check_fails(call, status, error, part, __FILE__, __LINE__)

/* A new directory of its own under $TMPDIR. */
static inline void scratch_make(char *directory, size_t size) {
    const char *parent = getenv("TMPDIR");
    snprintf(directory, size, "%s/ferry-test-XXXXXX", parent && *parent ? parent : "/tmp");
    assert_non_null(mkdtemp(directory));
}

/* The number of entries of a directory. */
static inline int scratch_count(const char *directory) {
    int count = 0;
    DIR *stream = opendir(directory);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream));) count += entry->d_name[0] != '.';
    closedir(stream);
    return count;
}

/* Remove a directory and the files in it. */
static inline void scratch_remove(const char *directory) {
    char path[4096];
    DIR *stream = opendir(directory);
    assert_non_null(stream);
    for (struct dirent *entry; (entry = readdir(stream));) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.' && unlink(path) != 0) rmdir(path);
    }
    closedir(stream);
    rmdir(directory);
}

#endif
