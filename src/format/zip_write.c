#include "format/zip_write.h"
#include "base/error.h"

#include <minizip/zip.h>
#include <stdlib.h>
#include <string.h>

struct ZipWriter {
    OutputFile *file;
    zipFile zip;
    uint64_t size, position;
    ferry_status status; /* of the first write that failed */
    ferry_error error;
};

/* ---- minizip's view of the file ---- */

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
    ZipWriter *writer = opaque;
    (void)handle;
    if (writer->status == FERRY_OK) {
        writer->status = output_write(writer->file, writer->position, buffer, size, &writer->error);
    }
    writer->position += size;
    if (writer->position > writer->size) writer->size = writer->position;
    return size;
}

static ZPOS64_T stream_tell(voidpf opaque, voidpf handle) {
    (void)handle;
    return ((ZipWriter *)opaque)->position;
}

static long stream_seek(voidpf opaque, voidpf handle, ZPOS64_T offset, int origin) {
    ZipWriter *writer = opaque;
    (void)handle;
    uint64_t base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? writer->position
                    : origin == ZLIB_FILEFUNC_SEEK_END ? writer->size
                                                       : 0;
    writer->position = base + offset;
    return 0;
}

static int stream_nothing(voidpf opaque, voidpf handle) {
    (void)opaque, (void)handle;
    return 0;
}

ZipWriter *zip_writer_new(OutputFile *file) {
    ZipWriter *writer = calloc(1, sizeof *writer);
    if (!writer) return NULL;
    writer->file = file;
    zlib_filefunc64_def functions = {.zopen64_file = stream_open,
                                     .zread_file = stream_read,
                                     .zwrite_file = stream_write,
                                     .ztell64_file = stream_tell,
                                     .zseek64_file = stream_seek,
                                     .zclose_file = stream_nothing,
                                     .zerror_file = stream_nothing,
                                     .opaque = writer};
    writer->zip = zipOpen2_64("archive", APPEND_STATUS_CREATE, NULL, &functions);
    if (writer->zip) return writer;
    free(writer);
    return NULL;
}

void zip_writer_free(ZipWriter *writer) {
    if (!writer) return;
    if (writer->zip) zipClose(writer->zip, NULL);
    free(writer);
}

/* What a step of minizip came to: the stream's failure, its own, or success. */
static ferry_status step(ZipWriter *writer, int code, ferry_error *error) {
    if (writer->status != FERRY_OK) {
        if (error) *error = writer->error;
        return writer->status;
    }
    return code == ZIP_OK ? FERRY_OK : error_memory(error, "zip archive", 0);
}

enum {
    LOCAL_HEADER = 30,
    EXTRA_HEADER = 4,
    EXTRA_ZIP64 = 20,
    MAX_ALIGNMENT = 4096,
    UTF8_NAMES = 1 << 11,
    DATE_1980_01_01 = 1 << 21 | 1 << 16,
};

ferry_status zip_writer_open(ZipWriter *writer, const char *name, uint64_t size, uint32_t alignment,
                             ferry_error *error) {
    /* The padding is an extra field of the kind that torch writes: 'F' 'B', its length, bytes 'Z'. */
    unsigned char extra[EXTRA_HEADER + MAX_ALIGNMENT];
    const zip_fileinfo info = {.dosDate = DATE_1980_01_01};
    bool large = size >= UINT32_MAX;
    uint64_t start =
        writer->size + LOCAL_HEADER + strlen(name) + EXTRA_HEADER + (large ? EXTRA_ZIP64 : 0);
    uint64_t padding = alignment > 1 ? (alignment - start % alignment) % alignment : 0;
    unsigned length = alignment > 1 ? (unsigned)(EXTRA_HEADER + padding) : 0;
    memset(extra, 'Z', sizeof extra);
    extra[0] = 'F';
    extra[1] = 'B';
    extra[2] = (unsigned char)padding;
    extra[3] = (unsigned char)(padding >> 8);
    int code = zipOpenNewFileInZip4_64(writer->zip, name, &info, length ? extra : NULL, length,
                                       NULL, 0, NULL, 0, 0, 0, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY,
                                       NULL, 0, 0, UTF8_NAMES, large);
    return step(writer, code, error);
}

ferry_status zip_writer_append(ZipWriter *writer, const void *bytes, size_t size,
                               ferry_error *error) {
    const unsigned char *next = bytes;
    while (size > 0) {
        unsigned length = size < 1u << 30 ? (unsigned)size : 1u << 30;
        TRY(step(writer, zipWriteInFileInZip(writer->zip, next, length), error));
        next += length;
        size -= length;
    }
    return FERRY_OK;
}

ferry_status zip_writer_close(ZipWriter *writer, ferry_error *error) {
    return step(writer, zipCloseFileInZip(writer->zip), error);
}

ferry_status zip_writer_add(ZipWriter *writer, const char *name, const void *bytes, size_t size,
                            ferry_error *error) {
    TRY(zip_writer_open(writer, name, size, 1, error));
    TRY(zip_writer_append(writer, bytes, size, error));
    return zip_writer_close(writer, error);
}

ferry_status zip_writer_finish(ZipWriter *writer, ferry_error *error) {
    int code = zipClose(writer->zip, NULL);
    writer->zip = NULL;
    return step(writer, code, error);
}
