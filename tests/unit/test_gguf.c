/* The GGUF reader on hand-made files, good and bad. */
#include "check.h"
#include "base/buffer.h"
#include "format/gguf.h"

/* ---- writing ---- */

static void put(Buffer *file, uint64_t value, size_t size) {
    unsigned char bytes[8];
    for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(value >> 8 * i);
    buffer_append(file, bytes, size);
}

static void put_text(Buffer *file, const char *text) {
    put(file, strlen(text), 8);
    buffer_text(file, text);
}

static void begin(Buffer *file, uint32_t version, uint64_t tensors, uint64_t values) {
    buffer_text(file, "GGUF");
    put(file, version, 4);
    put(file, tensors, 8);
    put(file, values, 8);
}

static void put_key(Buffer *file, const char *key, GgufType type) {
    put_text(file, key);
    put(file, type, 4);
}

static void put_array(Buffer *file, const char *key, GgufType item, uint64_t count) {
    put_key(file, key, GGUF_ARRAY);
    put(file, item, 4);
    put(file, count, 8);
}

static void put_tensor(Buffer *file, const char *name, uint32_t type, uint64_t columns,
                       uint64_t rows, uint64_t offset) {
    put_text(file, name);
    put(file, 2, 4);
    put(file, columns, 8);
    put(file, rows, 8);
    put(file, type, 4);
    put(file, offset, 8);
}

static void pad(Buffer *file, size_t alignment, size_t data) {
    while (file->length % alignment) put(file, 0, 1);
    for (size_t i = 0; i < data; i++) put(file, 0, 1);
}

static ferry_status parse(const Buffer *file, Arena *arena, Gguf *gguf, ferry_error *error) {
    error_clear(error);
    return gguf_parse("test.gguf", file->bytes, file->length, arena, gguf, error);
}

/* ---- good files ---- */

static void values_of_all_types_are_read(void **state) {
    (void)state;
    static const GgufType integers[] = {GGUF_U8,  GGUF_I8,  GGUF_U16, GGUF_I16,
                                        GGUF_U32, GGUF_I32, GGUF_U64, GGUF_I64};
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8};
    Buffer file = {0};
    Arena arena = {0};
    Gguf gguf;
    ferry_error error;
    int64_t integer;
    double number;
    bool truth;
    begin(&file, 2, 0, 14);
    for (size_t i = 0; i < 8; i++) {
        char key[2] = {(char)('a' + i), 0};
        put_key(&file, key, integers[i]);
        put(&file, i % 2 ? (uint64_t)-3 : 100, sizes[i]);
    }
    put_key(&file, "single", GGUF_F32);
    put(&file, 0x3fa00000, 4);
    put_key(&file, "double", GGUF_F64);
    put(&file, 0xbff8000000000000, 8);
    put_key(&file, "truth", GGUF_BOOL);
    put(&file, 1, 1);
    put_key(&file, "text", GGUF_STRING);
    put_text(&file, "h\xc3\xa9");
    put_array(&file, "texts", GGUF_STRING, 3);
    put_text(&file, "one");
    put_text(&file, "");
    put_text(&file, "three");
    put_array(&file, "numbers", GGUF_I16, 2);
    put(&file, 7, 2);
    put(&file, 65535, 2);
    assert_ok(parse(&file, &arena, &gguf, &error), &error);
    for (size_t i = 0; i < 8; i++) {
        char key[2] = {(char)('a' + i), 0};
        assert_true(gguf_integer(gguf_value(&gguf, key), &integer));
        assert_int_equal(integer, i % 2 ? -3 : 100);
        assert_true(gguf_number(gguf_value(&gguf, key), &number));
        assert_false(gguf_bool(gguf_value(&gguf, key), &truth));
    }
    assert_true(gguf_number(gguf_value(&gguf, "single"), &number) && number == 1.25);
    assert_true(gguf_number(gguf_value(&gguf, "double"), &number) && number == -1.5);
    assert_false(gguf_integer(gguf_value(&gguf, "double"), &integer));
    assert_true(gguf_bool(gguf_value(&gguf, "truth"), &truth) && truth);
    assert_string_equal(gguf_text(gguf_value(&gguf, "text"), &arena), "h\xc3\xa9");
    assert_null(gguf_text(gguf_value(&gguf, "truth"), &arena));
    assert_null(gguf_value(&gguf, "nothing"));
    assert_false(gguf_integer(NULL, &integer));
    assert_string_equal(gguf_kind(gguf_value(&gguf, "texts")), "an array of strings");

    static const char *const texts[] = {"one", "", "three"};
    GgufItems items = {.array = gguf_value(&gguf, "texts")};
    GgufValue item;
    for (size_t i = 0; i < 3; i++) {
        assert_true(gguf_next(&items, &item));
        assert_string_equal(gguf_text(&item, &arena), texts[i]);
    }
    assert_false(gguf_next(&items, &item));
    items = (GgufItems){.array = gguf_value(&gguf, "numbers")};
    assert_true(gguf_next(&items, &item) && gguf_integer(&item, &integer) && integer == 7);
    assert_true(gguf_next(&items, &item) && gguf_integer(&item, &integer) && integer == -1);
    assert_false(gguf_next(&items, &item));
    items = (GgufItems){.array = gguf_value(&gguf, "truth")};
    assert_false(gguf_next(&items, &item));
    gguf_free(&gguf);
    buffer_free(&file);
    arena_free(&arena);
}

static void tensors_are_placed_at_the_alignment_of_the_file(void **state) {
    (void)state;
    Buffer file = {0};
    Arena arena = {0};
    Gguf gguf;
    ferry_error error;
    begin(&file, 3, 2, 1);
    put_key(&file, "general.alignment", GGUF_U32);
    put(&file, 64, 4);
    put_tensor(&file, "plain", 1, 3, 5, 0);
    put_tensor(&file, "blocks", 12, 256, 2, 64);
    size_t header = file.length;
    pad(&file, 64, 64 + 2 * 144);
    assert_ok(parse(&file, &arena, &gguf, &error), &error);
    const GgufTensor *plain = gguf_tensor(&gguf, "plain"), *blocks = gguf_tensor(&gguf, "blocks");
    assert_int_equal(plain->offset, (header + 63) / 64 * 64);
    assert_int_equal(plain->dtype, FERRY_F16);
    assert_int_equal(plain->size, 30);
    assert_int_equal(plain->rank, 2);
    assert_int_equal(plain->shape[0], 5);
    assert_int_equal(plain->shape[1], 3);
    assert_int_equal(blocks->offset, plain->offset + 64);
    assert_int_equal(blocks->dtype, FERRY_F32);
    assert_int_equal(blocks->size, 288);
    assert_string_equal(blocks->type, "Q4_K");
    gguf_free(&gguf);
    buffer_free(&file);
    arena_free(&arena);
}

/* ---- bad files ---- */

static void assert_refused(Buffer *file, ferry_status status, const char *message) {
    Arena arena = {0};
    Gguf gguf;
    ferry_error error;
    assert_fails(parse(file, &arena, &gguf, &error), status, &error, message);
    buffer_free(file);
    arena_free(&arena);
}

static void files_of_another_kind_are_refused(void **state) {
    (void)state;
    Buffer file = {0};
    buffer_text(&file, "GG");
    assert_refused(&file, FERRY_BAD_FORMAT, "does not fit the file of 2 bytes");
    buffer_text(&file, "ggml and more");
    assert_refused(&file, FERRY_BAD_FORMAT, "expected a GGUF file");
    begin(&file, 1, 0, 0);
    assert_refused(&file, FERRY_UNSUPPORTED, "version 1 of GGUF");
    begin(&file, 3u << 24, 0, 0);
    assert_refused(&file, FERRY_UNSUPPORTED, "big-endian");
}

static void counts_and_lengths_must_fit_the_file(void **state) {
    (void)state;
    Buffer file = {0};
    begin(&file, 3, 0, UINT64_MAX);
    assert_refused(&file, FERRY_BAD_FORMAT, "claims 18446744073709551615 values");
    begin(&file, 3, 1000, 0);
    assert_refused(&file, FERRY_BAD_FORMAT, "claims 1000 tensors");
    begin(&file, 3, 0, 1);
    put(&file, UINT64_MAX - 3, 8);
    put(&file, 0, 8);
    assert_refused(&file, FERRY_BAD_FORMAT, "a key at byte 32");
    begin(&file, 3, 0, 1);
    put_array(&file, "list", GGUF_U64, 1ull << 61);
    assert_refused(&file, FERRY_BAD_FORMAT, "list at byte");
    begin(&file, 3, 0, 1);
    put_array(&file, "list", GGUF_U8, 1ull << 62);
    assert_refused(&file, FERRY_BAD_FORMAT, "list at byte");
    begin(&file, 3, 0, 1);
    put_array(&file, "list", GGUF_STRING, UINT64_MAX);
    put_text(&file, "one");
    assert_refused(&file, FERRY_BAD_FORMAT, "list at byte");
    begin(&file, 3, 0, 1);
    put_key(&file, "short", GGUF_F64);
    put(&file, 0, 7);
    assert_refused(&file, FERRY_BAD_FORMAT, "short at byte");
}

static void values_must_be_of_known_types(void **state) {
    (void)state;
    Buffer file = {0};
    begin(&file, 3, 0, 1);
    put_key(&file, "odd", 13);
    put(&file, 0, 8);
    assert_refused(&file, FERRY_BAD_FORMAT, "\"odd\": 13 is not a type of values");
    begin(&file, 3, 0, 1);
    put_array(&file, "nested", GGUF_ARRAY, 1);
    assert_refused(&file, FERRY_UNSUPPORTED, "\"nested\" is an array of arrays");
    begin(&file, 3, 0, 1);
    put(&file, 2, 8);
    put(&file, 'a', 2); /* and a NUL */
    put(&file, GGUF_U64, 4);
    put(&file, 0, 8);
    assert_refused(&file, FERRY_BAD_FORMAT, "is no name");
    begin(&file, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        put_key(&file, "twice", GGUF_U64);
        put(&file, 0, 8);
    }
    assert_refused(&file, FERRY_BAD_FORMAT, "the key \"twice\" appears twice");
    begin(&file, 3, 0, 1);
    put_key(&file, "general.alignment", GGUF_U32);
    put(&file, 24, 4);
    assert_refused(&file, FERRY_BAD_FORMAT, "expected a power of two");
}

static const struct {
    uint32_t type;
    uint64_t columns, rows, offset;
    ferry_status status;
    const char *message;
} tensors[] = {
    {0, 4, 4, 64, FERRY_BAD_FORMAT, "do not fit the file"},
    {0, 4, 4, UINT64_MAX - 31, FERRY_BAD_FORMAT, "do not fit the file"},
    {0, 4, 4, 8, FERRY_BAD_FORMAT, "is no multiple of the alignment 32"},
    {0, 1ull << 63, 1, 0, FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {0, 1ull << 40, 1ull << 40, 0, FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {12, 128, 4, 0, FERRY_BAD_FORMAT,
     "whole blocks of 256 elements of type Q4_K, found rows of 128"},
    {20, 32, 1, 0, FERRY_UNSUPPORTED, "the type IQ4_NL (20) is not supported"},
    {99, 32, 1, 0, FERRY_UNSUPPORTED, "the type unknown (99) is not supported"},
};

static void tensors_must_lie_in_the_file(void **state) {
    (void)state;
    Buffer file = {0};
    for (size_t i = 0; i < COUNT(tensors); i++) {
        begin(&file, 3, 1, 0);
        put_tensor(&file, "w", tensors[i].type, tensors[i].columns, tensors[i].rows,
                   tensors[i].offset);
        pad(&file, 32, 64);
        assert_refused(&file, tensors[i].status, tensors[i].message);
    }
    begin(&file, 3, 1, 0);
    put_text(&file, "w");
    put(&file, 9, 4);
    pad(&file, 32, 128);
    assert_refused(&file, FERRY_BAD_FORMAT, "at most 8 dimensions, found 9");
    begin(&file, 3, 2, 0);
    put_tensor(&file, "w", 0, 2, 2, 0);
    put_tensor(&file, "w", 0, 2, 2, 32);
    pad(&file, 32, 64);
    assert_refused(&file, FERRY_BAD_FORMAT, "the tensor \"w\" appears twice");
}

static void a_file_that_ends_anywhere_is_refused(void **state) {
    (void)state;
    Buffer file = {0};
    Arena arena = {0};
    Gguf gguf;
    ferry_error error;
    begin(&file, 3, 1, 2);
    put_key(&file, "text", GGUF_STRING);
    put_text(&file, "some text");
    put_array(&file, "texts", GGUF_STRING, 2);
    put_text(&file, "a");
    put_text(&file, "b");
    put_tensor(&file, "w", 8, 32, 2, 0);
    pad(&file, 32, 68);
    size_t length = file.length;
    for (file.length = 0; file.length < length; file.length++) {
        unsigned char *copy = malloc(file.length + 1); /* so that the sanitizer sees the end */
        memcpy(copy, file.bytes, file.length);
        error_clear(&error);
        ferry_status status = gguf_parse("test.gguf", copy, file.length, &arena, &gguf, &error);
        assert_int_equal(status, FERRY_BAD_FORMAT);
        free(copy);
    }
    assert_ok(parse(&file, &arena, &gguf, &error), &error);
    gguf_free(&gguf);
    buffer_free(&file);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_all_types_are_read),
        cmocka_unit_test(tensors_are_placed_at_the_alignment_of_the_file),
        cmocka_unit_test(files_of_another_kind_are_refused),
        cmocka_unit_test(counts_and_lengths_must_fit_the_file),
        cmocka_unit_test(values_must_be_of_known_types),
        cmocka_unit_test(tensors_must_lie_in_the_file),
        cmocka_unit_test(a_file_that_ends_anywhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
