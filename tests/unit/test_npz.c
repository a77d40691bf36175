/* The NumPy reader on archives made by hand. */
#include "check.h"
#include "base/buffer.h"
#include "format/npz.h"

#include <minizip/zip.h>

static char directory[256], path[512];

static int make_scratch(void **state) {
    (void)state;
    scratch_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/archive.npz", directory);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    scratch_remove(directory);
    return 0;
}

/* ---- making archives ---- */

typedef struct Member {
    const char *name;
    Buffer content;
    int level; /* of compression; 0: stored */
} Member;

static void add_member(zipFile zip, const Member *member) {
    const zip_fileinfo info = {.dosDate = 0x210000};
    assert_int_equal(zipOpenNewFileInZip(zip, member->name, &info, NULL, 0, NULL, 0, NULL,
                                         member->level ? Z_DEFLATED : 0, member->level),
                     ZIP_OK);
    assert_int_equal(
        zipWriteInFileInZip(zip, member->content.bytes, (unsigned)member->content.length), ZIP_OK);
    assert_int_equal(zipCloseFileInZip(zip), ZIP_OK);
}

/* The bytes of an archive; frees the members' content. */
static Buffer make_archive(Member *members, size_t count) {
    zipFile zip = zipOpen(path, APPEND_STATUS_CREATE);
    assert_non_null(zip);
    for (size_t i = 0; i < count; i++) {
        add_member(zip, &members[i]);
        buffer_free(&members[i].content);
    }
    assert_int_equal(zipClose(zip, NULL), ZIP_OK);
    Buffer archive = {0};
    unsigned char block[4096];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    for (size_t got; (got = fread(block, 1, sizeof block, file)) > 0;) {
        buffer_append(&archive, block, got);
    }
    fclose(file);
    unlink(path);
    return archive;
}

/* A .npy array: version, header, data. */
static Buffer make_npy(int version, const char *header, const void *data, size_t size) {
    Buffer npy = {0};
    size_t length = strlen(header);
    const unsigned char prefix[] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    const unsigned char lengths[] = {length & 255, length >> 8, 0, 0};
    buffer_append(&npy, prefix, sizeof prefix);
    buffer_append(&npy, lengths, version == 1 ? 2 : 4);
    buffer_text(&npy, header);
    buffer_append(&npy, data, size);
    return npy;
}

static ferry_status read_archive(Buffer *archive, ferry_tensors **out, ferry_error *error) {
    error_clear(error);
    *out = ferry_tensors_new();
    unsigned char *exact = malloc(archive->length + 1);
    memcpy(exact, archive->bytes, archive->length);
    ferry_status status = npz_read("test", exact, archive->length, *out, error);
    free(exact);
    return status;
}

static ferry_status read_member(Member member, ferry_tensors **out, ferry_error *error) {
    Buffer archive = make_archive(&member, 1);
    ferry_status status = read_archive(&archive, out, error);
    buffer_free(&archive);
    return status;
}

/* ---- good arrays ---- */

static void every_version_and_compression_is_read(void **state) {
    (void)state;
    static const float data[6] = {0, 1, 2, 3, 4, 5};
    for (int version = 1; version <= 3; version++) {
        for (int level = 0; level <= 9; level += 3) {
            Buffer npy =
                make_npy(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n",
                         data, sizeof data);
            ferry_tensors *tensors;
            ferry_error error;
            assert_ok(read_member((Member){"x.npy", npy, level}, &tensors, &error), &error);
            const ferry_tensor *tensor = ferry_tensors_find(tensors, "x");
            assert_non_null(tensor);
            assert_int_equal(tensor->dtype, FERRY_F32);
            assert_int_equal(tensor->rank, 2);
            assert_memory_equal(tensor->data, data, sizeof data);
            ferry_tensors_free(tensors);
        }
    }
}

static void any_spelling_of_the_header_is_read(void **state) {
    (void)state;
    static const char *const headers[] = {
        "{'descr':'<i2','fortran_order':False,'shape':(3,)}",
        "{ \"shape\" : ( 3 , ) , \"descr\" : \"<i2\" , \"fortran_order\" : True }\n",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (3L,), }   \t\r\n",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (3), }",
    };
    static const int16_t data[3] = {7, -8, 9};
    for (size_t i = 0; i < COUNT(headers); i++) {
        ferry_tensors *tensors;
        ferry_error error;
        Buffer npy = make_npy(1, headers[i], data, sizeof data);
        assert_ok(read_member((Member){"no suffix", npy, 0}, &tensors, &error), &error);
        const ferry_tensor *tensor = ferry_tensors_find(tensors, "no suffix");
        assert_int_equal(tensor->shape[0], 3);
        assert_memory_equal(tensor->data, data, sizeof data);
        ferry_tensors_free(tensors);
    }
}

static void fortran_order_is_turned_into_row_major(void **state) {
    (void)state;
    int32_t data[24], wanted[24];
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 4; k++) {
                data[i + 2 * (j + 3 * k)] = 100 * i + 10 * j + k;
                wanted[(i * 3 + j) * 4 + k] = 100 * i + 10 * j + k;
            }
        }
    }
    ferry_tensors *tensors;
    ferry_error error;
    Buffer npy = make_npy(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4)}", data,
                          sizeof data);
    assert_ok(read_member((Member){"x.npy", npy, 6}, &tensors, &error), &error);
    assert_memory_equal(ferry_tensors_find(tensors, "x")->data, wanted, sizeof wanted);
    ferry_tensors_free(tensors);
    npy = make_npy(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 0)}", NULL, 0);
    assert_ok(read_member((Member){"x.npy", npy, 0}, &tensors, &error), &error);
    assert_int_equal(ferry_tensors_find(tensors, "x")->shape[1], 0);
    ferry_tensors_free(tensors);
}

/* ---- bad arrays ---- */

#define HEADER(descr, order, shape)                                                                \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"
#define SHAPE(shape) HEADER("'<f4'", "False", shape)
#define DESCR(descr) HEADER("'" descr "'", "False", "(1,)")

static const struct {
    const char *header;
    size_t data;
    ferry_status status;
    const char *message;
} bad[] = {
    {SHAPE("(2, 3)"), 20, FERRY_BAD_FORMAT, "need 24 bytes, the archive has 20"},
    {SHAPE("(2, 3)"), 25, FERRY_BAD_FORMAT, "need 24 bytes, the archive has 25"},
    {SHAPE("()"), 0, FERRY_BAD_FORMAT, "need 4 bytes, the archive has 0"},
    {SHAPE("(4294967296, 4294967296)"), 0, FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {SHAPE("(0, 4294967296, 4294967296)"), 0, FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {SHAPE("(99999999999999999999,)"), 0, FERRY_BAD_FORMAT, "a size does not fit 64 bits"},
    {SHAPE("(9223372036854775807,)"), 0, FERRY_BAD_FORMAT, "does not fit 63 bits"},
    {SHAPE("(1, 1, 1, 1, 1, 1, 1, 1, 1)"), 4, FERRY_UNSUPPORTED, "at most 8 dimensions"},
    {SHAPE("(-1,)"), 4, FERRY_BAD_FORMAT, "expected a size"},
    {SHAPE("(1.0,)"), 4, FERRY_BAD_FORMAT, "expected ',' or ')'"},
    {SHAPE("(1 1)"), 4, FERRY_BAD_FORMAT, "expected ',' or ')'"},
    {SHAPE("[1]"), 4, FERRY_BAD_FORMAT, "the shape to be a tuple"},
    {SHAPE("(1,"), 4, FERRY_BAD_FORMAT, "damaged header"},
    {DESCR(">f4"), 4, FERRY_UNSUPPORTED, "member \"x.npy\": dtype \">f4\" is not supported"},
    {DESCR("<u4"), 4, FERRY_UNSUPPORTED, "dtype \"<u4\" is not supported"},
    {DESCR("<c8"), 8, FERRY_UNSUPPORTED, "dtype \"<c8\" is not supported"},
    {DESCR("<U1"), 4, FERRY_UNSUPPORTED, "dtype \"<U1\" is not supported"},
    {DESCR(""), 4, FERRY_UNSUPPORTED, "dtype \"\" is not supported"},
    {DESCR("|O"), 8, FERRY_UNSUPPORTED, "pickled Python objects, which are never read"},
    {HEADER("[('a', '<f4')]", "False", "(1,)"), 4, FERRY_UNSUPPORTED, "structured arrays"},
    {HEADER("4", "False", "(1,)"), 4, FERRY_BAD_FORMAT, "expected a string"},
    {HEADER("'<f4'", "0", "(1,)"), 4, FERRY_BAD_FORMAT, "True or False"},
    {"", 4, FERRY_BAD_FORMAT, "damaged header"},
    {"[]", 4, FERRY_BAD_FORMAT, "expected a dict"},
    {"{}", 4, FERRY_BAD_FORMAT, "is missing"},
    {"{'descr': '<f4', 'shape': (1,)}", 4, FERRY_BAD_FORMAT, "is missing"},
    {"{'descr': '<f4', 'descr': '<f4'}", 4, FERRY_BAD_FORMAT, "a key appears twice"},
    {"{'descr' '<f4'}", 4, FERRY_BAD_FORMAT, "expected ':'"},
    {"{'descr': '<f4' 'shape': (1,)}", 4, FERRY_BAD_FORMAT, "expected ',' or '}'"},
    {"{'color': 1}", 4, FERRY_BAD_FORMAT, "a key other than"},
    {"{'descr", 4, FERRY_BAD_FORMAT, "a string has no end"},
    {SHAPE("(1,)") " x", 4, FERRY_BAD_FORMAT, "text after the dict"},
};

static void a_bad_array_is_refused_and_the_reason_is_said(void **state) {
    (void)state;
    static const unsigned char zeros[64];
    for (size_t i = 0; i < COUNT(bad); i++) {
        ferry_tensors *tensors;
        ferry_error error;
        Buffer npy = make_npy(1 + (int)i % 3, bad[i].header, zeros, bad[i].data);
        ferry_status status = read_member((Member){"x.npy", npy, i & 1}, &tensors, &error);
        if (status != bad[i].status || !strstr(error.message, bad[i].message)) {
            fail_msg("%s: %s: %s", bad[i].header, ferry_status_name(status), error.message);
        }
        assert_string_equal(error.where, "test");
        ferry_tensors_free(tensors);
    }
}

static void members_that_are_no_arrays_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *content;
        size_t size;
        ferry_status status;
        const char *message;
    } cases[] = {
        {"", 0, FERRY_BAD_FORMAT, "expected a NumPy array"},
        {"some text of any kind", 21, FERRY_BAD_FORMAT, "expected a NumPy array"},
        {"\x93NUMPY\1", 7, FERRY_BAD_FORMAT, "expected a NumPy array"},
        {"\x93NUMPY\4\0\0\0\0\0", 12, FERRY_UNSUPPORTED, "found 4.0"},
        {"\x93NUMPY\1\1\0\0\0\0", 12, FERRY_UNSUPPORTED, "found 1.1"},
        {"\x93NUMPY\1\0\377\377{}", 12, FERRY_BAD_FORMAT, "longer than the member"},
        {"\x93NUMPY\2\0\377\377\377\377{}", 14, FERRY_BAD_FORMAT, "it claims 4294967295"},
        {"\x93NUMPY\2\0\3\0\0\0{}", 14, FERRY_BAD_FORMAT, "longer than the member"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        ferry_tensors *tensors;
        ferry_error error;
        Buffer content = {0};
        buffer_append(&content, cases[i].content, cases[i].size);
        assert_fails(read_member((Member){"x.npy", content, 0}, &tensors, &error), cases[i].status,
                     &error, cases[i].message);
        ferry_tensors_free(tensors);
    }
}

static Buffer small_npy(void) {
    return make_npy(1, DESCR("|u1"), "z", 1);
}

static void two_arrays_of_one_name_are_refused(void **state) {
    (void)state;
    Member members[] = {{"x.npy", small_npy(), 0}, {"x", small_npy(), 0}};
    Buffer archive = make_archive(members, 2);
    ferry_tensors *tensors;
    ferry_error error;
    assert_fails(read_archive(&archive, &tensors, &error), FERRY_BAD_FORMAT, &error,
                 "two arrays of this name");
    ferry_tensors_free(tensors);
    buffer_free(&archive);
}

static void a_name_that_leaves_the_archive_is_refused(void **state) {
    (void)state;
    static const char *const names[] = {"../x.npy", "/x.npy", "a//x.npy", "a/../x.npy"};
    for (size_t i = 0; i < COUNT(names); i++) {
        ferry_tensors *tensors;
        ferry_error error;
        assert_fails(read_member((Member){names[i], small_npy(), 0}, &tensors, &error),
                     FERRY_BAD_FORMAT, &error, "its name leaves the archive");
        assert_ok(ferry_tensors_add(tensors, names[i], FERRY_U8, 0, NULL, NULL, &error), &error);
        assert_fails(npz_write(path, tensors, &error), FERRY_INVALID_ARGUMENT, &error,
                     "is no path inside an archive");
        assert_int_equal(scratch_count(directory), 0);
        ferry_tensors_free(tensors);
    }
}

static void a_truncated_archive_is_refused(void **state) {
    (void)state;
    Member members[] = {{"x.npy", small_npy(), 9}, {"y.npy", small_npy(), 0}};
    Buffer archive = make_archive(members, 2);
    for (size_t length = archive.length; length-- > 0;) {
        archive.length = length;
        ferry_tensors *tensors;
        ferry_error error;
        assert_int_equal(read_archive(&archive, &tensors, &error), FERRY_BAD_FORMAT);
        ferry_tensors_free(tensors);
    }
    buffer_free(&archive);
}

/* Where `text` is in the archive for the last time, such as the signature of a directory entry. */
static unsigned char *find_last(Buffer *archive, const char *text) {
    for (size_t i = archive->length - strlen(text);; i--) {
        if (memcmp(archive->bytes + i, text, strlen(text)) == 0) return archive->bytes + i;
        assert_true(i > 0);
    }
}

static void damage_is_noticed_before_memory_is_taken(void **state) {
    (void)state;
    enum { FLAGS = 8, METHOD = 10, CHECKSUM = 16, COMPRESSED = 20, SIZE = 24, NAME = 46 };
    static const struct {
        int at;
        unsigned char value;
        ferry_status status;
        const char *message;
    } cases[] = {
        {FLAGS, 1, FERRY_UNSUPPORTED, "encrypted"},
        {METHOD, 12, FERRY_UNSUPPORTED, "expected it stored or deflated, found method 12"},
        {CHECKSUM, 0x55, FERRY_BAD_FORMAT, "local header is damaged"},
        {COMPRESSED + 1, 0x70, FERRY_BAD_FORMAT, "local header is damaged"},
        {COMPRESSED + 3, 0x70, FERRY_BAD_FORMAT, "its sizes are impossible"},
        {SIZE + 3, 0x70, FERRY_BAD_FORMAT, "its sizes are impossible"},
        {NAME, 0, FERRY_BAD_FORMAT, "its name is damaged"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Member member = {"x.npy", small_npy(), i & 1 ? 9 : 0};
        Buffer archive = make_archive(&member, 1);
        find_last(&archive, "PK\1\2")[cases[i].at] = cases[i].value;
        ferry_tensors *tensors;
        ferry_error error;
        assert_fails(read_archive(&archive, &tensors, &error), cases[i].status, &error,
                     cases[i].message);
        ferry_tensors_free(tensors);
        buffer_free(&archive);
    }
}

static void a_flipped_bit_in_the_data_is_noticed(void **state) {
    (void)state;
    Member member = {"x.npy", make_npy(1, DESCR("<i8"), "payload!", 8), 0};
    Buffer archive = make_archive(&member, 1);
    *find_last(&archive, "payload!") ^= 1;
    ferry_tensors *tensors;
    ferry_error error;
    assert_fails(read_archive(&archive, &tensors, &error), FERRY_BAD_FORMAT, &error,
                 "its checksum is wrong");
    ferry_tensors_free(tensors);
    buffer_free(&archive);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_and_compression_is_read),
        cmocka_unit_test(any_spelling_of_the_header_is_read),
        cmocka_unit_test(fortran_order_is_turned_into_row_major),
        cmocka_unit_test(a_bad_array_is_refused_and_the_reason_is_said),
        cmocka_unit_test(members_that_are_no_arrays_are_refused),
        cmocka_unit_test(two_arrays_of_one_name_are_refused),
        cmocka_unit_test(a_name_that_leaves_the_archive_is_refused),
        cmocka_unit_test(a_truncated_archive_is_refused),
        cmocka_unit_test(damage_is_noticed_before_memory_is_taken),
        cmocka_unit_test(a_flipped_bit_in_the_data_is_noticed),
    };
    return cmocka_run_group_tests_name("npz", tests, make_scratch, remove_scratch);
}
