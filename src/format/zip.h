/* Reading zip archives: the directory by minizip, on a stream over mapped memory. */
#ifndef FORMAT_ZIP_H
#define FORMAT_ZIP_H

#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"

typedef struct ZipEntry {
    const char *name;
    uint64_t offset; /* of its data in the archive */
    uint64_t packed, size;
    uint32_t crc;
    bool deflated; /* else stored: its data is in the archive as it is */
} ZipEntry;

typedef struct Zip {
    const char *path; /* for messages */
    const unsigned char *bytes;
    size_t byte_count;
    ZipEntry *entries; /* as the directory lists them; folders left out */
    size_t count;
    Map by_name; /* name -> ZipEntry */
} Zip;

/* Read the directory of an archive in memory. Names and tables live in the arena. BAD_FORMAT for a
 * missing or damaged directory, entries outside the archive or overlapping, names that occur twice or
 * are no relative paths inside the archive, sizes that deflate cannot reach; UNSUPPORTED for encryption
 * and other compression. */
ferry_status zip_read(const char *path, const unsigned char *bytes, size_t size, Arena *arena,
                      Zip *out, ferry_error *error);
void zip_free(Zip *zip);

/* The entry called `name`, or NULL. */
const ZipEntry *zip_find(const Zip *zip, const char *name);

/* The bytes of an entry, entry->size of them: in place when it is stored, else inflated into the arena.
 * The checksum is verified for inflated entries. */
ferry_status zip_bytes(const Zip *zip, const ZipEntry *entry, Arena *arena,
                       const unsigned char **out, ferry_error *error);

/* The first `length` bytes of an entry, at most entry->size; nothing more is inflated. */
ferry_status zip_peek(const Zip *zip, const ZipEntry *entry, size_t length, unsigned char *out,
                      ferry_error *error);

/* Verify the checksum of a stored entry, which zip_bytes leaves unread. */
ferry_status zip_check(const Zip *zip, const ZipEntry *entry, ferry_error *error);

#endif
