/* Weights: windows into the records of the archive. Parameters and persistent buffers are in one folder, other
 * buffers and constants in another. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <inttypes.h>

/* Weights compress little. What expands further is made to fill the memory. */
enum { MAX_INFLATED = 64 << 20, MAX_RATIO = 64 };

/* The record behind a weight: its bytes, and the file they are mapped from (NULL: inflated). */
static bool find_record(Reader *r, const char *folder, const Doc *payload, const char *fqn,
                        const unsigned char **bytes, uint64_t *size, const MappedFile **file) {
    Pt2 *pt2 = r->pt2;
    ferry_error problem;
    const char *path = doc_text(doc_get(payload, "path_name"));
    if (doc_bool(doc_get(payload, "use_pickle"))) {
        reader_fail(r, FERRY_UNSUPPORTED,
                    "the weight \"%s\" is kept as a pickle, which ferry never reads", fqn);
        return false;
    }
    const char *full =
        path ? arena_format(&pt2->arena, "%s/data/%s/%s", pt2->root, folder, path) : "";
    const ZipEntry *entry = zip_find(&pt2->zip, full);
    if (!entry) {
        reader_fail(r, FERRY_BAD_FORMAT, "the archive has no record for the weight \"%s\"", fqn);
        return false;
    }
    if (entry->deflated && entry->size > MAX_INFLATED && entry->size / MAX_RATIO > entry->packed) {
        reader_fail(r, FERRY_UNSUPPORTED,
                    "the weight \"%s\" expands from %" PRIu64 " to %" PRIu64
                    " bytes: save the program without compression",
                    fqn, entry->packed, entry->size);
        return false;
    }
    if (zip_bytes(&pt2->zip, entry, &pt2->arena, bytes, &problem) != FERRY_OK) {
        reader_fail(r, problem.status, "the weight \"%s\": %s", fqn, problem.message);
        return false;
    }
    *size = entry->size;
    *file = entry->deflated ? NULL : &pt2->file;
    return true;
}

/* Check that every element of a strided tensor lies in the record, and turn its sizes into numbers. */
static bool check_window(const TensorMeta *meta, uint64_t record, int64_t *shape, int64_t *strides,
                         uint64_t *offset) {
    uint64_t last, element = ferry_dtype_size(meta->dtype), count = 1;
    if (!sym_is_const(meta->offset) || meta->offset->value < 0) return false;
    last = (uint64_t)meta->offset->value;
    for (uint32_t d = 0; d < meta->rank; d++) {
        uint64_t extent;
        if (!sym_is_const(meta->sizes[d]) || !sym_is_const(meta->strides[d])) return false;
        shape[d] = meta->sizes[d]->value;
        strides[d] = meta->strides[d]->value;
        if (shape[d] < 0 || strides[d] < 0) return false;
        if (__builtin_mul_overflow(count, (uint64_t)shape[d], &count) || count > INT64_MAX)
            return false;
        if (shape[d] == 0) continue;
        if (__builtin_mul_overflow((uint64_t)shape[d] - 1, (uint64_t)strides[d], &extent))
            return false;
        if (__builtin_add_overflow(last, extent, &last)) return false;
    }
    *offset = (uint64_t)meta->offset->value * element;
    if (count == 0) return *offset <= record;
    return last < record / element;
}

Value *reader_weight(Reader *r, const char *fqn, ValueKind kind) {
    bool constants = kind == VALUE_BUFFER || kind == VALUE_CONSTANT;
    const char *folder = constants ? "constants" : "weights";
    const Doc *config = constants ? r->pt2->constants : r->pt2->weights;
    const Doc *payload = doc_get(config, fqn);
    const unsigned char *bytes;
    const MappedFile *file;
    uint64_t size, offset = 0;
    int64_t shape[FERRY_MAX_RANK], strides[FERRY_MAX_RANK];
    TensorMeta meta;
    ferry_error problem;
    Program *program = r->b.program;
    if (!payload) return reader_fail(r, FERRY_BAD_FORMAT, "the archive has no weight \"%s\"", fqn);
    if (schema_tensor(&program->symbols, doc_get(payload, "tensor_meta"), fqn, &meta, &problem)) {
        return reader_fail(r, problem.status, "the weight \"%s\": %s", fqn, problem.message);
    }
    if (!meta.dtype)
        return reader_fail(r, FERRY_UNSUPPORTED, "the weight \"%s\" has an unsupported dtype", fqn);
    if (!find_record(r, folder, payload, fqn, &bytes, &size, &file)) return &r->b.poison;
    if (!check_window(&meta, size, shape, strides, &offset)) {
        return reader_fail(r, FERRY_BAD_FORMAT,
                           "the weight \"%s\" reaches outside its record of %" PRIu64 " bytes", fqn,
                           size);
    }
    const Recipe *recipe =
        recipe_window(&program->arena, file, bytes + offset, meta.dtype, meta.rank, shape, strides);
    Value *value = program_weight(program, kind, fqn, recipe);
    return value ? value : build_fail(&r->b, FERRY_OUT_OF_MEMORY, "out of memory");
}
