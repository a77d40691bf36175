/* Runtimes that are libraries: finding and loading the one that is on the machine.
 *
 * A library that the caller or an environment variable names must be usable, or the reason is reported.
 * In a search, what cannot be used is passed over, and the message says what was wrong with it. */
#ifndef RUN_LIBRARY_H
#define RUN_LIBRARY_H

#include "base/arena.h"
#include "base/vec.h"
#include <ferry/status.h>

typedef VEC(const char *) Paths;

typedef struct LibrarySearch LibrarySearch;

/* A kind of library. Lists end with NULL. */
typedef struct LibraryKind {
    const char *title;               /* "ONNX Runtime" */
    const char *variable;            /* "FERRY_ONNXRUNTIME": names the library to use */
    const char *file;                /* "libonnxruntime.so": names of its files begin with it */
    const char *const *loader_names; /* for the system's loader to find */
    const char *package;             /* where a Python package has it: "onnxruntime/capi" */
    const char *const *inside;       /* where it is below the directory of a release */
    const char *how_to_install;      /* "install it with ..." */
    void (*search_more)(LibrarySearch *search); /* in other places; may be NULL */
    /* BAD_FORMAT for a file that is no such library. `path` without a slash is for the loader to find. */
    ferry_status (*load)(const char *path, void **out, ferry_error *error);
} LibraryKind;

/* Load `library`, a file or a directory, or what the environment names, or what a search finds: in the
 * system's library path, then in packages. RUNTIME_MISSING lists where it looked and what to do. */
ferry_status library_load(const LibraryKind *kind, const char *library, void **out,
                          ferry_error *error);

/* Open one library, for a kind's `load`. BAD_FORMAT says why it cannot be. */
ferry_status library_open(const char *path, void **handle, ferry_error *error);

/* The real path of an open library's file; `path` is what it was opened by. */
const char *library_path(Arena *arena, void *handle, const char *path);

/* True for a file or directory that, by its name, is or holds a library of this kind. */
bool library_fits(const LibraryKind *kind, const char *path);

/* The kinds there are, each defined in the folder of its adapter. */
extern const LibraryKind ort_library, ov_library, et_library;

/* ---- search.c ---- */

/* Files that may be the library, in the order to try them, and the places that were searched, as text
 * for a message. */
struct LibrarySearch {
    const LibraryKind *kind;
    Arena arena;
    Paths files, places;
};

/* Look in `directory` and where a release or a Python package keeps the library below it. */
void search_directory(LibrarySearch *search, const char *directory);

/* Look in the packages that belong to this process's surroundings. */
void search_packages(LibrarySearch *search);

void search_free(LibrarySearch *search);

/* Add the files in `directory` that may be the library, the highest version first. */
void search_files(LibrarySearch *search, const char *directory);

/* Mention a place that was looked in. */
void search_place(LibrarySearch *search, const char *place);

/* Paths of the entries of `directory` that begin with `prefix`, the highest version first. The caller
 * frees the list, not the paths. */
Paths search_list(Arena *arena, const char *directory, const char *prefix);

const char *search_parent(Arena *arena, const char *path);

#endif
