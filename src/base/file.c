#define _GNU_SOURCE
#include "base/file.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

ferry_status file_map(const char *path, Arena *arena, MappedFile *out, ferry_error *error) {
    *out = (MappedFile){.path = arena_string(arena, path)};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return error_errno(error, path, "cannot open the file");
    struct stat info;
    ferry_status status = FERRY_OK;
    if (fstat(descriptor, &info) != 0) {
        status = error_errno(error, path, "cannot examine the file");
    } else if (!S_ISREG(info.st_mode)) {
        status = error_set(error, FERRY_BAD_FORMAT, path, "expected a regular file, found %s",
                           S_ISDIR(info.st_mode) ? "a directory" : "a special file");
    } else if (info.st_size > 0) {
        void *bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED) {
            status = error_errno(error, path, "cannot map the file into memory");
        } else {
            out->bytes = bytes;
            out->size = (size_t)info.st_size;
        }
    }
    close(descriptor);
    return status;
}

void file_unmap(MappedFile *file) {
    if (file->bytes) munmap((void *)(uintptr_t)file->bytes, file->size);
    *file = (MappedFile){0};
}

ferry_status files_map(MappedFiles *files, const char *path, const MappedFile **out,
                       ferry_error *error) {
    MappedFile *file = ARENA_NEW(&files->arena, MappedFile);
    if (!file) return error_memory(error, path, 0);
    TRY(file_map(path, &files->arena, file, error));
    VEC_PUSH(&files->items, file);
    if (files->items.failed) {
        file_unmap(file);
        return error_memory(error, path, 0);
    }
    *out = file;
    return FERRY_OK;
}

void files_unmap(MappedFiles *files) {
    for (size_t i = 0; i < files->items.count; i++) file_unmap(files->items.items[i]);
    VEC_FREE(&files->items);
    arena_free(&files->arena);
}

void file_forget(const MappedFile *file, size_t offset, size_t length) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = offset / page * page;
    size_t last = (offset + length + page - 1) / page * page;
    madvise((void *)(uintptr_t)(file->bytes + first), last - first, MADV_DONTNEED);
}

/* ---- writing ---- */

/* The directory that holds `path`; slashes at the end of `path` do not count. */
static void directory_of(const char *path, char *directory, size_t size) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    if (length == 0) snprintf(directory, size, ".");
    while (length > 1 && path[length - 1] == '/') length--;
    if (length > 0) snprintf(directory, size, "%.*s", (int)length, path);
}

/* A name beside `path` that is not taken yet, with the file's first letters for a human. */
static char *temporary_name(const char *path, int attempt) {
    char *name = NULL;
    if (asprintf(&name, "%s.%ld-%d.tmp", path, (long)getpid(), attempt) < 0) return NULL;
    return name;
}

static ferry_status open_named(OutputFile *file, ferry_error *error) {
    for (int attempt = 0; attempt < 100; attempt++) {
        file->temporary = temporary_name(file->path, attempt);
        if (!file->temporary) return error_memory(error, file->path, 0);
        file->descriptor = open(file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor >= 0) return FERRY_OK;
        free(file->temporary);
        file->temporary = NULL;
        if (errno != EEXIST) break;
    }
    return error_errno(error, file->path, "cannot create the file");
}

ferry_status output_open(OutputFile *file, const char *path, uint64_t size, ferry_error *error) {
    *file = (OutputFile){.path = path, .descriptor = -1};
    char directory[4096];
    directory_of(path, directory, sizeof directory);
#ifdef O_TMPFILE
    file->descriptor = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
#endif
    if (file->descriptor < 0) TRY(open_named(file, error));
    if (size > 0) {
        int code = posix_fallocate(file->descriptor, 0, (off_t)size);
        if (code != 0 && code != EINVAL && code != EOPNOTSUPP) {
            errno = code;
            ferry_status status = error_errno(error, path, "cannot reserve space for the file");
            output_discard(file);
            return status;
        }
    }
    return FERRY_OK;
}

ferry_status output_symlink(OutputFile *file, const char *path, const char *target,
                            ferry_error *error) {
    *file = (OutputFile){.path = path, .descriptor = -1};
    for (int attempt = 0; attempt < 100; attempt++) {
        file->temporary = temporary_name(path, attempt);
        if (!file->temporary) return error_memory(error, path, 0);
        if (symlink(target, file->temporary) == 0) return FERRY_OK;
        free(file->temporary);
        file->temporary = NULL;
        if (errno != EEXIST) break;
    }
    return error_errno(error, path, "cannot create the symbolic link");
}

ferry_status output_write(OutputFile *file, uint64_t offset, const void *bytes, size_t length,
                          ferry_error *error) {
    const unsigned char *next = bytes;
    while (length > 0) {
        ssize_t written = pwrite(file->descriptor, next, length, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return error_errno(error, file->path, "cannot write the file");
        next += written;
        offset += (uint64_t)written;
        length -= (size_t)written;
    }
    return FERRY_OK;
}

/* Give an O_TMPFILE file a temporary name, from which it can be renamed over an existing one. */
static ferry_status output_link(OutputFile *file, ferry_error *error) {
    char source[64];
    snprintf(source, sizeof source, "/proc/self/fd/%d", file->descriptor);
    for (int attempt = 0; attempt < 100; attempt++) {
        char *name = temporary_name(file->path, attempt);
        if (!name) return error_memory(error, file->path, 0);
        if (linkat(AT_FDCWD, source, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0) {
            file->temporary = name;
            return FERRY_OK;
        }
        free(name);
        if (errno != EEXIST) break;
    }
    return error_errno(error, file->path, "cannot name the finished file");
}

ferry_status output_commit(OutputFile *file, ferry_error *error) {
    ferry_status status = FERRY_OK;
    if (!file->temporary) status = output_link(file, error);
    if (status == FERRY_OK && rename(file->temporary, file->path) != 0) {
        status = error_errno(error, file->path, "cannot put the finished file in its place");
    }
    if (status != FERRY_OK) {
        output_discard(file);
        return status;
    }
    if (file->descriptor >= 0) close(file->descriptor);
    free(file->temporary);
    *file = (OutputFile){.descriptor = -1};
    return FERRY_OK;
}

void output_discard(OutputFile *file) {
    if (file->temporary) unlink(file->temporary);
    free(file->temporary);
    if (file->path && file->descriptor >= 0) close(file->descriptor);
    *file = (OutputFile){.descriptor = -1};
}

ferry_status file_write(const char *path, const void *bytes, size_t length, ferry_error *error) {
    OutputFile file;
    TRY(output_open(&file, path, 0, error));
    ferry_status status = output_write(&file, 0, bytes, length, error);
    if (status == FERRY_OK) return output_commit(&file, error);
    output_discard(&file);
    return status;
}

/* ---- paths ---- */

const char *path_join(Arena *arena, const char *directory, const char *name) {
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') length--;
    return arena_format(arena, "%.*s/%s", (int)length, directory, name);
}

const char *path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool path_is_contained(const char *name) {
    if (!*name || *name == '/') return false;
    for (const char *part = name; part; part = strchr(part, '/')) {
        if (*part == '/') part++;
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.')) return false;
        if (length == 2 && part[0] == '.' && part[1] == '.') return false;
    }
    return true;
}

const char *path_within(Arena *arena, const char *directory, const char *path) {
    char *outer = realpath(directory, NULL), *inner = realpath(path, NULL);
    const char *relative = NULL;
    size_t length = outer ? strlen(outer) : 0;
    if (outer && inner && strncmp(outer, inner, length) == 0) {
        /* Only the root ends with a slash. */
        if (length == 1) length = 0;
        if (inner[length] == '/') relative = arena_string(arena, inner + length + 1);
    }
    free(outer);
    free(inner);
    return relative;
}

bool path_exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

bool path_is_directory(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

ferry_status path_make_directory(const char *path, bool *created, ferry_error *error) {
    if (created) *created = false;
    if (path_is_directory(path)) return FERRY_OK;
    char parent[4096];
    directory_of(path, parent, sizeof parent);
    if (strcmp(parent, path) != 0) TRY(path_make_directory(parent, NULL, error));
    if (mkdir(path, 0777) != 0) {
        if (errno == EEXIST && path_is_directory(path)) return FERRY_OK; /* made by another */
        return error_errno(error, path, "cannot create the directory");
    }
    if (created) *created = true;
    return FERRY_OK;
}
