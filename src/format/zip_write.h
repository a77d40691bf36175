/* Writing zip archives: stored entries on an OutputFile, aligned as torch aligns them. */
#ifndef FORMAT_ZIP_WRITE_H
#define FORMAT_ZIP_WRITE_H

#include "base/file.h"

typedef struct ZipWriter ZipWriter;

/* An archive at the start of an open file; NULL when memory is exhausted. The file is the caller's. */
ZipWriter *zip_writer_new(OutputFile *file);

/* Start an entry whose data begins at a multiple of `alignment` (1: anywhere). `size` is how many bytes
 * will follow; above 4 GiB the entry uses 64-bit records. */
ferry_status zip_writer_open(ZipWriter *writer, const char *name, uint64_t size, uint32_t alignment,
                             ferry_error *error);
ferry_status zip_writer_append(ZipWriter *writer, const void *bytes, size_t size,
                               ferry_error *error);
ferry_status zip_writer_close(ZipWriter *writer, ferry_error *error);

/* A whole entry at once. */
ferry_status zip_writer_add(ZipWriter *writer, const char *name, const void *bytes, size_t size,
                            ferry_error *error);

/* Write the directory. The writer must still be freed. */
ferry_status zip_writer_finish(ZipWriter *writer, ferry_error *error);
void zip_writer_free(ZipWriter *writer);

#endif
