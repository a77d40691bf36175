/* FlatBuffers: what is built reads back, and damaged buffers are noticed, not followed. */
#include "check.h"
#include "format/flatbuffer.h"

/* A root with every kind of field, and two children that share a vtable. */
static unsigned char *build(FlatBuilder *b, size_t gap) {
    const int64_t numbers[] = {1, -2, INT64_MAX};
    FlatRef name = flat_string(b, "decoder");
    FlatRef list = flat_vector(b, numbers, sizeof *numbers, 3);
    FlatRef children[2];
    for (uint32_t i = 0; i < 2; i++) {
        children[i] = FLAT_TABLE(b, FLAT_16(0, 7 + i), FLAT_DOUBLE(2, 0.5));
    }
    FlatRef vector = flat_refs(b, children, 2);
    FlatRef root = FLAT_TABLE(b, FLAT_8(0, 3), FLAT_REF(1, name), FLAT_REF(2, list), FLAT_REF(4, 0),
                              FLAT_64(5, 1ull << 40), FLAT_REF(6, vector), FLAT_32(9, -1));
    return flat_finish(b, root, "TEST", gap);
}

static void test_what_is_built_reads_back(void **state) {
    (void)state;
    FlatBuilder b = {0};
    const unsigned char *bytes = build(&b, 0);
    assert_non_null(bytes);
    FlatReader reader = {bytes, b.length, false};
    FlatTable root = flat_root(&reader, "TEST");
    assert_int_equal(flat_get(&root, 0, 1, 0), 3);
    assert_string_equal(flat_get_string(&root, 1), "decoder");
    FlatVector list = flat_get_vector(&root, 2, 8);
    assert_int_equal(list.count, 3);
    assert_true((int64_t)flat_item(&list, 1) == -2 && flat_item(&list, 2) == INT64_MAX);
    assert_int_equal(flat_get(&root, 3, 4, 11), 11);
    assert_null(flat_get_table(&root, 4).reader);
    assert_true(flat_get(&root, 5, 8, 0) == 1ull << 40);
    FlatVector children = flat_get_vector(&root, 6, 4);
    assert_int_equal(children.count, 2);
    FlatTable first = flat_item_table(&children, 0), second = flat_item_table(&children, 1);
    assert_int_equal(flat_get(&first, 0, 2, 0), 7);
    assert_int_equal(flat_get(&second, 0, 2, 0), 8);
    assert_true(flat_get(&second, 2, 8, 0) == flat_double_bits(0.5));
    assert_int_equal(first.vtable, second.vtable);
    assert_int_equal(flat_get(&root, 9, 4, 0), UINT32_MAX);
    assert_int_equal(flat_get(&root, 200, 4, 5), 5);
    assert_false(reader.failed);
    assert_int_equal(b.length % 8, 0);
    flat_free(&b);
}

static void test_a_gap_stays_free(void **state) {
    (void)state;
    FlatBuilder b = {0};
    const unsigned char *bytes = build(&b, 32);
    static const unsigned char zeros[32];
    assert_non_null(bytes);
    assert_memory_equal(bytes + 8, zeros, 32);
    FlatReader reader = {bytes, b.length, false};
    FlatTable root = flat_root(&reader, "TEST");
    assert_string_equal(flat_get_string(&root, 1), "decoder");
    flat_free(&b);
}

static void test_another_identifier_is_refused(void **state) {
    (void)state;
    FlatBuilder b = {0};
    const unsigned char *bytes = build(&b, 0);
    FlatReader reader = {bytes, b.length, false};
    assert_null(flat_root(&reader, "ELSE").reader);
    assert_true(reader.failed);
    flat_free(&b);
}

/* Read everything that build() makes. */
static void walk(FlatReader *reader) {
    FlatTable root = flat_root(reader, "TEST");
    flat_get(&root, 0, 1, 0);
    flat_get_string(&root, 1);
    FlatVector list = flat_get_vector(&root, 2, 8), children = flat_get_vector(&root, 6, 4);
    for (uint32_t i = 0; i < list.count; i++) flat_item(&list, i);
    for (uint32_t i = 0; i < children.count; i++) {
        FlatTable child = flat_item_table(&children, i);
        flat_get(&child, 2, 8, 0);
    }
}

/* Under AddressSanitizer, a copy of exactly the length shows every read behind it. */
static void test_no_damage_is_followed_outside(void **state) {
    (void)state;
    FlatBuilder b = {0};
    const unsigned char *bytes = build(&b, 0);
    for (size_t length = 0; length < b.length; length++) {
        unsigned char *copy = malloc(length + !length);
        memcpy(copy, bytes, length);
        FlatReader reader = {copy, length, false};
        walk(&reader);
        free(copy);
    }
    for (size_t at = 0; at < b.length; at++) {
        static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
        for (size_t v = 0; v < sizeof values; v++) {
            unsigned char *copy = malloc(b.length);
            memcpy(copy, bytes, b.length);
            copy[at] = values[v];
            FlatReader reader = {copy, b.length, false};
            walk(&reader);
            free(copy);
        }
    }
    flat_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_built_reads_back),
        cmocka_unit_test(test_a_gap_stays_free),
        cmocka_unit_test(test_another_identifier_is_refused),
        cmocka_unit_test(test_no_damage_is_followed_outside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
