/* The safetensors reader on hand-made headers, good and bad, and the writer. */
#include "check.h"
#include "base/buffer.h"
#include "format/safetensors.h"

/* ---- headers ---- */

/* A file of a header, spelled out, and `data` zero bytes. */
static Buffer make_file(const char *header, size_t data) {
    Buffer file = {0};
    unsigned char prefix[8] = {0};
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(length >> 8 * i);
    buffer_append(&file, prefix, 8);
    buffer_text(&file, header);
    for (size_t i = 0; i < data; i++) buffer_append(&file, "", 1);
    return file;
}

static ferry_status parse(const char *header, size_t data, ferry_error *error) {
    Arena arena = {0};
    SafeTensors parsed;
    Buffer file = make_file(header, data);
    error_clear(error);
    ferry_status status =
        safetensors_parse("test", file.bytes, file.length, &arena, &parsed, error);
    if (status == FERRY_OK) map_free(&parsed.by_name);
    buffer_free(&file);
    arena_free(&arena);
    return status;
}

#define ONE(fields) "{\"a\":{" fields "}}"
#define TWO(first, second)                                                                         \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first "},"                          \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

static const struct {
    const char *what, *header;
    size_t data;
    ferry_status status;
    const char *message;
} bad[] = {
    {"a header that is no JSON", "{", 0, FERRY_BAD_FORMAT, "not valid JSON"},
    {"a header that is a list", "[]", 0, FERRY_BAD_FORMAT, "expected the header to be an object"},
    {"a header that is a number", "7", 0, FERRY_BAD_FORMAT, "expected the header to be an object"},
    {"an empty header", "", 0, FERRY_BAD_FORMAT, "not valid JSON"},
    {"text after the header's object", "{} {}", 0, FERRY_BAD_FORMAT, "not valid JSON"},
    {"a name twice", "{\"a\":{},\"a\":{}}", 0, FERRY_BAD_FORMAT, "duplicate object key"},
    {"an entry that is a number", "{\"a\":1}", 0, FERRY_BAD_FORMAT, "\"a\": expected an object"},
    {"an entry that is a list", "{\"a\":[]}", 0, FERRY_BAD_FORMAT, "\"a\": expected an object"},
    {"an entry that is null", "{\"a\":null}", 0, FERRY_BAD_FORMAT, "\"a\": expected an object"},
    {"no dtype", ONE("\"shape\":[1],\"data_offsets\":[0,1]"), 1, FERRY_BAD_FORMAT, "\"dtype\""},
    {"a dtype that is a number", ONE("\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]"), 1,
     FERRY_BAD_FORMAT, "\"dtype\""},
    {"an unknown dtype", ONE("\"dtype\":\"U16\",\"shape\":[1],\"data_offsets\":[0,2]"), 2,
     FERRY_UNSUPPORTED, "dtype \"U16\" is not supported"},
    {"no shape", ONE("\"dtype\":\"U8\",\"data_offsets\":[0,1]"), 1, FERRY_BAD_FORMAT,
     "\"shape\" to be an array, found nothing"},
    {"a shape that is a string", ONE("\"dtype\":\"U8\",\"shape\":\"1\",\"data_offsets\":[0,1]"), 1,
     FERRY_BAD_FORMAT, "\"shape\" to be an array, found a string"},
    {"a size with a fraction", ONE("\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]"), 1,
     FERRY_BAD_FORMAT, "non-negative integers"},
    {"a negative size", ONE("\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,1]"), 1,
     FERRY_BAD_FORMAT, "non-negative integers"},
    {"a size of 2^63",
     ONE("\"dtype\":\"U8\",\"shape\":[9223372036854775808],\"data_offsets\":[0,1]"), 1,
     FERRY_BAD_FORMAT, "too big integer"},
    {"a product above 63 bits",
     ONE("\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0,
     FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {"a product above 63 bits beside a zero",
     ONE("\"dtype\":\"U8\",\"shape\":[0,4294967296,4294967296],\"data_offsets\":[0,0]"), 0,
     FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {"bytes above 63 bits",
     ONE("\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]"), 0,
     FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {"nine dimensions",
     ONE("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]"), 1,
     FERRY_UNSUPPORTED, "at most 8 dimensions, found 9"},
    {"no offsets", ONE("\"dtype\":\"U8\",\"shape\":[1]"), 1, FERRY_BAD_FORMAT, "data_offsets"},
    {"one offset", ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]"), 1, FERRY_BAD_FORMAT,
     "data_offsets"},
    {"three offsets", ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]"), 1,
     FERRY_BAD_FORMAT, "data_offsets"},
    {"offsets that are strings",
     ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[\"0\",\"1\"]"), 1, FERRY_BAD_FORMAT,
     "data_offsets"},
    {"reversed offsets", ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,0]"), 1,
     FERRY_BAD_FORMAT, "0 <= begin <= end"},
    {"a negative offset", ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]"), 1,
     FERRY_BAD_FORMAT, "0 <= begin <= end"},
    {"more bytes than the shape needs",
     ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,2]"), 2, FERRY_BAD_FORMAT,
     "need 1 bytes, data_offsets give 2"},
    {"data past the end of the file", ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]"),
     3, FERRY_BAD_FORMAT, "the file is truncated"},
    {"offsets far past the end",
     ONE("\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[9223372036854775806,"
         "9223372036854775807]"),
     1, FERRY_BAD_FORMAT, "the file is truncated"},
    {"tensors that overlap", TWO("[0,4]", "[2,6]"), 6, FERRY_BAD_FORMAT, "tensors overlap"},
    {"two tensors in one place", TWO("[0,4]", "[0,4]"), 4, FERRY_BAD_FORMAT, "tensors overlap"},
    {"a gap between tensors", TWO("[0,4]", "[5,9]"), 9, FERRY_BAD_FORMAT, "tensors leave a gap"},
    {"a gap before the first tensor", TWO("[1,5]", "[5,9]"), 9, FERRY_BAD_FORMAT, "leave a gap"},
    {"bytes after the last tensor", TWO("[0,4]", "[4,8]"), 9, FERRY_BAD_FORMAT,
     "the tensors end at byte"},
    {"bytes without any tensor", "{}", 1, FERRY_BAD_FORMAT, "the tensors end at byte"},
};

static void a_bad_header_is_refused_and_the_reason_is_said(void **state) {
    (void)state;
    ferry_error error;
    for (size_t i = 0; i < COUNT(bad); i++) {
        ferry_status status = parse(bad[i].header, bad[i].data, &error);
        if (status != bad[i].status || !strstr(error.message, bad[i].message)) {
            fail_msg("%s: %s: %s", bad[i].what, ferry_status_name(status), error.message);
        }
        assert_string_equal(error.where, "test");
    }
}

static void a_good_header_is_accepted(void **state) {
    (void)state;
    static const struct {
        const char *what, *header;
        size_t data;
    } good[] = {
        {"no tensors", "{}", 0},
        {"spaces after the header", "{}     ", 0},
        {"metadata alone", "{\"__metadata__\":{\"format\":\"pt\"}}", 0},
        {"a scalar", ONE("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]"), 4},
        {"no elements", ONE("\"dtype\":\"F32\",\"shape\":[2,0],\"data_offsets\":[0,0]"), 0},
        {"an order of its own", TWO("[4,8]", "[0,4]"), 8},
        {"a field of another day",
         ONE("\"x\":1,\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]"), 1},
        {"eight dimensions",
         ONE("\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,2],\"data_offsets\":[0,2]"), 2},
    };
    ferry_error error;
    for (size_t i = 0; i < COUNT(good); i++) {
        if (parse(good[i].header, good[i].data, &error) != FERRY_OK) {
            fail_msg("%s: %s", good[i].what, error.message);
        }
    }
}

static void deep_nesting_is_refused(void **state) {
    (void)state;
    ferry_error error;
    Buffer header = {0};
    buffer_text(&header, "{\"a\":");
    for (int i = 0; i < 100000; i++) buffer_text(&header, "[");
    assert_fails(parse(buffer_string(&header), 0, &error), FERRY_BAD_FORMAT, &error,
                 "maximum parsing depth");
    buffer_free(&header);
}

static void a_file_shorter_than_its_header_is_refused(void **state) {
    (void)state;
    Arena arena = {0};
    SafeTensors parsed;
    ferry_error error;
    Buffer file = make_file(ONE("\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]"), 4);
    for (size_t length = 0; length < file.length; length++) {
        unsigned char *bytes = malloc(length + 1); /* exactly that long, for the sanitizer */
        memcpy(bytes, file.bytes, length);
        assert_int_equal(safetensors_parse("test", bytes, length, &arena, &parsed, &error),
                         FERRY_BAD_FORMAT);
        free(bytes);
    }
    static const unsigned char lengths[][8] = {
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {0, 0, 0, 0, 0, 0, 0, 0x80},
        {1, 0, 0, 0, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(lengths); i++) {
        assert_fails(safetensors_parse("test", lengths[i], 8, &arena, &parsed, &error),
                     FERRY_BAD_FORMAT, &error, "not a safetensors file, or truncated");
    }
    buffer_free(&file);
    arena_free(&arena);
}

static void tensors_are_listed_in_the_order_of_their_data(void **state) {
    (void)state;
    Arena arena = {0};
    SafeTensors parsed;
    ferry_error error;
    const char *header = TWO("[4,8]", "[0,4]");
    Buffer file = make_file(header, 8);
    assert_ok(safetensors_parse("test", file.bytes, file.length, &arena, &parsed, &error), &error);
    assert_int_equal(parsed.count, 2);
    assert_string_equal(parsed.items[0].name, "b");
    assert_int_equal(parsed.items[0].offset, 8 + strlen(header));
    assert_int_equal(parsed.items[1].size, 4);
    const SafeTensor *a = map_find(&parsed.by_name, "a");
    assert_ptr_equal(a, &parsed.items[1]);
    assert_int_equal(a->dtype, FERRY_U8);
    assert_int_equal(a->rank, 1);
    assert_null(map_find(&parsed.by_name, "c"));
    safetensors_close(&parsed);
    buffer_free(&file);
    arena_free(&arena);
}

/* ---- writing ---- */

static char directory[256], path[512];

static int make_scratch(void **state) {
    (void)state;
    scratch_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/tensors.safetensors", directory);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    scratch_remove(directory);
    return 0;
}

static void what_is_written_is_read_back(void **state) {
    (void)state;
    unsigned char bytes[24];
    for (int i = 0; i < 24; i++) bytes[i] = (unsigned char)(i * 11);
    ferry_tensor tensors[FERRY_DTYPE_COUNT + 1];
    size_t count = 0;
    for (int d = 1; d < FERRY_DTYPE_COUNT; d++) {
        tensors[count++] = (ferry_tensor){.name = ferry_dtype_name((ferry_dtype)d),
                                          .dtype = (ferry_dtype)d,
                                          .rank = 2,
                                          .shape = {1, 3},
                                          .data = bytes};
    }
    tensors[count++] =
        (ferry_tensor){.name = "sc\"al\\ar \xc3\xa9", .dtype = FERRY_F16, .data = bytes};
    tensors[count++] =
        (ferry_tensor){.name = "", .dtype = FERRY_F16, .rank = 1, .shape = {0}, .data = bytes};
    Arena arena = {0};
    SafeTensors file;
    ferry_error error;
    assert_ok(safetensors_write(path, tensors, count, &error), &error);
    assert_ok(safetensors_open(path, &arena, &file, &error), &error);
    assert_int_equal(file.count, count);
    for (size_t i = 0; i < count; i++) {
        const SafeTensor *found = map_find(&file.by_name, tensors[i].name);
        assert_non_null(found);
        assert_int_equal(found->dtype, tensors[i].dtype);
        assert_int_equal(found->rank, tensors[i].rank);
        assert_int_equal(found->size, ferry_tensor_bytes(&tensors[i]));
        assert_memory_equal(found->shape, tensors[i].shape, sizeof found->shape);
        assert_memory_equal(file.file.bytes + found->offset, bytes, found->size);
    }
    safetensors_close(&file);
    arena_free(&arena);
    unlink(path);
}

static void names_that_a_header_cannot_hold_are_refused(void **state) {
    (void)state;
    static const char *const names[][2] = {
        {"__metadata__", "is reserved by the format"},
        {"b\xff", "is not valid UTF-8"},
        {"a", "appears twice"},
    };
    ferry_error error;
    float zero = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        const ferry_tensor tensors[2] = {{.name = "a", .dtype = FERRY_F32, .data = &zero},
                                         {.name = names[i][0], .dtype = FERRY_F32, .data = &zero}};
        assert_fails(safetensors_write(path, tensors, 2, &error), FERRY_INVALID_ARGUMENT, &error,
                     names[i][1]);
    }
    assert_int_equal(scratch_count(directory), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_header_is_refused_and_the_reason_is_said),
        cmocka_unit_test(a_good_header_is_accepted),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(a_file_shorter_than_its_header_is_refused),
        cmocka_unit_test(tensors_are_listed_in_the_order_of_their_data),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(names_that_a_header_cannot_hold_are_refused),
    };
    return cmocka_run_group_tests_name("safetensors", tests, make_scratch, remove_scratch);
}
