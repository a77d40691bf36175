/* The zip container is minizip's work, on callbacks: it reads from the mapped file and writes into an
 * OutputFile, so that both ends share the checks and guarantees of base/file. */
#include "format/npz.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "format/npy.h"

#include <inttypes.h>
#include <minizip/unzip.h>
#include <minizip/zip.h>
#include <string.h>

/* ---- minizip's view of memory and of an OutputFile ---- */

typedef struct Stream {
    const unsigned char *bytes; /* reading */
    OutputFile *file;           /* writing */
    uint64_t size, position;
    ferry_status status; /* of the first write that failed */
    ferry_error *error;
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

/* A failure is kept for the caller, who asks after each step: minizip leaks memory when it is told. */
static uLong stream_write(voidpf opaque, voidpf handle, const void *buffer, uLong size) {
    Stream *stream = opaque;
    (void)handle;
    if (stream->status == FERRY_OK) {
        stream->status = output_write(stream->file, stream->position, buffer, size, stream->error);
    }
    stream->position += size;
    if (stream->position > stream->size) stream->size = stream->position;
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

static int stream_close(voidpf opaque, voidpf handle) {
    (void)opaque, (void)handle;
    return 0;
}

static int stream_error(voidpf opaque, voidpf handle) {
    (void)opaque, (void)handle;
    return 0;
}

static zlib_filefunc64_def stream_functions(Stream *stream) {
    return (zlib_filefunc64_def){.zopen64_file = stream_open,
                                 .zread_file = stream_read,
                                 .zwrite_file = stream_write,
                                 .ztell64_file = stream_tell,
                                 .zseek64_file = stream_seek,
                                 .zclose_file = stream_close,
                                 .zerror_file = stream_error,
                                 .opaque = stream};
}

/* ---- reading ---- */

/* Deflate codes at best 258 bytes in 2 bits. */
#define MAX_EXPANSION 1032

typedef struct Archive {
    const char *path;
    unzFile zip;
    Arena *scratch;
    uint64_t unclaimed; /* bytes of the file that no member has claimed yet */
    ferry_tensors *tensors;
    ferry_error *error;
} Archive;

static ferry_status damaged(Archive *archive, const char *member, const char *problem) {
    return error_set(archive->error, FERRY_BAD_FORMAT, archive->path, "member \"%s\": %s", member,
                     problem);
}

/* Exactly `size` bytes of the open member. */
static ferry_status read_exactly(Archive *archive, const char *member, void *out, uint64_t size) {
    unsigned char *next = out;
    while (size > 0) {
        int got =
            unzReadCurrentFile(archive->zip, next, size < 1u << 30 ? (unsigned)size : 1u << 30);
        if (got <= 0) return damaged(archive, member, "its data is damaged or ends early");
        next += got;
        size -= (uint64_t)got;
    }
    return FERRY_OK;
}

/* The current member's name, in the arena, and what the archive says about it. */
static ferry_status read_entry(Archive *archive, unz_file_info64 *info, char **name) {
    if (unzGetCurrentFileInfo64(archive->zip, info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK) {
        return damaged(archive, "?", "its entry in the directory is damaged");
    }
    *name = arena_alloc(archive->scratch, info->size_filename + 1);
    if (!*name) return error_memory(archive->error, archive->path, info->size_filename);
    if (unzGetCurrentFileInfo64(archive->zip, info, *name, info->size_filename, NULL, 0, NULL, 0) !=
            UNZ_OK ||
        strlen(*name) != info->size_filename) {
        return damaged(archive, "?", "its name is damaged");
    }
    if (info->flag & 1 ||
        (info->compression_method != 0 && info->compression_method != Z_DEFLATED)) {
        return error_set(archive->error, FERRY_UNSUPPORTED, archive->path,
                         "member \"%s\": expected it stored or deflated, found method %lu%s", *name,
                         info->compression_method, info->flag & 1 ? ", encrypted" : "");
    }
    bool stored = info->compression_method == 0;
    if (info->compressed_size > archive->unclaimed ||
        (stored && info->compressed_size != info->uncompressed_size) ||
        info->uncompressed_size / MAX_EXPANSION > info->compressed_size) {
        return damaged(archive, *name, "its sizes are impossible");
    }
    archive->unclaimed -= info->compressed_size;
    return FERRY_OK;
}

/* The header of the open member; `*length` is where the elements start. */
static ferry_status read_header(Archive *archive, const char *name, uint64_t size,
                                NpyHeader *header, uint64_t *length) {
    unsigned char prefix[NPY_PREFIX];
    size_t offset, text_length;
    size_t prefix_size = size < sizeof prefix ? (size_t)size : sizeof prefix;
    TRY(read_exactly(archive, name, prefix, prefix_size));
    TRY(npy_read_prefix(archive->path, name, prefix, prefix_size, &offset, &text_length,
                        archive->error));
    size_t have = sizeof prefix - offset;
    if (text_length < have || offset + text_length > size) {
        return damaged(archive, name, "the header is longer than the member, or empty");
    }
    char *text = arena_alloc(archive->scratch, text_length);
    if (!text) return error_memory(archive->error, archive->path, text_length);
    memcpy(text, prefix + offset, have);
    TRY(read_exactly(archive, name, text + have, text_length - have));
    *length = offset + text_length;
    return npy_read_header(archive->path, name, text, text_length, header, archive->error);
}

/* The elements of the open member. */
static ferry_status read_elements(Archive *archive, const char *name, const NpyHeader *header,
                                  ferry_tensor *tensor) {
    void *target = tensor->data;
    bool turn = header->fortran_order && header->rank > 1;
    if (turn) target = arena_alloc(archive->scratch, header->bytes);
    if (!target) return error_memory(archive->error, archive->path, header->bytes);
    TRY(read_exactly(archive, name, target, header->bytes));
    if (turn) npy_copy_fortran(header, target, tensor->data);
    return FERRY_OK;
}

static ferry_status read_open_member(Archive *archive, const char *name, uint64_t size) {
    NpyHeader header;
    uint64_t start;
    ferry_tensor *tensor;
    TRY(read_header(archive, name, size, &header, &start));
    if (header.bytes != size - start) {
        return error_set(archive->error, FERRY_BAD_FORMAT, archive->path,
                         "member \"%s\": its shape and dtype need %" PRIu64
                         " bytes, the archive has %" PRIu64,
                         name, header.bytes, size - start);
    }
    size_t length = strlen(name);
    bool suffix = length >= 4 && strcmp(name + length - 4, ".npy") == 0;
    const char *key = arena_string_n(archive->scratch, name, suffix ? length - 4 : length);
    if (ferry_tensors_find(archive->tensors, key)) {
        return damaged(archive, name, "there are two arrays of this name");
    }
    TRY(ferry_tensors_add(archive->tensors, key, header.dtype, header.rank, header.shape, &tensor,
                          archive->error));
    return read_elements(archive, name, &header, tensor);
}

static ferry_status read_member(Archive *archive) {
    unz_file_info64 info;
    char *name;
    TRY(read_entry(archive, &info, &name));
    if (unzOpenCurrentFile(archive->zip) != UNZ_OK) {
        return damaged(archive, name, "its local header is damaged");
    }
    ferry_status status = read_open_member(archive, name, info.uncompressed_size);
    if (unzCloseCurrentFile(archive->zip) != UNZ_OK && status == FERRY_OK) {
        status = damaged(archive, name, "its checksum is wrong");
    }
    return status;
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

ferry_status npz_read(const char *path, const unsigned char *bytes, size_t size,
                      ferry_tensors *tensors, ferry_error *error) {
    Stream stream = {.bytes = bytes, .size = size};
    zlib_filefunc64_def functions = stream_functions(&stream);
    unz_global_info64 info;
    const unsigned char *end = find_end(bytes, size);
    if (end == bytes && end[8] == 0 && end[9] == 0) return FERRY_OK; /* no members */
    Archive archive = {.path = path,
                       .zip = end ? unzOpen2_64(path, &functions) : NULL,
                       .unclaimed = size,
                       .tensors = tensors,
                       .error = error};
    if (!archive.zip || unzGetGlobalInfo64(archive.zip, &info) != UNZ_OK) {
        if (archive.zip) unzClose(archive.zip);
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "expected an .npz file, found a zip archive without a readable directory: "
                         "it is truncated or damaged");
    }
    ferry_status status = FERRY_OK;
    for (uint64_t i = 0; i < info.number_entry && status == FERRY_OK; i++) {
        Arena scratch = {0};
        archive.scratch = &scratch;
        if ((i ? unzGoToNextFile(archive.zip) : unzGoToFirstFile(archive.zip)) != UNZ_OK) {
            status = damaged(&archive, "?", "its entry in the directory is damaged");
        } else {
            status = read_member(&archive);
        }
        arena_free(&scratch);
    }
    unzClose(archive.zip);
    return status;
}

/* ---- writing ---- */

/* What a step of minizip came to: the stream's failure, its own, or success. */
static ferry_status step(const Stream *stream, int code) {
    if (stream->status != FERRY_OK || code == ZIP_OK) return stream->status;
    return error_set(stream->error, FERRY_IO, stream->file->path, "cannot write the archive");
}

static ferry_status write_bytes(zipFile zip, const Stream *stream, const void *bytes, size_t size) {
    const unsigned char *next = bytes;
    while (size > 0) {
        unsigned length = size < 1u << 30 ? (unsigned)size : 1u << 30;
        TRY(step(stream, zipWriteInFileInZip(zip, next, length)));
        next += length;
        size -= length;
    }
    return FERRY_OK;
}

static ferry_status write_named_member(zipFile zip, const Stream *stream, const char *name,
                                       const Buffer *header, const ferry_tensor *tensor) {
    enum { DATE = 0x210000 /* 1980-01-01 */, VERSION = 20, UTF8_NAME = 0x800 };
    const zip_fileinfo info = {.dosDate = DATE};
    size_t bytes = ferry_tensor_bytes(tensor);
    int large = bytes > UINT32_MAX - (1u << 20);
    TRY(step(stream,
             zipOpenNewFileInZip4_64(zip, name, &info, NULL, 0, NULL, 0, NULL, 0, 0, 0, -MAX_WBITS,
                                     8, Z_DEFAULT_STRATEGY, NULL, 0, VERSION, UTF8_NAME, large)));
    TRY(write_bytes(zip, stream, header->bytes, header->length));
    TRY(write_bytes(zip, stream, tensor->data, bytes));
    return step(stream, zipCloseFileInZip(zip));
}

static ferry_status write_member(zipFile zip, const Stream *stream, const ferry_tensor *tensor) {
    Buffer header = {0}, name = {0};
    buffer_format(&name, "%s.npy", tensor->name);
    ferry_status status = npy_write_header(&header, tensor, stream->error);
    if (status == FERRY_OK && name.failed) status = error_memory(stream->error, tensor->name, 0);
    if (status == FERRY_OK && name.length > UINT16_MAX) {
        status = error_set(stream->error, FERRY_INVALID_ARGUMENT, stream->file->path,
                           "a tensor's name has %zu bytes, a zip archive takes %d", name.length,
                           UINT16_MAX);
    }
    if (status == FERRY_OK) {
        status = write_named_member(zip, stream, buffer_string(&name), &header, tensor);
    }
    buffer_free(&header);
    buffer_free(&name);
    return status;
}

ferry_status npz_write(const char *path, const ferry_tensors *tensors, ferry_error *error) {
    OutputFile file;
    TRY(output_open(&file, path, 0, error));
    Stream stream = {.file = &file, .error = error};
    zlib_filefunc64_def functions = stream_functions(&stream);
    zipFile zip = zipOpen2_64(path, APPEND_STATUS_CREATE, NULL, &functions);
    ferry_status status = zip ? FERRY_OK : error_memory(error, path, 0);
    for (size_t i = 0; i < ferry_tensors_count(tensors) && status == FERRY_OK; i++) {
        status = write_member(zip, &stream, ferry_tensors_at(tensors, i));
    }
    int closed = zip ? zipClose(zip, NULL) : ZIP_OK;
    if (status == FERRY_OK) status = step(&stream, closed);
    if (status == FERRY_OK) return output_commit(&file, error);
    output_discard(&file);
    return status;
}
