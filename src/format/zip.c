#include "format/zip.h"
#include "base/error.h"

#include <inttypes.h>
#include <minizip/unzip.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* Deflate codes at best 258 bytes in 2 bits. */
enum { MAX_EXPANSION = 1032, MAX_ENTRIES = 1 << 20 };

/* ---- minizip's view of memory ---- */

typedef struct Stream {
    const unsigned char *bytes;
    uint64_t size, position;
} Stream;

static voidpf stream_open(voidpf opaque, const void *name, int mode) {
    (void)name, (void)mode;
    return opaque;
}

static uLong stream_read(voidpf opaque, voidpf handle, void *buffer, uLong size) {
    Stream *stream = opaque;
    (void)handle;
    uint64_t rest = stream->size - stream->position;
    if (size > rest) size = (uLong)rest;
    if (size) memcpy(buffer, stream->bytes + stream->position, size);
    stream->position += size;
    return size;
}

static ZPOS64_T stream_tell(voidpf opaque, voidpf handle) {
    (void)handle;
    return ((Stream *)opaque)->position;
}

static long stream_seek(voidpf opaque, voidpf handle, ZPOS64_T offset, int origin) {
    Stream *stream = opaque;
    (void)handle;
    uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? stream->position
                    : origin == ZLIB_FILEFUNC_SEEK_END ? stream->size
                                                       : 0;
    uint64_t target;
    if (__builtin_add_overflow(base, (uint64_t)offset, &target) || target > stream->size) return -1;
    stream->position = target;
    return 0;
}

static int stream_nothing(voidpf opaque, voidpf handle) {
    (void)opaque, (void)handle;
    return 0;
}

static unzFile open_stream(Stream *stream) {
    zlib_filefunc64_def functions = {.zopen64_file = stream_open,
                                     .zread_file = stream_read,
                                     .ztell64_file = stream_tell,
                                     .zseek64_file = stream_seek,
                                     .zclose_file = stream_nothing,
                                     .zerror_file = stream_nothing,
                                     .opaque = stream};
    return unzOpen2_64("archive", &functions);
}

/* ---- the directory ---- */

typedef struct Reading {
    Zip *zip;
    unzFile file;
    Arena *arena;
    ferry_error *error;
} Reading;

static ferry_status damaged(const Reading *reading, const char *name, const char *problem) {
    return error_set(reading->error, FERRY_BAD_FORMAT, reading->zip->path, "entry \"%s\": %s", name,
                     problem);
}

/* The end record, complete, which minizip does not insist on; NULL when there is none. */
static const unsigned char *find_end(const unsigned char *bytes, size_t size) {
    enum { RECORD = 22, MAX_COMMENT = 0xffff };
    for (size_t i = 0; size >= RECORD && i <= size - RECORD && i <= MAX_COMMENT; i++) {
        const unsigned char *record = bytes + size - RECORD - i;
        if (memcmp(record, "PK\5\6", 4) == 0) return record;
    }
    return NULL;
}

static ferry_status check_entry(const Reading *reading, const char *name,
                                const unz_file_info64 *info) {
    bool stored = info->compression_method == 0;
    if (info->flag & 1 || (!stored && info->compression_method != Z_DEFLATED)) {
        return error_set(reading->error, FERRY_UNSUPPORTED, reading->zip->path,
                         "entry \"%s\": expected it stored or deflated, found method %lu%s", name,
                         info->compression_method, info->flag & 1 ? ", encrypted" : "");
    }
    if ((stored && info->compressed_size != info->uncompressed_size) ||
        info->uncompressed_size / MAX_EXPANSION > info->compressed_size) {
        return damaged(reading, name, "its sizes are impossible");
    }
    if (!path_is_contained(name)) return damaged(reading, name, "its name leaves the archive");
    if (zip_find(reading->zip, name)) return damaged(reading, name, "it occurs twice");
    return FERRY_OK;
}

/* Where the data of the current entry starts. */
static ferry_status locate(const Reading *reading, ZipEntry *entry) {
    int method;
    if (unzOpenCurrentFile2(reading->file, &method, NULL, 1) != UNZ_OK) {
        return damaged(reading, entry->name, "its local header is damaged");
    }
    entry->offset = unzGetCurrentFileZStreamPos64(reading->file);
    unzCloseCurrentFile(reading->file);
    size_t size = reading->zip->byte_count;
    if (entry->offset <= size && entry->packed <= size - entry->offset) return FERRY_OK;
    return damaged(reading, entry->name, "its data lies outside the archive");
}

/* The entry that minizip stands at. */
static ferry_status read_entry(Reading *reading) {
    unz_file_info64 info;
    Zip *zip = reading->zip;
    if (unzGetCurrentFileInfo64(reading->file, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK) {
        return damaged(reading, "?", "its entry in the directory is damaged");
    }
    uLong length = info.size_filename;
    char *name = arena_alloc(reading->arena, length + 1);
    if (!name) return error_memory(reading->error, zip->path, length);
    if (unzGetCurrentFileInfo64(reading->file, NULL, name, length, NULL, 0, NULL, 0) != UNZ_OK ||
        strlen(name) != length) {
        return damaged(reading, "?", "its name is damaged");
    }
    if (length && name[length - 1] == '/') return FERRY_OK; /* a folder */
    TRY(check_entry(reading, name, &info));
    ZipEntry *entry = &zip->entries[zip->count];
    *entry = (ZipEntry){.name = name,
                        .packed = info.compressed_size,
                        .size = info.uncompressed_size,
                        .crc = (uint32_t)info.crc,
                        .deflated = info.compression_method != 0};
    TRY(locate(reading, entry));
    map_put(&zip->by_name, name, entry);
    zip->count++;
    return FERRY_OK;
}

static int by_offset(const void *left, const void *right) {
    const ZipEntry *a = *(const ZipEntry *const *)left, *b = *(const ZipEntry *const *)right;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Entries that share bytes are how small archives become large. */
static ferry_status check_overlap(const Reading *reading) {
    const Zip *zip = reading->zip;
    const ZipEntry **sorted = ARENA_ARRAY(reading->arena, const ZipEntry *, zip->count + 1);
    if (!sorted) return error_memory(reading->error, zip->path, 0);
    for (size_t i = 0; i < zip->count; i++) sorted[i] = &zip->entries[i];
    qsort(sorted, zip->count, sizeof *sorted, by_offset);
    for (size_t i = 1; i < zip->count; i++) {
        if (sorted[i - 1]->offset + sorted[i - 1]->packed > sorted[i]->offset) {
            return damaged(reading, sorted[i]->name, "it overlaps another entry");
        }
    }
    return FERRY_OK;
}

static ferry_status read_directory(Reading *reading) {
    unz_global_info64 info;
    Zip *zip = reading->zip;
    if (!reading->file || unzGetGlobalInfo64(reading->file, &info) != UNZ_OK ||
        info.number_entry > MAX_ENTRIES) {
        return error_set(
            reading->error, FERRY_BAD_FORMAT, zip->path,
            "expected a zip archive, found no readable directory: the file is truncated "
            "or damaged");
    }
    zip->entries = ARENA_ARRAY(reading->arena, ZipEntry, info.number_entry);
    if (!zip->entries) return error_memory(reading->error, zip->path, 0);
    for (uint64_t i = 0; i < info.number_entry; i++) {
        if ((i ? unzGoToNextFile(reading->file) : unzGoToFirstFile(reading->file)) != UNZ_OK) {
            return damaged(reading, "?", "its entry in the directory is damaged");
        }
        TRY(read_entry(reading));
    }
    if (zip->by_name.failed || reading->arena->failed)
        return error_memory(reading->error, zip->path, 0);
    return check_overlap(reading);
}

ferry_status zip_read(const char *path, const unsigned char *bytes, size_t size, Arena *arena,
                      Zip *out, ferry_error *error) {
    Stream stream = {.bytes = bytes, .size = size};
    const unsigned char *end = find_end(bytes, size);
    *out = (Zip){.path = path, .bytes = bytes, .byte_count = size};
    if (end && end == bytes && end[8] == 0 && end[9] == 0) return FERRY_OK; /* no entries */
    Reading reading = {
        .zip = out, .file = end ? open_stream(&stream) : NULL, .arena = arena, .error = error};
    ferry_status status = read_directory(&reading);
    if (reading.file) unzClose(reading.file);
    if (status != FERRY_OK) zip_free(out);
    return status;
}

void zip_free(Zip *zip) {
    map_free(&zip->by_name);
    *zip = (Zip){0};
}

const ZipEntry *zip_find(const Zip *zip, const char *name) {
    return map_find(&zip->by_name, name);
}

/* ---- contents ---- */

/* Inflate until `out` is full; false when the data is damaged or ends before. `*ended`: so did the
 * data. */
static bool inflate_bytes(const ZipEntry *entry, const unsigned char *from, unsigned char *out,
                          uint64_t size, bool *ended) {
    enum { STEP = 1 << 30 };
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)from, .next_out = out};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
    int code = Z_OK;
    while (code == Z_OK) {
        uint64_t left = entry->packed - (uint64_t)(stream.next_in - from);
        uint64_t room = size - (uint64_t)(stream.next_out - out);
        stream.avail_in = (unsigned)(left < STEP ? left : STEP);
        stream.avail_out = (unsigned)(room < STEP ? room : STEP);
        code = inflate(&stream, Z_NO_FLUSH);
        if (code == Z_OK && left == 0 && room == 0) break;
    }
    inflateEnd(&stream);
    *ended = code == Z_STREAM_END;
    return (uint64_t)(stream.next_out - out) == size;
}

static ferry_status check_sum(const Zip *zip, const ZipEntry *entry, const unsigned char *bytes,
                              ferry_error *error) {
    const Reading reading = {.zip = (Zip *)(uintptr_t)zip, .error = error};
    if (crc32_z(0, bytes, entry->size) == entry->crc) return FERRY_OK;
    return damaged(&reading, entry->name, "its checksum is wrong");
}

ferry_status zip_bytes(const Zip *zip, const ZipEntry *entry, Arena *arena,
                       const unsigned char **out, ferry_error *error) {
    const Reading reading = {.zip = (Zip *)(uintptr_t)zip, .error = error};
    bool ended;
    *out = zip->bytes + entry->offset;
    if (!entry->deflated) return FERRY_OK;
    unsigned char *inflated = arena_alloc(arena, entry->size);
    if (!inflated) return error_memory(error, zip->path, entry->size);
    if (!inflate_bytes(entry, *out, inflated, entry->size, &ended) || !ended) {
        return damaged(&reading, entry->name, "its data is damaged or of another size");
    }
    TRY(check_sum(zip, entry, inflated, error));
    *out = inflated;
    return FERRY_OK;
}

ferry_status zip_peek(const Zip *zip, const ZipEntry *entry, size_t length, unsigned char *out,
                      ferry_error *error) {
    const Reading reading = {.zip = (Zip *)(uintptr_t)zip, .error = error};
    const unsigned char *bytes = zip->bytes + entry->offset;
    bool ended;
    if (!entry->deflated) {
        if (length) memcpy(out, bytes, length);
    } else if (!inflate_bytes(entry, bytes, out, length, &ended)) {
        return damaged(&reading, entry->name, "its data is damaged or of another size");
    }
    return FERRY_OK;
}

ferry_status zip_check(const Zip *zip, const ZipEntry *entry, ferry_error *error) {
    return entry->deflated ? FERRY_OK : check_sum(zip, entry, zip->bytes + entry->offset, error);
}
