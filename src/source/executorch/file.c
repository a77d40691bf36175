/* The parts of a .pte: a header, a FlatBuffer, and segments behind it. */
#include "base/error.h"
#include "source/executorch/executorch_read.h"
#include "source/executorch/reader.h"

#include <inttypes.h>

enum { HEAD_SIZE = 40, LEAST_HEADER = 24 };

static uint64_t number(const unsigned char *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static ferry_status bad(const PteFile *f, const char *what, ferry_error *error) {
    return error_set(error, FERRY_BAD_FORMAT, f->file->path, "not a valid ExecuTorch program: %s",
                     what);
}

/* The extended header says where the program ends and the segments begin. */
static ferry_status read_header(PteFile *f, ferry_error *error) {
    const unsigned char *bytes = f->file->bytes;
    if (f->file->size < HEAD_SIZE || memcmp(bytes + 4, "ET12", 4) != 0) {
        return bad(f, "expected the identifier ET12 at byte 4", error);
    }
    if (memcmp(bytes + 8, "eh00", 4) != 0) {
        return error_set(error, FERRY_UNSUPPORTED, f->file->path,
                         "the program has no extended header: its weights are not in segments");
    }
    uint64_t length = number(bytes + 12, 4), program = number(bytes + 16, 8);
    uint64_t base = number(bytes + 24, 8);
    if (length < LEAST_HEADER) return bad(f, "the extended header is too short", error);
    if (program > f->file->size || base > f->file->size || (base && base < program)) {
        return error_set(error, FERRY_BAD_FORMAT, f->file->path,
                         "the header speaks of a program of %" PRIu64
                         " bytes and of segments from %" PRIu64 " on; the file has %zu bytes",
                         program, base, f->file->size);
    }
    f->program = (FlatReader){.bytes = bytes, .length = program};
    f->base = base ? base : f->file->size;
    return FERRY_OK;
}

ferry_status pte_file(const MappedFile *file, PteFile *out, ferry_error *error) {
    PteFile *f = out;
    *f = (PteFile){.file = file};
    TRY(read_header(f, error));
    FlatTable root = flat_root(&f->program, "ET12");
    FlatVector plans = flat_get_vector(&root, 1, 4);
    FlatVector mutables = flat_get_vector(&root, 6, 4);
    FlatTable plan = flat_item_table(&plans, 0), initials = flat_item_table(&mutables, 0),
              constants = flat_get_table(&root, 5);
    FlatVector chains = flat_get_vector(&plan, 5, 4);
    FlatTable chain = flat_item_table(&chains, 0);
    f->values = flat_get_vector(&plan, 2, 4);
    f->inputs = flat_get_vector(&plan, 3, 4);
    f->outputs = flat_get_vector(&plan, 4, 4);
    f->instructions = flat_get_vector(&chain, 2, 4);
    f->operators = flat_get_vector(&plan, 6, 4);
    f->delegates = flat_get_vector(&plan, 7, 4);
    f->segments = flat_get_vector(&root, 4, 4);
    f->named = flat_get_vector(&root, 7, 4);
    f->constant_segment = (uint32_t)flat_get(&constants, 0, 4, 0);
    f->constants = flat_get_vector(&constants, 1, 8);
    if (initials.reader) {
        f->initial_segment = (uint32_t)flat_get(&initials, 0, 4, 0);
        f->initials = flat_get_vector(&initials, 1, 8);
    }
    if (f->program.failed) return bad(f, "an offset leads outside", error);
    if (!plan.reader || !chain.reader) return bad(f, "expected a method with instructions", error);
    if (plans.count == 1 && chains.count == 1) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, file->path,
                     "expected one method of one chain, found %u and %u", plans.count,
                     chains.count);
}

bool pte_segment(const PteFile *f, uint64_t index, uint64_t *offset, uint64_t *size) {
    FlatTable segment = flat_item_table(&f->segments, index);
    uint64_t start = flat_get(&segment, 0, 8, 0), room = f->file->size - f->base;
    *size = flat_get(&segment, 1, 8, 0);
    *offset = f->base + start;
    return segment.reader && start <= room && *size <= room - start;
}

ferry_status executorch_delegates(const char *path, size_t *count, ferry_error *error) {
    Arena arena = {0};
    MappedFile file;
    PteFile parts;
    ferry_status status = file_map(path, &arena, &file, error);
    *count = 0;
    if (status == FERRY_OK) {
        status = pte_file(&file, &parts, error);
        if (status == FERRY_OK) *count = parts.delegates.count;
        file_unmap(&file);
    }
    arena_free(&arena);
    return status;
}
