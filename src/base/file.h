/* Files: mapping for reading, atomic writing, and paths that must stay inside a directory. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"
#include "base/vec.h"
#include <ferry/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A regular file mapped for reading. Truncating it while mapped is the caller's own risk. */
typedef struct MappedFile {
    const char *path; /* in the arena given to file_map */
    const unsigned char *bytes;
    size_t size;
} MappedFile;

/* Map a whole regular file. Anything else (directory, FIFO, device) is BAD_FORMAT. */
ferry_status file_map(const char *path, Arena *arena, MappedFile *out, ferry_error *error);
void file_unmap(MappedFile *file);

/* Files that are mapped together and stay where they are until all are unmapped, such as those that the
 * weights of a program refer to. One that is all zero is ready for use. */
typedef struct MappedFiles {
    Arena arena;
    VEC(MappedFile *) items;
} MappedFiles;

ferry_status files_map(MappedFiles *files, const char *path, const MappedFile **out,
                       ferry_error *error);
void files_unmap(MappedFiles *files);

/* Tell the kernel that the pages that hold [offset, offset + length) are no longer needed, so that a
 * streamed file does not count as resident memory. They can still be read. */
void file_forget(const MappedFile *file, size_t offset, size_t length);

/* A file that appears under its name, complete, when it is committed, or never. It is written to an
 * unnamed or temporary file in the same directory and renamed over the old one. */
typedef struct OutputFile {
    const char *path;
    char *temporary; /* NULL while the file has no name */
    int descriptor;
} OutputFile;

/* `path` must outlive the OutputFile. `size` (0: unknown) is reserved on the disk at once, so that a
 * full disk is reported before anything is written. */
ferry_status output_open(OutputFile *file, const char *path, uint64_t size, ferry_error *error);
/* A symbolic link in the place of a file, to `target`. */
ferry_status output_symlink(OutputFile *file, const char *path, const char *target,
                            ferry_error *error);
ferry_status output_write(OutputFile *file, uint64_t offset, const void *bytes, size_t length,
                          ferry_error *error);
ferry_status output_commit(OutputFile *file, ferry_error *error);

/* Drop an uncommitted file; does nothing after a commit. */
void output_discard(OutputFile *file);

/* Write a small file in one go, atomically. */
ferry_status file_write(const char *path, const void *bytes, size_t length, ferry_error *error);

/* "directory/name" in the arena. */
const char *path_join(Arena *arena, const char *directory, const char *name);

/* The part of `path` after its last slash. */
const char *path_base(const char *path);

/* True when `name` is a plain relative path that cannot leave its directory by its text: not empty,
 * not absolute, no empty, "." or ".." component. */
bool path_is_contained(const char *name);

/* The path of the file at `path` relative to `directory`, both with their symbolic links resolved, in
 * the arena; NULL when the file is not below the directory. */
const char *path_within(Arena *arena, const char *directory, const char *path);

bool path_exists(const char *path);
bool path_is_directory(const char *path);

/* Create a directory and its parents. `*created` (optional) says whether `path` itself is new. */
ferry_status path_make_directory(const char *path, bool *created, ferry_error *error);

#endif
