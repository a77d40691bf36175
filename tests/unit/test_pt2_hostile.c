/* A torch.export program with one value after another replaced by what does not belong there. Each must
 * load or be refused with a message, in little time and memory. */
#include "check.h"

#include "../fuzz/check_pt2.h"

#include <sys/resource.h>

enum { TRIALS = 2, SECONDS = 20, MEGABYTES = 1024 };

static const char *const replacements[] = {
    "null",
    "true",
    "-1",
    "9223372036854775807",
    "1e300",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[[1, {\"as_int\": -9223372036854775808}]]",
    "{\"as_int\": 4611686018427387904}",
    "{\"as_tensor\": {\"name\": \"x\"}}",
    "{\"as_expr\": {\"expr_str\": \"Mul(Symbol('s9'), Integer(4611686018427387904))\"}}",
};

typedef struct Trial {
    json_t *root;
    json_t *replacements[COUNT(replacements)];
    uint32_t count;
} Trial;

/* The archive as it is now, with the last replacement in its place. */
static void try_one(Trial *trial, const json_t *replacement) {
    ferry_error error;
    int descriptor = memfd_create("hostile.pt2", 0);
    assert_true(descriptor >= 0);
    archive_write(trial->root, descriptor);
    alarm(SECONDS); /* ends the process when the reader hangs */
    bool sound = archive_check(descriptor, &error);
    alarm(0);
    close(descriptor);
    if (!sound) {
        char *text = json_dumps(replacement, JSON_ENCODE_ANY);
        print_error("trial %u, with %s\n", trial->count, text);
        free(text);
    }
    assert_true(sound);
    trial->count++;
}

static json_t *next_replacement(Trial *trial) {
    return trial->replacements[trial->count % COUNT(replacements)];
}

/* Replace every value below `json`, one at a time, each by some of the replacements in turn. */
static void try_below(Trial *trial, json_t *json) {
    const char *key;
    json_t *item;
    void *next;
    json_object_foreach_safe(json, next, key, item) {
        json_incref(item);
        for (int i = 0; i < TRIALS; i++) {
            json_t *replacement = next_replacement(trial);
            json_object_set(json, key, replacement);
            try_one(trial, replacement);
        }
        json_object_set_new(json, key, item);
        try_below(trial, item);
    }
    for (size_t i = 0; i < json_array_size(json); i++) {
        item = json_incref(json_array_get(json, i));
        for (int k = 0; k < TRIALS; k++) {
            json_t *replacement = next_replacement(trial);
            json_array_set(json, i, replacement);
            try_one(trial, replacement);
        }
        json_array_set_new(json, i, item);
        try_below(trial, item);
    }
}

static json_t *read_seed(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/pt2/%s", FERRY_ROOT, name);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    return root;
}

static void any_value_of_a_program_can_be_wrong(void **state) {
    (void)state;
    struct rusage usage;
    Trial trial = {.root = read_seed("writes")};
    for (size_t i = 0; i < COUNT(replacements); i++) {
        trial.replacements[i] = json_loads(replacements[i], JSON_DECODE_ANY, NULL);
        assert_non_null(trial.replacements[i]);
    }
    try_below(&trial, trial.root);
    for (size_t i = 0; i < COUNT(replacements); i++) json_decref(trial.replacements[i]);
    json_decref(trial.root);
    assert_true(trial.count > 1000);
    getrusage(RUSAGE_SELF, &usage);
    assert_true(usage.ru_maxrss / 1024 < MEGABYTES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_value_of_a_program_can_be_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
