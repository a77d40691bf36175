/* The zip container is the work of format/zip for reading, and of minizip on an OutputFile for writing,
 * so that both ends share the checks and guarantees of the rest. */
#include "format/npz.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "format/npy.h"
#include "format/zip.h"

#include <inttypes.h>
#include <minizip/zip.h>
#include <string.h>

/* ---- reading ---- */

/* The header of an entry, from its first bytes alone; `*start` is where the elements are. */
static ferry_status read_header(const Zip *zip, const ZipEntry *entry, Arena *scratch,
                                NpyHeader *header, uint64_t *start, ferry_error *error) {
    unsigned char prefix[NPY_PREFIX];
    size_t offset, length;
    size_t have = entry->size < sizeof prefix ? (size_t)entry->size : sizeof prefix;
    TRY(zip_peek(zip, entry, have, prefix, error));
    TRY(npy_read_prefix(zip->path, entry->name, prefix, have, &offset, &length, error));
    *start = offset + length;
    if (*start > entry->size) {
        return error_set(error, FERRY_BAD_FORMAT, zip->path,
                         "member \"%s\": the header is longer than the member", entry->name);
    }
    unsigned char *bytes = arena_alloc(scratch, *start);
    if (!bytes) return error_memory(error, zip->path, *start);
    TRY(zip_peek(zip, entry, *start, bytes, error));
    return npy_read_header(zip->path, entry->name, (const char *)bytes + offset, length, header,
                           error);
}

/* The name of an array: that of its member without ".npy". */
static const char *array_name(Arena *scratch, const char *member) {
    size_t length = strlen(member);
    bool suffix = length >= 4 && strcmp(member + length - 4, ".npy") == 0;
    return arena_string_n(scratch, member, suffix ? length - 4 : length);
}

static ferry_status read_member(const Zip *zip, const ZipEntry *entry, Arena *scratch,
                                ferry_tensors *tensors, ferry_error *error) {
    NpyHeader header;
    uint64_t start;
    ferry_tensor *tensor;
    const unsigned char *bytes;
    TRY(read_header(zip, entry, scratch, &header, &start, error));
    if (header.bytes != entry->size - start) {
        return error_set(error, FERRY_BAD_FORMAT, zip->path,
                         "member \"%s\": its shape and dtype need %" PRIu64
                         " bytes, the archive has %" PRIu64,
                         entry->name, header.bytes, entry->size - start);
    }
    const char *name = array_name(scratch, entry->name);
    if (ferry_tensors_find(tensors, name)) {
        return error_set(error, FERRY_BAD_FORMAT, zip->path,
                         "member \"%s\": there are two arrays of this name", entry->name);
    }
    TRY(zip_check(zip, entry, error));
    TRY(zip_bytes(zip, entry, scratch, &bytes, error));
    TRY(ferry_tensors_add(tensors, name, header.dtype, header.rank, header.shape, &tensor, error));
    if (header.fortran_order)
        npy_copy_fortran(&header, bytes + start, tensor->data);
    else if (header.bytes)
        memcpy(tensor->data, bytes + start, header.bytes);
    return FERRY_OK;
}

ferry_status npz_read(const char *path, const unsigned char *bytes, size_t size,
                      ferry_tensors *tensors, ferry_error *error) {
    Arena arena = {0};
    Zip zip;
    ferry_status status = zip_read(path, bytes, size, &arena, &zip, error);
    for (size_t i = 0; status == FERRY_OK && i < zip.count; i++) {
        Arena scratch = {0};
        status = read_member(&zip, &zip.entries[i], &scratch, tensors, error);
        arena_free(&scratch);
    }
    zip_free(&zip);
    arena_free(&arena);
    return status;
}

/* ---- writing, on minizip's view of an OutputFile ---- */

typedef struct Stream {
    OutputFile *file;
    uint64_t size, position;
    ferry_status status; /* of the first write that failed */
    ferry_error *error;
} Stream;

static voidpf stream_open(voidpf opaque, const void *name, int mode) {
    (void)name, (void)mode;
    return opaque;
}

static uLong stream_read(voidpf opaque, voidpf handle, void *buffer, uLong size) {
    (void)opaque, (void)handle, (void)buffer, (void)size;
    return 0;
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
    if (status == FERRY_OK && !path_is_contained(buffer_string(&name))) {
        status = error_set(stream->error, FERRY_INVALID_ARGUMENT, stream->file->path,
                           "the tensor name \"%s\" is no path inside an archive", tensor->name);
    }
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
