/* Transposed weights, read in tiles: every shape that is not a multiple of a tile or of a vector. */
#include "check.h"
#include "base/dtype.h"
#include "base/strided.h"
#include "graph/recipe.h"

static Arena arena;

static int free_arena(void **state) {
    (void)state;
    arena_free(&arena);
    return 0;
}

static uint32_t scramble(uint64_t i) {
    return (uint32_t)(i * 2654435761u >> 7) & 0x7f; /* a value of every type */
}

static uint64_t random_below(uint64_t limit) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
}

/* A source whose element i, row-major, is scramble(i). It is one byte off alignment. */
static const Recipe *make_source(ferry_dtype dtype, const int64_t *shape) {
    size_t count = (size_t)(shape[0] * shape[1] * shape[2]), size = ferry_dtype_size(dtype);
    unsigned char *bytes = (unsigned char *)arena_alloc(&arena, count * size + 1) + 1;
    for (size_t i = 0; i < count; i++) {
        int32_t value = (int32_t)scramble(i);
        dtype_convert(FERRY_I32, &value, dtype, bytes + i * size, 1);
    }
    const Recipe *recipe = recipe_bytes(&arena, bytes, dtype, 3, shape);
    assert_non_null(recipe);
    return recipe;
}

/* What element `flat` of the permuted source is. */
static uint32_t expected_at(const int64_t *shape, const int64_t *dims, uint64_t flat) {
    int64_t index[3];
    for (int d = 2; d >= 0; d--) {
        uint64_t size = (uint64_t)shape[dims[d]];
        index[dims[d]] = (int64_t)(flat % size);
        flat /= size;
    }
    return scramble((uint64_t)((index[0] * shape[1] + index[1]) * shape[2] + index[2]));
}

static void assert_window(const Recipe *recipe, const int64_t *shape, const int64_t *dims,
                          uint64_t first, uint64_t count) {
    size_t size = ferry_dtype_size(recipe->dtype);
    unsigned char *raw = malloc((size_t)count * size + 1);
    int32_t *found = malloc((size_t)count * sizeof *found + 1);
    raw[count * size] = 0xa5;
    recipe_read(recipe, first, count, raw);
    assert_int_equal(raw[count * size], 0xa5);
    dtype_convert(recipe->dtype, raw, FERRY_I32, found, (size_t)count);
    for (uint64_t i = 0; i < count; i++) {
        int expected = (int)expected_at(shape, dims, first + i);
        if (found[i] != expected) {
            fail_msg("%s, element %llu of %llu x %llu: %d, expected %d",
                     ferry_dtype_name(recipe->dtype), (unsigned long long)(first + i),
                     (unsigned long long)recipe->shape[1], (unsigned long long)recipe->shape[2],
                     found[i], expected);
        }
    }
    free(found);
    free(raw);
}

static const int64_t shapes[][3] = {{1, 64, 64},  {1, 63, 65}, {1, 1, 129},   {1, 129, 1},
                                    {1, 17, 200}, {3, 70, 67}, {2, 128, 192}, {5, 3, 2},
                                    {66, 5, 130}, {1, 15, 16}, {2, 9, 7}};
static const int64_t orders[][3] = {{0, 2, 1}, {2, 1, 0}, {2, 0, 1}, {1, 2, 0}, {1, 0, 2}};

static void transposed_tensors_are_read_in_every_type(void **state) {
    (void)state;
    static const struct {
        ferry_dtype from, to;
    } types[] = {{FERRY_U8, FERRY_U8},   {FERRY_I16, FERRY_I16},  {FERRY_I32, FERRY_I32},
                 {FERRY_I64, FERRY_I64}, {FERRY_BF16, FERRY_F32}, {FERRY_F32, FERRY_F16},
                 {FERRY_I8, FERRY_F64},  {FERRY_F64, FERRY_BF16}};
    for (size_t t = 0; t < COUNT(types); t++) {
        for (size_t s = 0; s < COUNT(shapes); s++) {
            const Recipe *source = make_source(types[t].from, shapes[s]);
            for (size_t o = 0; o < COUNT(orders); o++) {
                const Recipe *recipe = recipe_permute(&arena, source, orders[o]);
                recipe = recipe_cast(&arena, recipe, types[t].to);
                uint64_t total = recipe_count(recipe);
                assert_window(recipe, shapes[s], orders[o], 0, total);
                for (int i = 0; i < 8; i++) {
                    uint64_t first = random_below(total);
                    uint64_t count = random_below(total - first + 1);
                    assert_window(recipe, shapes[s], orders[o], first, count);
                }
            }
        }
    }
}

static void a_strided_copy_writes_its_block_and_no_more(void **state) {
    (void)state;
    enum { PITCH = 24 };
    for (size_t size = 1; size <= 8; size *= 2) {
        for (size_t rows = 0; rows <= 19; rows++) {
            for (size_t columns = 0; columns <= 19; columns++) {
                unsigned char source[19 * 20 * 8], out[20 * PITCH * 8];
                for (size_t i = 0; i < sizeof source; i++) source[i] = (unsigned char)(i * 7 + 1);
                memset(out, 0, sizeof out);
                strided_copy(source, (ptrdiff_t)size, (ptrdiff_t)(rows * size), size, rows, columns,
                             out, PITCH * size);
                for (size_t i = 0; i < 20; i++) {
                    for (size_t j = 0; j < PITCH; j++) {
                        static const unsigned char none[8];
                        bool inside = i < rows && j < columns;
                        assert_memory_equal(out + (i * PITCH + j) * size,
                                            inside ? source + (j * rows + i) * size : none, size);
                    }
                }
            }
        }
    }
}

static void chunks_are_whole_tiles_of_a_transposed_tensor(void **state) {
    (void)state;
    static const struct {
        int64_t rows, columns; /* of the transposed tensor */
        bool whole_tiles;
    } cases[] = {{1536, 576, true},
                 {576, 1536, true},
                 {4096, 14336, true},
                 {64, 1 << 20, false},
                 {3, 5, true}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t shape[] = {cases[i].columns, cases[i].rows}, turn[] = {1, 0};
        const Recipe *plain = recipe_bytes(&arena, "", FERRY_F32, 2, shape);
        uint64_t chunk = recipe_chunk(recipe_permute(&arena, plain, turn));
        assert_true(chunk > 0 && chunk * 4 <= 1 << 22);
        assert_int_equal(chunk % (uint64_t)(cases[i].columns * 64) == 0, cases[i].whole_tiles);
        assert_true(recipe_chunk(plain) > 0);
    }
    assert_true(recipe_chunk(recipe_bytes(&arena, "", FERRY_F32, 0, NULL)) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_tensors_are_read_in_every_type),
        cmocka_unit_test(a_strided_copy_writes_its_block_and_no_more),
        cmocka_unit_test(chunks_are_whole_tiles_of_a_transposed_tensor),
    };
    return cmocka_run_group_tests_name("recipe_transpose", tests, NULL, free_arena);
}
