/* The zip writer, read back by the zip reader and byte by byte. */
#include "check.h"
#include "base/file.h"
#include "format/zip.h"
#include "format/zip_write.h"

static char directory[256], path[512];
static ferry_error error;

static int make_scratch(void **state) {
    (void)state;
    scratch_make(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/archive.zip", directory);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    scratch_remove(directory);
    return 0;
}

typedef struct Record {
    const char *name;
    const char *content;
    uint32_t alignment;
    uint64_t announced; /* bytes that are announced; 0: as many as there are */
} Record;

static void write_archive(const Record *records, size_t count) {
    OutputFile file;
    assert_ok(output_open(&file, path, 0, &error), &error);
    ZipWriter *zip = zip_writer_new(&file);
    assert_non_null(zip);
    for (size_t i = 0; i < count; i++) {
        const Record *record = &records[i];
        size_t size = strlen(record->content);
        uint64_t announced = record->announced ? record->announced : size;
        assert_ok(zip_writer_open(zip, record->name, announced, record->alignment, &error), &error);
        assert_ok(zip_writer_append(zip, record->content, size / 2, &error), &error);
        assert_ok(zip_writer_append(zip, record->content + size / 2, size - size / 2, &error),
                  &error);
        assert_ok(zip_writer_close(zip, &error), &error);
    }
    assert_ok(zip_writer_finish(zip, &error), &error);
    zip_writer_free(zip);
    assert_ok(output_commit(&file, &error), &error);
}

/* The archive reads back; `file` stays mapped for further looks. */
static void read_archive(const Record *records, size_t count, Arena *arena, MappedFile *file,
                         Zip *zip) {
    assert_ok(file_map(path, arena, file, &error), &error);
    assert_ok(zip_read(path, file->bytes, file->size, arena, zip, &error), &error);
    assert_int_equal(zip->count, count);
    for (size_t i = 0; i < count; i++) {
        const Record *record = &records[i];
        const ZipEntry *entry = zip_find(zip, record->name);
        const unsigned char *bytes;
        assert_non_null(entry);
        assert_false(entry->deflated);
        assert_int_equal(entry->size, strlen(record->content));
        assert_int_equal(entry->offset % record->alignment, 0);
        assert_ok(zip_check(zip, entry, &error), &error);
        assert_ok(zip_bytes(zip, entry, arena, &bytes, &error), &error);
        assert_memory_equal(bytes, record->content, entry->size);
    }
}

static void check_round_trip(const Record *records, size_t count) {
    Arena arena = {0};
    MappedFile file;
    Zip zip;
    write_archive(records, count);
    read_archive(records, count, &arena, &file, &zip);
    zip_free(&zip);
    file_unmap(&file);
    arena_free(&arena);
}

static void entries_read_back(void **state) {
    (void)state;
    static const Record records[] = {
        {"model/a", "one", 1, 0},
        {"model/empty", "", 1, 0},
        {"model/data/w", "some bytes", 64, 0},
        {"model/gr\xc3\xbc\xc3\x9f", "a name in UTF-8", 1, 0},
    };
    check_round_trip(records, COUNT(records));
}

static void data_is_aligned_whatever_the_length_of_the_name(void **state) {
    (void)state;
    char names[130][160];
    Record records[130];
    for (size_t i = 0; i < COUNT(records); i++) {
        memset(names[i], 'n', sizeof names[i]);
        snprintf(names[i] + i + 1, sizeof names[i] - i - 1, "%zu", i);
        uint32_t alignment = i % 3 == 0 ? 64 : i % 3 == 1 ? 4096 : 2;
        records[i] = (Record){names[i], i % 2 ? "odd" : "even", alignment, 0};
    }
    check_round_trip(records, COUNT(records));
}

static void the_padding_is_torchs(void **state) {
    (void)state;
    static const Record records[] = {{"w", "x", 64, 0}};
    Arena arena = {0};
    MappedFile file;
    Zip zip;
    write_archive(records, 1);
    read_archive(records, 1, &arena, &file, &zip);
    assert_memory_equal(file.bytes, "PK\3\4", 4);
    assert_memory_equal(file.bytes + 31, "FB", 2);
    assert_int_equal(file.bytes[33], 64 - 31 - 4);
    assert_int_equal(file.bytes[35], 'Z');
    zip_free(&zip);
    file_unmap(&file);
    arena_free(&arena);
}

/* An entry that is announced as a large one has 64-bit sizes, aligned as any other. */
static void large_entries_have_64_bit_records(void **state) {
    (void)state;
    static const Record records[] = {
        {"before", "1", 64, 0},
        {"large", "in truth small", 64, UINT64_C(5) << 30},
        {"limit", "at the limit", 64, UINT32_MAX},
        {"after", "2", 64, 0},
    };
    check_round_trip(records, COUNT(records));
}

static void the_same_entries_give_the_same_bytes(void **state) {
    (void)state;
    static const Record records[] = {{"a", "one", 64, 0}, {"b", "two", 1, 0}};
    Arena arena = {0};
    MappedFile first, second;
    write_archive(records, COUNT(records));
    assert_ok(file_map(path, &arena, &first, &error), &error);
    write_archive(records, COUNT(records));
    assert_ok(file_map(path, &arena, &second, &error), &error);
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    file_unmap(&first);
    file_unmap(&second);
    arena_free(&arena);
}

static void a_failed_write_is_told(void **state) {
    (void)state;
    OutputFile file;
    assert_ok(output_open(&file, path, 0, &error), &error);
    int descriptor = file.descriptor;
    ZipWriter *zip = zip_writer_new(&file);
    assert_non_null(zip);
    file.descriptor = -1;
    static const char bytes[1 << 17];
    ferry_status status = zip_writer_add(zip, "name", bytes, sizeof bytes, &error);
    if (status == FERRY_OK) status = zip_writer_finish(zip, &error);
    assert_fails(status, FERRY_IO, &error, "cannot write");
    zip_writer_free(zip);
    file.descriptor = descriptor;
    output_discard(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_read_back),
        cmocka_unit_test(data_is_aligned_whatever_the_length_of_the_name),
        cmocka_unit_test(the_padding_is_torchs),
        cmocka_unit_test(large_entries_have_64_bit_records),
        cmocka_unit_test(the_same_entries_give_the_same_bytes),
        cmocka_unit_test(a_failed_write_is_told),
    };
    return cmocka_run_group_tests_name("zip", tests, make_scratch, remove_scratch);
}
