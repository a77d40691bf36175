/* Checking a program as the runtime does when it loads one, and that it has every kernel: a file that passes
 * does not fail to load. */
#include "base/error.h"
#include "format/flatbuffer.h"
#include "target/executorch/executorch.h"
#include "target/executorch/kernels.h"

#include <inttypes.h>
#include <stdio.h>

enum { HEADER_SIZE = 32, MIN_SIZE = 64, MAX_RANK = 16 };

typedef struct Check {
    const char *path;
    FlatReader reader;
    FlatTable program, plan;
    FlatVector values, operators, delegates, segments, constants, initials;
    uint64_t base, size; /* of the segments */
    const char *problem;
} Check;

/* The first problem is the one that is told. */
static void require(Check *c, bool holds, const char *problem) {
    if (!holds && !c->problem) c->problem = problem;
}

static uint64_t header_number(const Check *c, size_t place, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)c->reader.bytes[place + i] << 8 * i;
    return value;
}

static void check_indices(Check *c, const FlatVector *list, uint32_t limit, bool optional) {
    for (uint32_t i = 0; i < list->count && !c->reader.failed; i++) {
        int64_t index =
            list->item_size == 4 ? (int32_t)flat_item(list, i) : (int64_t)flat_item(list, i);
        require(c, (index >= 0 && index < limit) || (optional && index == -1),
                "an index outside of the table of values");
    }
}

static void check_tensor(Check *c, const FlatTable *tensor) {
    FlatVector sizes = flat_get_vector(tensor, 2, 4), order = flat_get_vector(tensor, 3, 1);
    require(c, sizes.reader && order.reader && sizes.count == order.count,
            "a tensor whose sizes and order of dimensions do not fit together");
    require(c, sizes.count <= MAX_RANK, "a tensor with more than 16 dimensions");
    for (uint32_t i = 0; i < sizes.count && !c->reader.failed; i++) {
        require(c, (int32_t)flat_item(&sizes, i) >= 0, "a tensor with a negative size");
    }
    require(c, flat_get(tensor, 1, 4, 0) == 0, "a tensor with a storage offset");
    require(c, flat_get(tensor, 8, 1, 0) < 2, "a tensor without bounds");
    uint64_t constant = flat_get(tensor, 5, 4, 0);
    bool planned = flat_get_table(tensor, 6).reader != NULL;
    uint32_t limit = planned ? c->initials.count : c->constants.count;
    require(c, constant == 0 || constant < limit, "a constant that is not there");
}

static void check_value(Check *c, const FlatTable *value) {
    uint64_t kind = flat_get(value, 0, 1, 0);
    FlatTable content = flat_get_table(value, 1);
    require(c, kind >= 1 && kind <= 11 && content.reader, "a value without content");
    FlatVector list;
    switch (kind) {
    case 5: check_tensor(c, &content); break;
    case 6: require(c, flat_get_string(&content, 0) != NULL, "a string that is not there"); break;
    case 7:
        list = flat_get_vector(&content, 0, 8);
        check_indices(c, &list, c->values.count, false);
        break;
    case 10:
    case 11:
        list = flat_get_vector(&content, 0, 4);
        check_indices(c, &list, c->values.count, kind == 11);
        break;
    default: break;
    }
}

static void check_operator(Check *c, const FlatTable *operator) {
    const char *name = flat_get_string(operator, 0), *overload = flat_get_string(operator, 1);
    char kernel[128];
    require(c, name && overload, "an operator without a name");
    if (c->problem || c->reader.failed) return;
    snprintf(kernel, sizeof kernel, "%s%s%s", name, *overload ? "." : "", overload);
    require(c, kernel_exists(kernel), "a kernel that the runtime does not have");
}

static void check_instruction(Check *c, const FlatTable *instruction) {
    uint64_t kind = flat_get(instruction, 0, 1, 0);
    FlatTable call = flat_get_table(instruction, 1);
    FlatVector args = flat_get_vector(&call, 1, 4);
    require(c, kind == 1 || kind == 2, "an instruction that is no call");
    require(c, call.reader && args.reader, "an instruction without arguments");
    uint32_t callees = kind == 1 ? c->operators.count : c->delegates.count;
    require(c, flat_get(&call, 0, 4, 0) < callees, "a call of what is not there");
    check_indices(c, &args, c->values.count, false);
}

static void check_delegate(Check *c, const FlatTable *delegate) {
    FlatTable data = flat_get_table(delegate, 1);
    require(c, flat_get_string(delegate, 0) != NULL, "a delegate without a name");
    require(c, flat_get(&data, 0, 1, 0) == 1 && flat_get(&data, 1, 4, 0) < c->segments.count,
            "a delegate without a segment");
}

static void check_segment(Check *c, const FlatTable *segment) {
    uint64_t offset = flat_get(segment, 0, 8, 0), size = flat_get(segment, 1, 8, 0);
    require(c, offset <= c->size && size <= c->size - offset, "a segment outside of the file");
}

static void check_named(Check *c, const FlatTable *named) {
    require(c, flat_get_string(named, 0) != NULL, "named data without a name");
    require(c, flat_get(named, 1, 4, 0) < c->segments.count, "named data without a segment");
}

static void each(Check *c, const FlatVector *list, void (*check)(Check *, const FlatTable *)) {
    for (uint32_t i = 0; i < list->count && !c->problem && !c->reader.failed; i++) {
        FlatTable item = flat_item_table(list, i);
        check(c, &item);
    }
}

static void check_program(Check *c) {
    FlatVector plans = flat_get_vector(&c->program, 1, 4);
    FlatTable constants = flat_get_table(&c->program, 5);
    FlatVector named = flat_get_vector(&c->program, 7, 4);
    c->segments = flat_get_vector(&c->program, 4, 4);
    c->constants = flat_get_vector(&constants, 1, 8);
    FlatVector mutables = flat_get_vector(&c->program, 6, 4);
    FlatTable initials = flat_item_table(&mutables, 0);
    if (initials.reader) c->initials = flat_get_vector(&initials, 1, 8);
    require(c, plans.count == 1 && c->segments.reader && c->constants.reader,
            "a program without a plan, segments or constants");
    if (c->problem || c->reader.failed) return;
    c->plan = flat_item_table(&plans, 0);
    FlatVector chains = flat_get_vector(&c->plan, 5, 4);
    FlatVector inputs = flat_get_vector(&c->plan, 3, 4), outputs = flat_get_vector(&c->plan, 4, 4);
    c->values = flat_get_vector(&c->plan, 2, 4);
    c->operators = flat_get_vector(&c->plan, 6, 4);
    c->delegates = flat_get_vector(&c->plan, 7, 4);
    require(c, chains.count == 1 && flat_get_vector(&c->plan, 8, 8).reader,
            "a plan without instructions or memory");
    if (c->problem || c->reader.failed) return;
    FlatTable chain = flat_item_table(&chains, 0);
    FlatVector instructions = flat_get_vector(&chain, 2, 4);
    check_indices(c, &inputs, c->values.count, false);
    check_indices(c, &outputs, c->values.count, false);
    each(c, &c->values, check_value);
    each(c, &c->operators, check_operator);
    each(c, &c->delegates, check_delegate);
    each(c, &c->segments, check_segment);
    each(c, &instructions, check_instruction);
    each(c, &named, check_named);
}

ferry_status executorch_verify(const char *path, const unsigned char *bytes, size_t length,
                               uint64_t file_size, ferry_error *error) {
    Check c = {.path = path, .reader = {bytes, length, false}};
    bool headed = length >= MIN_SIZE && memcmp(bytes + 8, "eh00", 4) == 0 &&
                  header_number(&c, 12, 4) == HEADER_SIZE;
    if (!headed) {
        return error_set(error, FERRY_BAD_FORMAT, path,
                         "expected an ExecuTorch program with an extended header, found none");
    }
    uint64_t end = header_number(&c, 16, 8);
    c.base = header_number(&c, 24, 8);
    c.size = header_number(&c, 32, 8);
    if (end > length || c.base > file_size || c.size > file_size - c.base) {
        return error_set(
            error, FERRY_BAD_FORMAT, path,
            "the program or its segments end behind the file: it has %" PRIu64 " bytes", file_size);
    }
    c.reader.length = (size_t)end;
    c.program = flat_root(&c.reader, "ET12");
    if (!c.reader.failed) check_program(&c);
    if (c.reader.failed) {
        return error_set(error, FERRY_BAD_FORMAT, path, "the FlatBuffer of the program is damaged");
    }
    if (!c.problem) return FERRY_OK;
    return error_set(error, FERRY_BAD_FORMAT, path, "the program has %s", c.problem);
}
