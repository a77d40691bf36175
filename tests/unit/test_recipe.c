/* Weights as recipes, read through every window and compared with a naive computation. */
#include "check.h"
#include "base/dtype.h"
#include "graph/recipe.h"

/* A small tensor of integers, against which recipes are checked; every element is a whole number that
 * all types hold exactly. */
typedef struct Reference {
    uint32_t rank;
    int64_t shape[FERRY_MAX_RANK];
    int values[512];
} Reference;

static Arena arena;

static int64_t reference_count(const Reference *r) {
    int64_t count = 1;
    for (uint32_t d = 0; d < r->rank; d++) count *= r->shape[d];
    return count;
}

/* The row-major index split into one index for each dimension. */
static void unravel(const Reference *r, int64_t flat, int64_t *index) {
    for (uint32_t d = r->rank; d-- > 0;) {
        index[d] = flat % r->shape[d];
        flat /= r->shape[d];
    }
}

static int64_t ravel(const Reference *r, const int64_t *index) {
    int64_t flat = 0;
    for (uint32_t d = 0; d < r->rank; d++) flat = flat * r->shape[d] + index[d];
    return flat;
}

static Reference reference_make(uint32_t rank, const int64_t *shape, int first) {
    Reference r = {.rank = rank};
    for (uint32_t d = 0; d < rank; d++) r.shape[d] = shape[d];
    for (int64_t i = 0; i < reference_count(&r); i++) r.values[i] = (int)((i + first) % 120);
    return r;
}

static Reference reference_permute(const Reference *r, const int64_t *dims) {
    Reference out = {.rank = r->rank};
    for (uint32_t d = 0; d < r->rank; d++) out.shape[d] = r->shape[dims[d]];
    for (int64_t i = 0; i < reference_count(&out); i++) {
        int64_t index[FERRY_MAX_RANK], from[FERRY_MAX_RANK];
        unravel(&out, i, index);
        for (uint32_t d = 0; d < r->rank; d++) from[dims[d]] = index[d];
        out.values[i] = r->values[ravel(r, from)];
    }
    return out;
}

static Reference reference_slice(const Reference *r, uint32_t dim, int64_t start, int64_t end) {
    Reference out = *r;
    out.shape[dim] = end - start;
    for (int64_t i = 0; i < reference_count(&out); i++) {
        int64_t index[FERRY_MAX_RANK];
        unravel(&out, i, index);
        index[dim] += start;
        out.values[i] = r->values[ravel(r, index)];
    }
    return out;
}

static Reference reference_view(const Reference *r, uint32_t rank, const int64_t *shape) {
    Reference out = *r;
    out.rank = rank;
    for (uint32_t d = 0; d < rank; d++) out.shape[d] = shape[d];
    return out;
}

/* A recipe of the reference's values as `dtype`, one byte off alignment when `shift` is 1. */
static const Recipe *recipe_of(const Reference *r, ferry_dtype dtype, int shift) {
    int64_t count = reference_count(r);
    unsigned char *bytes = (unsigned char *)arena_alloc(&arena, (size_t)count * 8 + 1) + shift;
    dtype_convert(FERRY_I32, r->values, dtype, bytes, (size_t)count);
    const Recipe *recipe = recipe_bytes(&arena, bytes, dtype, r->rank, r->shape);
    assert_non_null(recipe);
    return recipe;
}

/* Every window of the recipe holds what the reference has there. */
static void assert_reads(const Recipe *recipe, const Reference *r) {
    int64_t count = reference_count(r);
    size_t size = ferry_dtype_size(recipe->dtype);
    assert_int_equal(recipe->rank, r->rank);
    for (uint32_t d = 0; d < r->rank; d++) assert_int_equal(recipe->shape[d], r->shape[d]);
    assert_int_equal(recipe_count(recipe), count);
    assert_int_equal(recipe_bytes_size(recipe), (size_t)count * size);
    for (int64_t first = 0; first <= count; first++) {
        for (int64_t length = 0; length <= count - first; length++) {
            unsigned char *raw = malloc((size_t)length * size + 1);
            double *found = malloc((size_t)length * sizeof *found + 1);
            recipe_read(recipe, (uint64_t)first, (uint64_t)length, raw);
            dtype_convert(recipe->dtype, raw, FERRY_F64, found, (size_t)length);
            for (int64_t i = 0; i < length; i++) {
                if (found[i] == r->values[first + i]) continue;
                fail_msg("element %lld: %g, expected %d", (long long)(first + i), found[i],
                         r->values[first + i]);
            }
            free(found);
            free(raw);
        }
    }
}

static int free_arena(void **state) {
    (void)state;
    arena_free(&arena);
    return 0;
}

static void a_scalar_and_an_empty_tensor_are_read(void **state) {
    (void)state;
    Reference scalar = reference_make(0, NULL, 7);
    const Recipe *recipe = recipe_of(&scalar, FERRY_F32, 0);
    assert_reads(recipe, &scalar);
    assert_reads(recipe_cast(&arena, recipe, FERRY_BF16), &scalar);
    assert_reads(recipe_permute(&arena, recipe, NULL), &scalar);
    assert_reads(recipe_view(&arena, recipe, 0, NULL), &scalar);
    Reference empty = reference_make(3, (int64_t[]){2, 0, 3}, 0);
    recipe = recipe_of(&empty, FERRY_F32, 0);
    assert_reads(recipe, &empty);
    Reference turned = reference_permute(&empty, (int64_t[]){2, 1, 0});
    recipe = recipe_permute(&arena, recipe, (int64_t[]){2, 1, 0});
    assert_reads(recipe, &turned);
    Reference flat = reference_view(&turned, 1, (int64_t[]){0});
    assert_reads(recipe_view(&arena, recipe, 1, (int64_t[]){0}), &flat);
}

static void permuted_and_sliced_tensors_are_read_in_every_type(void **state) {
    (void)state;
    static const int64_t orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const ferry_dtype dtypes[] = {FERRY_U8,  FERRY_I16, FERRY_I32, FERRY_I64,
                                         FERRY_F16, FERRY_F32, FERRY_F64};
    for (size_t i = 0; i < COUNT(orders); i++) {
        Reference r = reference_make(3, (int64_t[]){3, 4, 5}, 0);
        const Recipe *recipe = recipe_of(&r, dtypes[i], (int)i & 1);
        assert_reads(recipe, &r);
        r = reference_permute(&r, orders[i]);
        recipe = recipe_permute(&arena, recipe, orders[i]);
        assert_reads(recipe, &r);
        r = reference_slice(&r, 1, 1, r.shape[1]);
        recipe = recipe_slice(&arena, recipe, 1, 1, recipe->shape[1]);
        assert_reads(recipe, &r);
        r = reference_permute(&r, orders[COUNT(orders) - 1 - i]);
        recipe = recipe_permute(&arena, recipe, orders[COUNT(orders) - 1 - i]);
        recipe = recipe_cast(&arena, recipe, dtypes[i + 1]);
        assert_reads(recipe, &r);
        r = reference_slice(&r, 0, 0, 1);
        recipe = recipe_slice(&arena, recipe, 0, 0, 1);
        assert_reads(recipe, &r);
        r = reference_slice(&r, 2, 1, 1);
        recipe = recipe_slice(&arena, recipe, 2, 1, 1);
        assert_reads(recipe, &r);
    }
}

static void contiguous_tensors_can_be_viewed_and_others_not(void **state) {
    (void)state;
    Reference r = reference_make(2, (int64_t[]){6, 8}, 3);
    const Recipe *recipe = recipe_of(&r, FERRY_F32, 0);
    Reference heads = reference_view(&r, 3, (int64_t[]){2, 3, 8});
    const Recipe *viewed = recipe_view(&arena, recipe, 3, heads.shape);
    assert_reads(viewed, &heads);
    heads = reference_permute(&heads, (int64_t[]){1, 0, 2});
    viewed = recipe_permute(&arena, viewed, (int64_t[]){1, 0, 2});
    assert_reads(viewed, &heads);
    assert_null(recipe_view(&arena, viewed, 2, (int64_t[]){6, 8}));
    Reference rows = reference_slice(&r, 0, 2, 5);
    const Recipe *sliced = recipe_slice(&arena, recipe, 0, 2, 5);
    rows = reference_view(&rows, 1, (int64_t[]){24});
    assert_reads(recipe_view(&arena, sliced, 1, (int64_t[]){24}), &rows);
    assert_null(recipe_view(&arena, recipe_slice(&arena, recipe, 1, 2, 5), 1, (int64_t[]){18}));
    Reference column = reference_slice(&r, 1, 2, 3);
    sliced = recipe_slice(&arena, recipe, 1, 2, 3);
    assert_reads(sliced, &column);
}

static void a_dimension_is_selected_or_added(void **state) {
    (void)state;
    const int64_t shape[] = {2, 3, 4};
    Reference whole = reference_make(3, shape, 5);
    float values[24];
    for (int i = 0; i < 24; i++) values[i] = (float)whole.values[i];
    const Recipe *recipe = recipe_bytes(&arena, values, FERRY_F32, 3, shape);
    for (uint32_t dim = 0; dim < 3; dim++) {
        Reference part = reference_slice(&whole, dim, 1, 2), flat = part;
        flat.rank = 2;
        for (uint32_t d = dim; d < 2; d++) flat.shape[d] = shape[d + 1];
        const Recipe *selected = recipe_select(&arena, recipe, dim, 1);
        assert_reads(selected, &flat);
        assert_reads(recipe_unsqueeze(&arena, selected, dim), &part);
    }
    Reference column = whole;
    column.rank = 4;
    column.shape[3] = 1;
    assert_reads(recipe_unsqueeze(&arena, recipe, 3), &column);
}

static void long_strided_rows_are_read_in_blocks(void **state) {
    (void)state;
    enum { ROWS = 3, COLUMNS = 5000 };
    int32_t *data = arena_alloc(&arena, ROWS * COLUMNS * sizeof *data);
    for (int i = 0; i < ROWS * COLUMNS; i++) data[i] = i;
    const Recipe *recipe = recipe_bytes(&arena, data, FERRY_I32, 2, (int64_t[]){COLUMNS, ROWS});
    recipe = recipe_permute(&arena, recipe, (int64_t[]){1, 0});
    recipe = recipe_cast(&arena, recipe, FERRY_I64);
    int64_t *found = arena_alloc(&arena, ROWS * COLUMNS * sizeof *found);
    recipe_read(recipe, 0, ROWS * COLUMNS, found);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        assert_int_equal(found[i], i % COLUMNS * ROWS + i / COLUMNS);
    }
}

/* Two parts of 2 and 3 along dimension 1, as a fused projection has them. */
static const Recipe *two_parts(Reference *r) {
    *r = reference_make(3, (int64_t[]){3, 5, 2}, 0);
    Reference left = reference_slice(r, 1, 0, 2), right = reference_slice(r, 1, 2, 5);
    RecipePart *parts = ARENA_ARRAY(&arena, RecipePart, 2);
    parts[0] = recipe_of(&left, FERRY_F16, 0)->parts[0];
    parts[1] = recipe_of(&right, FERRY_F16, 1)->parts[0];
    Recipe *recipe = arena_alloc(&arena, sizeof *recipe);
    *recipe = (Recipe){.dtype = FERRY_F32,
                       .rank = 3,
                       .shape = {3, 5, 2},
                       .dim = 1,
                       .part_count = 2,
                       .parts = parts};
    return recipe;
}

static void parts_follow_each_other(void **state) {
    (void)state;
    Reference whole;
    const Recipe *recipe = two_parts(&whole);
    assert_reads(recipe, &whole);
    static const int64_t orders[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
    for (size_t i = 0; i < COUNT(orders); i++) {
        Reference turned = reference_permute(&whole, orders[i]);
        assert_reads(recipe_permute(&arena, recipe, orders[i]), &turned);
    }
    for (int64_t start = 0; start <= 5; start++) {
        for (int64_t end = start; end <= 5; end++) {
            Reference part = reference_slice(&whole, 1, start, end);
            const Recipe *sliced = recipe_slice(&arena, recipe, 1, start, end);
            assert_reads(sliced, &part);
            assert_int_equal(sliced->part_count, start < 2 && end > 2 ? 2 : 1);
        }
    }
    Reference inner = reference_slice(&whole, 0, 1, 3);
    assert_reads(recipe_slice(&arena, recipe, 0, 1, 3), &inner);
    inner = reference_slice(&whole, 2, 1, 1);
    assert_reads(recipe_slice(&arena, recipe, 2, 1, 1), &inner);
    assert_null(recipe_view(&arena, recipe, 1, (int64_t[]){30}));
}

static void tensors_are_stacked_along_a_new_dimension(void **state) {
    (void)state;
    enum { COUNT_OF_ITEMS = 5 };
    const int64_t shape[] = {3, 4}, turned[] = {0, 2, 1};
    Reference whole = {.rank = 3, .shape = {COUNT_OF_ITEMS, 3, 4}};
    const Recipe *items[COUNT_OF_ITEMS];
    for (int i = 0; i < COUNT_OF_ITEMS; i++) {
        Reference item = reference_make(2, shape, 7 * i);
        for (int j = 0; j < 12; j++) whole.values[12 * i + j] = item.values[j];
        items[i] = recipe_of(&item, FERRY_BF16, i % 2);
    }
    const Recipe *stacked = recipe_stack(&arena, items, COUNT_OF_ITEMS);
    assert_reads(stacked, &whole);
    assert_reads(recipe_cast(&arena, stacked, FERRY_F32), &whole);
    Reference other = reference_permute(&whole, turned);
    const Recipe *permuted = recipe_permute(&arena, stacked, turned);
    assert_reads(permuted, &other);
    for (int i = 0; i < COUNT_OF_ITEMS; i++) {
        Reference one = reference_slice(&other, 0, i, i + 1);
        const Recipe *slice = recipe_slice(&arena, permuted, 0, i, i + 1);
        assert_reads(slice, &one);
        Reference flat = reference_view(&one, 2, (int64_t[]){4, 3});
        assert_reads(recipe_select(&arena, slice, 0, 0), &flat);
    }
    assert_null(recipe_stack(&arena, items, 0));
    items[3] = recipe_cast(&arena, items[3], FERRY_F32);
    assert_null(recipe_stack(&arena, items, COUNT_OF_ITEMS));
    items[3] = recipe_of(&whole, FERRY_BF16, 0);
    assert_null(recipe_stack(&arena, items, COUNT_OF_ITEMS));
    Reference item = reference_make(2, shape, 0);
    items[3] = recipe_of(&item, FERRY_F32, 0);
    assert_null(recipe_stack(&arena, items, COUNT_OF_ITEMS));
}

static void a_cast_that_would_lose_the_rounding_is_refused(void **state) {
    (void)state;
    static const struct {
        ferry_dtype from, through, to;
        bool works;
    } cases[] = {
        {FERRY_BF16, FERRY_F32, FERRY_F16, true},    {FERRY_F16, FERRY_F32, FERRY_F16, true},
        {FERRY_F32, FERRY_F16, FERRY_F32, false},    {FERRY_F32, FERRY_BF16, FERRY_F16, false},
        {FERRY_F16, FERRY_BF16, FERRY_F32, false},   {FERRY_F64, FERRY_F32, FERRY_F16, false},
        {FERRY_F32, FERRY_F64, FERRY_F16, true},     {FERRY_I64, FERRY_F64, FERRY_I64, false},
        {FERRY_I64, FERRY_F32, FERRY_I64, false},    {FERRY_I64, FERRY_I32, FERRY_I64, false},
        {FERRY_I32, FERRY_I64, FERRY_F32, true},     {FERRY_I32, FERRY_F64, FERRY_F32, true},
        {FERRY_F32, FERRY_I64, FERRY_F32, false},    {FERRY_F32, FERRY_BOOL, FERRY_F32, false},
        {FERRY_BOOL, FERRY_F16, FERRY_F32, true},    {FERRY_F32, FERRY_F32, FERRY_F16, true},
        {FERRY_F8_E4M3, FERRY_F32, FERRY_F16, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const Recipe *recipe = recipe_bytes(&arena, "\0\0\0\0\0\0\0", cases[i].from, 0, NULL);
        const Recipe *first = recipe_cast(&arena, recipe, cases[i].through);
        assert_non_null(first);
        const Recipe *second = recipe_cast(&arena, first, cases[i].to);
        if ((second != NULL) != cases[i].works) fail_msg("case %zu", i);
        if (second) assert_int_equal(second->dtype, cases[i].to);
    }
}

static void only_one_unconverted_run_of_a_file_is_verbatim(void **state) {
    (void)state;
    static const unsigned char bytes[128];
    const MappedFile file = {.path = "weights", .bytes = bytes, .size = sizeof bytes};
    const MappedFile *found = NULL;
    uint64_t offset = 0;
    const int64_t shape[] = {4, 6};
    const Recipe *recipe = recipe_file(&arena, &file, 8, FERRY_F32, 2, shape);
    assert_true(recipe_is_verbatim(recipe, &found, &offset));
    assert_ptr_equal(found, &file);
    assert_int_equal(offset, 8);
    assert_true(recipe_is_verbatim(recipe_slice(&arena, recipe, 0, 1, 3), &found, &offset));
    assert_int_equal(offset, 8 + 6 * 4);
    assert_true(
        recipe_is_verbatim(recipe_view(&arena, recipe, 1, (int64_t[]){24}), &found, &offset));
    assert_false(recipe_is_verbatim(recipe_slice(&arena, recipe, 1, 1, 3), &found, &offset));
    assert_false(
        recipe_is_verbatim(recipe_permute(&arena, recipe, (int64_t[]){1, 0}), &found, &offset));
    assert_false(recipe_is_verbatim(recipe_cast(&arena, recipe, FERRY_F16), &found, &offset));
    assert_false(
        recipe_is_verbatim(recipe_bytes(&arena, bytes, FERRY_F32, 2, shape), &found, &offset));
    const Recipe *empty = recipe_slice(&arena, recipe, 0, 4, 4);
    assert_true(recipe_is_verbatim(empty, &found, &offset));
    assert_true(offset <= sizeof bytes);
    assert_int_equal(recipe_bytes_size(empty), 0);
}

static void recipes_are_equal_when_they_read_the_same(void **state) {
    (void)state;
    static const unsigned char bytes[96];
    const int64_t shape[] = {4, 6}, turn[] = {1, 0};
    const Recipe *a = recipe_bytes(&arena, bytes, FERRY_F32, 2, shape);
    assert_true(recipe_equal(a, recipe_bytes(&arena, bytes, FERRY_F32, 2, shape)));
    assert_false(recipe_equal(a, recipe_bytes(&arena, bytes + 1, FERRY_F32, 2, shape)));
    assert_false(recipe_equal(a, recipe_bytes(&arena, bytes, FERRY_I32, 2, shape)));
    assert_false(recipe_equal(a, recipe_cast(&arena, a, FERRY_F16)));
    assert_false(recipe_equal(a, recipe_permute(&arena, a, turn)));
    assert_true(recipe_equal(a, recipe_permute(&arena, recipe_permute(&arena, a, turn), turn)));
    assert_false(recipe_equal(a, recipe_view(&arena, a, 1, (int64_t[]){24})));
    assert_true(
        recipe_equal(a, recipe_view(&arena, recipe_view(&arena, a, 1, (int64_t[]){24}), 2, shape)));
    assert_false(recipe_equal(a, recipe_slice(&arena, a, 0, 0, 3)));
    assert_true(recipe_equal(a, recipe_slice(&arena, a, 0, 0, 4)));
    Reference r;
    const Recipe *parts = two_parts(&r);
    assert_true(recipe_equal(parts, recipe_slice(&arena, parts, 1, 0, 5)));
    assert_false(recipe_equal(parts, recipe_slice(&arena, parts, 1, 0, 4)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scalar_and_an_empty_tensor_are_read),
        cmocka_unit_test(permuted_and_sliced_tensors_are_read_in_every_type),
        cmocka_unit_test(contiguous_tensors_can_be_viewed_and_others_not),
        cmocka_unit_test(a_dimension_is_selected_or_added),
        cmocka_unit_test(long_strided_rows_are_read_in_blocks),
        cmocka_unit_test(parts_follow_each_other),
        cmocka_unit_test(tensors_are_stacked_along_a_new_dimension),
        cmocka_unit_test(a_cast_that_would_lose_the_rounding_is_refused),
        cmocka_unit_test(only_one_unconverted_run_of_a_file_is_verbatim),
        cmocka_unit_test(recipes_are_equal_when_they_read_the_same),
    };
    return cmocka_run_group_tests_name("recipe", tests, NULL, free_arena);
}
