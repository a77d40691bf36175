/* The zip container is the work of format/zip and format/zip_write. */
#include "format/npz.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/file.h"
#include "format/npy.h"
#include "format/zip.h"
#include "format/zip_write.h"

#include <inttypes.h>
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

/* ---- writing ---- */

/* The name of a tensor's member, checked. */
static ferry_status member_name(const char *path, const ferry_tensor *tensor, Buffer *name,
                                ferry_error *error) {
    buffer_format(name, "%s.npy", tensor->name);
    if (name->failed) return error_memory(error, tensor->name, 0);
    if (!path_is_contained(buffer_string(name))) {
        return error_set(error, FERRY_INVALID_ARGUMENT, path,
                         "the tensor name \"%s\" is no path inside an archive", tensor->name);
    }
    if (name->length > UINT16_MAX) {
        return error_set(error, FERRY_INVALID_ARGUMENT, path,
                         "a tensor's name has %zu bytes, a zip archive takes %d", name->length,
                         UINT16_MAX);
    }
    return FERRY_OK;
}

static ferry_status write_array(ZipWriter *zip, const char *name, const Buffer *header,
                                const ferry_tensor *tensor, ferry_error *error) {
    size_t bytes = ferry_tensor_bytes(tensor);
    TRY(zip_writer_open(zip, name, header->length + bytes, 1, error));
    TRY(zip_writer_append(zip, header->bytes, header->length, error));
    TRY(zip_writer_append(zip, tensor->data, bytes, error));
    return zip_writer_close(zip, error);
}

static ferry_status write_member(ZipWriter *zip, const char *path, const ferry_tensor *tensor,
                                 ferry_error *error) {
    Buffer header = {0}, name = {0};
    ferry_status status = npy_write_header(&header, tensor, error);
    if (status == FERRY_OK) status = member_name(path, tensor, &name, error);
    if (status == FERRY_OK) status = write_array(zip, buffer_string(&name), &header, tensor, error);
    buffer_free(&header);
    buffer_free(&name);
    return status;
}

ferry_status npz_write(const char *path, const ferry_tensors *tensors, ferry_error *error) {
    OutputFile file;
    TRY(output_open(&file, path, 0, error));
    ZipWriter *zip = zip_writer_new(&file);
    ferry_status status = zip ? FERRY_OK : error_memory(error, path, 0);
    for (size_t i = 0; i < ferry_tensors_count(tensors) && status == FERRY_OK; i++) {
        status = write_member(zip, path, ferry_tensors_at(tensors, i), error);
    }
    if (status == FERRY_OK) status = zip_writer_finish(zip, error);
    zip_writer_free(zip);
    if (status == FERRY_OK) return output_commit(&file, error);
    output_discard(&file);
    return status;
}
