/* Reading ExecuTorch programs: what becomes of them, and what is wrong with those that are refused. That
 * every kernel computes the right numbers is tested against ExecuTorch. */
#include "check.h"
#include "base/file.h"
#include "format/executorch.h"
#include "format/flatbuffer.h"
#include "graph/program.h"
#include "source/executorch/executorch_read.h"

enum { MAX_VALUES = 16, MAX_CALLS = 8, GAP = 32, ALIGNMENT = 128 };

/* ---- a small program ---- */

/* One whose values, operators and instructions are added one by one. */
typedef struct Pte {
    FlatBuilder b;
    FlatRef values[MAX_VALUES], operators[MAX_CALLS], instructions[MAX_CALLS], delegates[1];
    uint32_t value_count, call_count, delegate_count;
} Pte;

static int32_t value(Pte *p, SlotKind kind, FlatRef content) {
    p->values[p->value_count] = FLAT_TABLE(&p->b, FLAT_8(0, kind), FLAT_REF(1, content));
    return (int32_t)p->value_count++;
}

static int32_t integer(Pte *p, int64_t number) {
    return value(p, SLOT_INT, FLAT_TABLE(&p->b, FLAT_64(0, number)));
}

/* float32[2, 3]; `place` in the arena, or `constant` in the file, where they are not 0. */
static int32_t matrix(Pte *p, uint32_t place, uint32_t constant) {
    static const int32_t sizes[] = {2, 3};
    static const uint8_t order[] = {0, 1};
    FlatRef where = place ? FLAT_TABLE(&p->b, FLAT_32(0, 1), FLAT_32(1, place)) : 0;
    FlatRef shape = flat_vector(&p->b, sizes, 4, 2), dims = flat_vector(&p->b, order, 1, 2);
    return value(p, SLOT_TENSOR,
                 FLAT_TABLE(&p->b, FLAT_8(0, 6), FLAT_REF(2, shape), FLAT_REF(3, dims),
                            FLAT_32(5, constant), FLAT_REF(6, where)));
}

static void instruct(Pte *p, uint8_t kind, uint32_t callee, const int32_t *args, size_t count) {
    FlatRef list = flat_vector(&p->b, args, 4, count);
    FlatRef call = FLAT_TABLE(&p->b, FLAT_32(0, callee), FLAT_REF(1, list));
    p->instructions[p->call_count++] = FLAT_TABLE(&p->b, FLAT_8(0, kind), FLAT_REF(1, call));
}

#define ARGS(...) (const int32_t[]){__VA_ARGS__}, COUNT(((const int32_t[]){__VA_ARGS__}))

static void call(Pte *p, const char *name, const int32_t *args, size_t count) {
    FlatRef text = flat_string(&p->b, name), overload = flat_string(&p->b, "out");
    p->operators[p->call_count] = FLAT_TABLE(&p->b, FLAT_REF(0, text), FLAT_REF(1, overload));
    instruct(p, PTE_CALL_KERNEL, p->call_count, args, count);
}

static void put(unsigned char *place, uint64_t number, size_t size) {
    for (size_t i = 0; i < size; i++) place[i] = (unsigned char)(number >> 8 * i);
}

/* The file, with one constant of 24 bytes; the caller frees it. */
static MappedFile finish(Pte *p, int32_t input, int32_t output) {
    const uint64_t offsets[] = {0, 0};
    FlatBuilder *b = &p->b;
    FlatRef none = flat_vector(b, NULL, 4, 0);
    FlatRef instructions = flat_refs(b, p->instructions, p->call_count);
    FlatRef chain = FLAT_TABLE(b, FLAT_REF(0, none), FLAT_REF(1, none), FLAT_REF(2, instructions));
    FlatRef chains = flat_refs(b, &chain, 1), values = flat_refs(b, p->values, p->value_count);
    FlatRef inputs = flat_vector(b, &input, 4, input >= 0), outputs = flat_vector(b, &output, 4, 1);
    FlatRef operators = flat_refs(b, p->operators, p->call_count);
    FlatRef delegates = flat_refs(b, p->delegates, p->delegate_count);
    FlatRef plan = FLAT_TABLE(b, FLAT_REF(2, values), FLAT_REF(3, inputs), FLAT_REF(4, outputs),
                              FLAT_REF(5, chains), FLAT_REF(6, operators), FLAT_REF(7, delegates));
    FlatRef plans = flat_refs(b, &plan, 1);
    FlatRef segment = FLAT_TABLE(b, FLAT_64(0, 0), FLAT_64(1, 24));
    FlatRef segments = flat_refs(b, &segment, 1), places = flat_vector(b, offsets, 8, 2);
    FlatRef constants = FLAT_TABLE(b, FLAT_REF(1, places));
    FlatRef root = FLAT_TABLE(b, FLAT_REF(1, plans), FLAT_REF(4, segments), FLAT_REF(5, constants));
    unsigned char *bytes = flat_finish(b, root, "ET12", GAP);
    assert_non_null(bytes);
    size_t base = (b->length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    unsigned char *file = calloc(1, base + 24);
    assert_non_null(file);
    memcpy(file, bytes, b->length);
    memcpy(file + 8, "eh00", 4);
    put(file + 12, GAP, 4);
    put(file + 16, b->length, 8);
    put(file + 24, base, 8);
    put(file + 32, 24, 8);
    flat_free(b);
    return (MappedFile){.path = "/nowhere/model.pte", .bytes = file, .size = base + 24};
}

/* ---- reading ---- */

static ferry_status read_file(const MappedFile *file, const PtePorts *ports, Buffer *text,
                              ferry_error *error) {
    static const PtePorts none;
    Program *program = program_new();
    assert_non_null(program);
    *error = (ferry_error){0};
    ferry_status status = executorch_read_file(file, ports ? ports : &none, program, error);
    if (status == FERRY_OK) {
        assert_ok(program_verify(program, "reading", error), error);
        if (text) program_print(text, program);
    }
    program_free(program);
    return status;
}

static void check_refused(Pte *p, int32_t input, int32_t output, ferry_status status,
                          const char *message) {
    MappedFile file = finish(p, input, output);
    ferry_error error;
    assert_fails(read_file(&file, NULL, NULL, &error), status, &error, message);
    assert_string_equal(error.where, "/nowhere/model.pte");
    free((void *)file.bytes);
}

/* x + constant */
static Pte sum(int32_t *input, int32_t *output) {
    Pte p = {0};
    *input = matrix(&p, 16, 0);
    int32_t constant = matrix(&p, 0, 1), one = integer(&p, 1);
    *output = matrix(&p, 64, 0);
    call(&p, "aten::add", ARGS(*input, constant, one, *output, *output));
    return p;
}

static void kernels_become_operations(void **state) {
    (void)state;
    int32_t input, output;
    Pte p = sum(&input, &output);
    MappedFile file = finish(&p, input, output);
    Buffer text = {0};
    ferry_error error;
    assert_ok(read_file(&file, NULL, &text, &error), &error);
    assert_contains(buffer_string(&text), "%constant : float32[2, 3]");
    assert_contains(buffer_string(&text), "aten::add.Tensor(%input_0, %constant) : float32[2, 3]");
    buffer_free(&text);
    free((void *)file.bytes);
}

static void ports_are_named_by_the_caller(void **state) {
    (void)state;
    int32_t input, output;
    Pte p = sum(&input, &output);
    MappedFile file = finish(&p, input, output);
    const ferry_port x = {.name = "x", .dtype = FERRY_F32, .rank = 2, .shape = {"2", "3"}};
    const ferry_port y = {.name = "y", .dtype = FERRY_F32, .rank = 2, .shape = {"2", "3"}};
    ferry_port other = x;
    PtePorts ports = {&x, &y, 1, 1};
    Buffer text = {0};
    ferry_error error;
    assert_ok(read_file(&file, &ports, &text, &error), &error);
    assert_contains(buffer_string(&text), "x: %x");
    assert_contains(buffer_string(&text), "y: %add");
    other.rank = 1;
    ports.inputs = &other;
    assert_fails(read_file(&file, &ports, NULL, &error), FERRY_BAD_FORMAT, &error,
                 "export.json says that the input \"x\" has rank 1");
    ports.output_count = 2;
    assert_fails(read_file(&file, &ports, NULL, &error), FERRY_BAD_FORMAT, &error,
                 "export.json names 1 inputs and 2 outputs, the program has 1 and 1");
    buffer_free(&text);
    free((void *)file.bytes);
}

static void an_elided_view_has_the_memory_of_its_base(void **state) {
    (void)state;
    Pte p = {0};
    int32_t x = matrix(&p, 16, 0), y = matrix(&p, 64, 0), view = matrix(&p, 64, 0);
    call(&p, "aten::abs", ARGS(x, y, y));
    MappedFile file = finish(&p, x, view);
    Buffer text = {0};
    ferry_error error;
    assert_ok(read_file(&file, NULL, &text, &error), &error);
    assert_contains(buffer_string(&text), "output_0: %view");
    buffer_free(&text);
    free((void *)file.bytes);
}

static void what_is_not_understood_is_named(void **state) {
    (void)state;
    Pte p = {0};
    int32_t x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    call(&p, "acme::twice", ARGS(x, y, y));
    check_refused(&p, x, y, FERRY_UNSUPPORTED,
                  "acme::twice.out: there is no support for the kernel");

    p = (Pte){0};
    x = matrix(&p, 16, 0);
    instruct(&p, 4, 0, ARGS(x));
    check_refused(&p, x, x, FERRY_UNSUPPORTED, "JumpFalseCall: control flow is not understood");

    p = (Pte){0};
    x = matrix(&p, 16, 0);
    FlatRef name = flat_string(&p.b, "AcmeBackend");
    p.delegates[p.delegate_count++] = FLAT_TABLE(&p.b, FLAT_REF(0, name));
    instruct(&p, PTE_CALL_DELEGATE, 0, ARGS(x));
    check_refused(&p, x, x, FERRY_UNSUPPORTED, "a delegate of the backend \"AcmeBackend\"");

    p = (Pte){0};
    x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    int32_t two = integer(&p, 2);
    call(&p, "aten::add", ARGS(x, x, two, y, y));
    check_refused(&p, x, y, FERRY_UNSUPPORTED, "aten::add.out: the value of argument 2");

    p = (Pte){0};
    x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    int32_t kept = matrix(&p, 128, 1);
    call(&p, "aten::abs", ARGS(kept, y, y));
    check_refused(&p, x, y, FERRY_UNSUPPORTED,
                  "the file does not say what \"state\" holds at first");
}

static void an_input_may_be_written(void **state) {
    (void)state;
    Pte p = {0};
    int32_t x = matrix(&p, 16, 0);
    call(&p, "aten::abs", ARGS(x, x, x));
    call(&p, "aten::neg", ARGS(x, x, x));
    MappedFile file = finish(&p, x, x);
    Buffer text = {0};
    ferry_error error;
    assert_ok(read_file(&file, NULL, &text, &error), &error);
    assert_contains(buffer_string(&text), "%neg = aten::neg(%abs)");
    assert_contains(buffer_string(&text), "# writes %input_0");
    buffer_free(&text);
    free((void *)file.bytes);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    Pte p = {0};
    int32_t x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    call(&p, "aten::abs", ARGS(y, y, y));
    check_refused(&p, x, y, FERRY_BAD_FORMAT, "the tensor 1 is read before it is made");

    p = (Pte){0};
    x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    call(&p, "aten::abs", ARGS(x, 77, 77));
    check_refused(&p, x, y, FERRY_BAD_FORMAT, "the value 77 is not in the table, which has 2");

    p = (Pte){0};
    x = matrix(&p, 16, 0), y = integer(&p, 5);
    call(&p, "aten::abs", ARGS(y, x, x));
    check_refused(&p, x, x, FERRY_BAD_FORMAT, "expected a tensor as the value 1, found an integer");

    p = (Pte){0};
    x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    call(&p, "aten::abs", ARGS(x, y));
    check_refused(&p, x, y, FERRY_BAD_FORMAT, "expected 3 arguments, found 2");

    p = (Pte){0};
    x = matrix(&p, 0, 9);
    check_refused(&p, -1, x, FERRY_BAD_FORMAT, "the constant 9 is not in the file");

    p = (Pte){0};
    x = matrix(&p, 16, 0), y = matrix(&p, 64, 0);
    call(&p, "aten::abs", ARGS(x, y, y));
    call(&p, "aten::neg", ARGS(x, y, y));
    check_refused(&p, x, y, FERRY_BAD_FORMAT, "the tensor 1 is written a second time");
}

static void the_header_is_checked(void **state) {
    (void)state;
    static const struct {
        size_t place, size;
        uint64_t number;
        ferry_status status;
        const char *message;
    } cases[] = {
        {4, 4, 0x58585858, FERRY_BAD_FORMAT, "expected the identifier ET12"},
        {8, 4, 0, FERRY_UNSUPPORTED, "has no extended header"},
        {12, 4, 8, FERRY_BAD_FORMAT, "the extended header is too short"},
        {16, 8, UINT64_MAX, FERRY_BAD_FORMAT, "the file has"},
        {24, 8, UINT64_MAX - 7, FERRY_BAD_FORMAT, "the file has"},
        {24, 8, 1, FERRY_BAD_FORMAT, "the file has"},
        {0, 4, UINT32_MAX, FERRY_BAD_FORMAT, "an offset leads outside"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        int32_t input, output;
        Pte p = sum(&input, &output);
        MappedFile file = finish(&p, input, output);
        ferry_error error;
        put((unsigned char *)file.bytes + cases[i].place, cases[i].number, cases[i].size);
        assert_fails(read_file(&file, NULL, NULL, &error), cases[i].status, &error,
                     cases[i].message);
        free((void *)file.bytes);
    }
}

/* Every byte of programs with kernels and with a delegate, changed in two ways; and every shorter file. */
static void no_damage_goes_unnoticed_or_further(void **state) {
    (void)state;
    static const char *const seeds[] = {"layers_portable", "layers_xnnpack"};
    Arena arena = {0};
    for (size_t s = 0; s < COUNT(seeds); s++) {
        MappedFile file;
        ferry_error error = {0};
        const char *path =
            arena_format(&arena, FERRY_ROOT "/tests/fuzz/corpus/executorch/%s", seeds[s]);
        assert_ok(file_map(path, &arena, &file, &error), &error);
        assert_ok(read_file(&file, NULL, NULL, &error), &error);
        for (size_t i = 0; i < 2 * file.size; i++) {
            unsigned char *copy = malloc(file.size);
            assert_non_null(copy);
            memcpy(copy, file.bytes, file.size);
            copy[i / 2] = (unsigned char)(i % 2 ? copy[i / 2] + 1 : copy[i / 2] ^ 0x80);
            const MappedFile damaged = {.path = path, .bytes = copy, .size = file.size};
            ferry_status status = read_file(&damaged, NULL, NULL, &error);
            assert_true(status == FERRY_OK || (status != FERRY_INTERNAL && *error.message));
            free(copy);
        }
        for (size_t size = 0; size < file.size; size += 7) {
            unsigned char *copy = malloc(size + 1);
            assert_non_null(copy);
            memcpy(copy, file.bytes, size);
            const MappedFile shorter = {.path = path, .bytes = copy, .size = size};
            assert_true(read_file(&shorter, NULL, NULL, &error) != FERRY_INTERNAL);
            free(copy);
        }
        file_unmap(&file);
    }
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_become_operations),
        cmocka_unit_test(ports_are_named_by_the_caller),
        cmocka_unit_test(an_elided_view_has_the_memory_of_its_base),
        cmocka_unit_test(what_is_not_understood_is_named),
        cmocka_unit_test(an_input_may_be_written),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(the_header_is_checked),
        cmocka_unit_test(no_damage_goes_unnoticed_or_further),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
