/* Quantized blocks: what they decode to, wherever decoding begins and ends, and recipes of them. */
#include "check.h"
#include "base/dtype.h"
#include "graph/recipe.h"

#include <zlib.h>

enum { BLOCKS = 3, MOST = BLOCKS * 256 };

/* The checksums are of what the gguf package makes of the same bytes; of Q8_K, which it lacks, of the
 * products. */
static const struct {
    uint32_t type;
    const char *name;
    int scales[2]; /* where the halves are that scale; -1: none */
    uint32_t checksum;
} formats[] = {
    {2, "Q4_0", {0, -1}, 0x5f0f419d},    {3, "Q4_1", {0, 2}, 0x5eeb3a8c},
    {6, "Q5_0", {0, -1}, 0xb958f36b},    {7, "Q5_1", {0, 2}, 0x347848fc},
    {8, "Q8_0", {0, -1}, 0x709cd01c},    {10, "Q2_K", {80, 82}, 0x9aa5e311},
    {11, "Q3_K", {108, -1}, 0x24c2274e}, {12, "Q4_K", {0, 2}, 0x29894b19},
    {13, "Q5_K", {0, 2}, 0x77a22634},    {14, "Q6_K", {208, -1}, 0x226459e3},
    {15, "Q8_K", {-1, -1}, 0xaf29ca61},
};

/* Blocks of all kinds of bytes whose scales are 0.15625 and -0.75. */
static void fill(size_t i, const BlockFormat *format, unsigned char *bytes) {
    static const unsigned char halves[2][2] = {{0x00, 0x31}, {0x00, 0xba}};
    static const unsigned char single[4] = {0x00, 0x00, 0x20, 0x3e};
    for (unsigned j = 0; j < BLOCKS * format->bytes; j++)
        bytes[j] = (unsigned char)(j * 37 + (j >> 3) * 5 + 11);
    for (unsigned block = 0; block < BLOCKS; block++) {
        unsigned char *at = bytes + block * format->bytes;
        for (int s = 0; s < 2; s++) {
            if (formats[i].scales[s] >= 0) memcpy(at + formats[i].scales[s], halves[s], 2);
        }
        if (formats[i].type == 15) memcpy(at, single, 4);
    }
}

static void every_format_decodes_as_the_package_does(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        const BlockFormat *format = block_format(formats[i].type);
        unsigned char bytes[BLOCKS * 292];
        float values[MOST];
        assert_non_null(format);
        assert_string_equal(format->name, formats[i].name);
        fill(i, format, bytes);
        uint32_t count = BLOCKS * format->elements;
        block_decode(format, bytes, 0, count, values);
        uint32_t found = (uint32_t)crc32(0, (unsigned char *)values, count * sizeof *values);
        if (found != formats[i].checksum) fail_msg("%s: %#x", format->name, found);
    }
}

static void decoding_begins_and_ends_anywhere(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(formats); i++) {
        const BlockFormat *format = block_format(formats[i].type);
        unsigned char bytes[BLOCKS * 292];
        float whole[MOST], some[MOST];
        fill(i, format, bytes);
        uint32_t count = BLOCKS * format->elements;
        block_decode(format, bytes, 0, count, whole);
        for (uint32_t first = 0; first < count; first += 1 + first / 9) {
            for (uint32_t length = 0; length <= count - first; length += 1 + length / 3) {
                block_decode(format, bytes, first, length, some);
                assert_memory_equal(some, whole + first, length * sizeof *some);
            }
        }
    }
}

static void other_numbers_are_no_formats(void **state) {
    (void)state;
    static const uint32_t types[] = {0, 1, 4, 5, 9, 16, 20, 30, 39, UINT32_MAX};
    for (size_t i = 0; i < COUNT(types); i++) assert_null(block_format(types[i]));
}

/* ---- recipes ---- */

/* Both recipes give the same elements, whole and in pieces. */
static void assert_same(const Recipe *found, const Recipe *wanted) {
    size_t size = ferry_dtype_size(wanted->dtype);
    uint64_t count = recipe_count(wanted);
    unsigned char *left = malloc(count * size + 1), *right = malloc(count * size);
    assert_non_null(found);
    assert_non_null(left);
    assert_non_null(right);
    assert_int_equal(found->rank, wanted->rank);
    assert_int_equal(recipe_count(found), count);
    recipe_read(wanted, 0, count, right);
    for (uint64_t step = 1; step <= count; step = step * 5 + 2) {
        unsigned char *out = left + step % 2; /* aligned, and not */
        for (uint64_t first = 0; first < count; first += step) {
            uint64_t length = count - first < step ? count - first : step;
            recipe_read(found, first, length, out + first * size);
        }
        assert_memory_equal(out, right, count * size);
    }
    uint64_t chunk = recipe_chunk(found);
    assert_true(chunk > 0);
    free(left);
    free(right);
}

typedef const Recipe *(*Change)(Arena *arena, const Recipe *recipe);

static const Recipe *as_it_is(Arena *arena, const Recipe *recipe) {
    (void)arena;
    return recipe;
}

static const Recipe *transpose(Arena *arena, const Recipe *recipe) {
    return recipe_permute(arena, recipe, (const int64_t[]){1, 0});
}

static const Recipe *half(Arena *arena, const Recipe *recipe) {
    return recipe_cast(arena, recipe, FERRY_F16);
}

static const Recipe *rows(Arena *arena, const Recipe *recipe) {
    return recipe_slice(arena, recipe, 0, 3, recipe->shape[0] - 2);
}

static const Recipe *columns(Arena *arena, const Recipe *recipe) {
    return recipe_slice(arena, recipe, 1, 17, recipe->shape[1] - 1);
}

static const Recipe *unzip(Arena *arena, const Recipe *recipe) {
    return recipe_unzip(arena, recipe, 5);
}

static const Recipe *row(Arena *arena, const Recipe *recipe) {
    return recipe_unsqueeze(arena, recipe_select(arena, recipe, 0, 7), 1);
}

static const Recipe *column(Arena *arena, const Recipe *recipe) {
    return recipe_unsqueeze(arena, recipe_select(arena, recipe, 1, 45), 0);
}

static const Recipe *heads(Arena *arena, const Recipe *recipe) {
    const Recipe *split = recipe_view(arena, recipe, 4, (const int64_t[]){5, 14, 2, 128});
    return split ? recipe_permute(arena, split, (const int64_t[]){3, 1, 0, 2}) : NULL;
}

static void whatever_is_done_to_plain_weights_is_done_to_blocks(void **state) {
    (void)state;
    static const Change chains[][4] = {
        {as_it_is},
        {transpose},
        {half},
        {half, transpose},
        {rows, columns},
        {unzip},
        {unzip, half},
        {unzip, transpose},
        {row},
        {column},
        {heads},
        {unzip, transpose, half},
        {columns, unzip, transpose},
        {rows, transpose, half},
        {unzip, transpose, rows},
    };
    static const uint32_t types[] = {3, 12};
    const int64_t shape[] = {70, 256};
    for (size_t t = 0; t < COUNT(types); t++) {
        const BlockFormat *format = block_format(types[t]);
        Arena arena = {0};
        size_t size = 70 * 256 / format->elements * format->bytes;
        unsigned char *bytes = arena_alloc(&arena, size + 100);
        float *values = arena_alloc(&arena, 70 * 256 * sizeof *values);
        for (size_t i = 0; i < size; i++)
            bytes[100 + i] = (unsigned char)((i * i * 7 + i / 5) & 63);
        MappedFile file = {.path = "memory", .bytes = bytes, .size = size + 100};
        const Recipe *blocks = recipe_blocks(&arena, &file, 100, format, 2, shape);
        block_decode(format, bytes + 100, 0, 70 * 256, values);
        const Recipe *plain = recipe_bytes(&arena, values, FERRY_F32, 2, shape);
        const MappedFile *verbatim;
        uint64_t offset;
        assert_false(recipe_is_verbatim(blocks, &verbatim, &offset));
        assert_false(recipe_equal(blocks, plain));
        for (size_t i = 0; i < COUNT(chains); i++) {
            const Recipe *left = blocks, *right = plain;
            for (size_t j = 0; j < 4 && chains[i][j]; j++) {
                left = chains[i][j](&arena, left);
                right = chains[i][j](&arena, right);
            }
            assert_same(left, right);
            assert_true(recipe_equal(left, left));
        }
        arena_free(&arena);
    }
}

static void unzipping_puts_even_rows_before_odd_ones(void **state) {
    (void)state;
    Arena arena = {0};
    const int32_t zipped[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    static const int32_t wanted[] = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
    int32_t found[12];
    const int64_t shape[] = {12};
    const Recipe *recipe = recipe_bytes(&arena, zipped, FERRY_I32, 1, shape);
    recipe_read(recipe_unzip(&arena, recipe, 2), 0, 12, found);
    assert_memory_equal(found, wanted, sizeof wanted);
    assert_null(recipe_unzip(&arena, recipe_unzip(&arena, recipe, 2), 2));
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_decodes_as_the_package_does),
        cmocka_unit_test(decoding_begins_and_ends_anywhere),
        cmocka_unit_test(other_numbers_are_no_formats),
        cmocka_unit_test(whatever_is_done_to_plain_weights_is_done_to_blocks),
        cmocka_unit_test(unzipping_puts_even_rows_before_odd_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
