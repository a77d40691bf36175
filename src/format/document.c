#include "format/document.h"
#include "base/error.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum {
    MAX_DEPTH = 2048,
    INDEXED_FROM = 16, /* members; below, a search from the start is as fast */
    KNOWN_KEYS = 256,
};

typedef enum DocKind {
    DOC_NULL,
    DOC_BOOL,
    DOC_INTEGER,
    DOC_REAL,
    DOC_TEXT,
    DOC_ARRAY,
    DOC_OBJECT,
} DocKind;

typedef struct Member Member;

struct Doc {
    DocKind kind;
    uint32_t count;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text;
        const Doc *items;
        const struct Members *members;
    };
};

struct Member {
    const char *key;
    Doc value;
};

/* Of an object. With an index, slot s holds 1 + the place of a member, or 0. */
typedef struct Members {
    const Member *list;
    uint32_t *slots, mask;
} Members;

/* ---- looking ---- */

static bool is(const Doc *doc, DocKind kind) {
    return doc && doc->kind == kind;
}

static uint32_t hash(const char *text, size_t length) {
    uint32_t value = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < length; i++) value = (value ^ (unsigned char)text[i]) * 16777619u;
    return value ^ value >> 15;
}

/* The slot of a key: where it is, or the free one where it belongs. */
static uint32_t find_slot(const Members *members, const char *key) {
    uint32_t slot = hash(key, strlen(key)) & members->mask;
    while (members->slots[slot] && strcmp(members->list[members->slots[slot] - 1].key, key) != 0)
        slot = (slot + 1) & members->mask;
    return slot;
}

const Doc *doc_get(const Doc *object, const char *key) {
    if (!key || !is(object, DOC_OBJECT)) return NULL;
    const Members *members = object->members;
    if (members->slots) {
        uint32_t place = members->slots[find_slot(members, key)];
        return place ? &members->list[place - 1].value : NULL;
    }
    for (uint32_t i = 0; i < object->count; i++) {
        if (strcmp(members->list[i].key, key) == 0) return &members->list[i].value;
    }
    return NULL;
}

const Doc *doc_item(const Doc *array, size_t index) {
    return is(array, DOC_ARRAY) && index < array->count ? &array->items[index] : NULL;
}

const char *doc_key(const Doc *object, size_t index) {
    return is(object, DOC_OBJECT) && index < object->count ? object->members->list[index].key
                                                           : NULL;
}

const Doc *doc_value(const Doc *object, size_t index) {
    return is(object, DOC_OBJECT) && index < object->count ? &object->members->list[index].value
                                                           : NULL;
}

size_t doc_count(const Doc *doc) {
    return is(doc, DOC_ARRAY) || is(doc, DOC_OBJECT) ? doc->count : 0;
}

const char *doc_text(const Doc *doc) {
    return is(doc, DOC_TEXT) ? doc->text : NULL;
}

int64_t doc_integer(const Doc *doc) {
    return is(doc, DOC_INTEGER) ? doc->integer : 0;
}

double doc_number(const Doc *doc) {
    return is(doc, DOC_REAL) ? doc->real : (double)doc_integer(doc);
}

bool doc_bool(const Doc *doc) {
    return is(doc, DOC_BOOL) && doc->boolean;
}

bool doc_is_null(const Doc *doc) {
    return is(doc, DOC_NULL);
}

bool doc_is_bool(const Doc *doc) {
    return is(doc, DOC_BOOL);
}

bool doc_is_integer(const Doc *doc) {
    return is(doc, DOC_INTEGER);
}

bool doc_is_number(const Doc *doc) {
    return is(doc, DOC_INTEGER) || is(doc, DOC_REAL);
}

bool doc_is_text(const Doc *doc) {
    return is(doc, DOC_TEXT);
}

bool doc_is_array(const Doc *doc) {
    return is(doc, DOC_ARRAY);
}

bool doc_is_object(const Doc *doc) {
    return is(doc, DOC_OBJECT);
}

const char *doc_kind(const Doc *doc) {
    static const char *const names[] = {
        "null",     "a boolean", "an integer", "a number with a fraction",
        "a string", "an array",  "an object"};
    return doc ? names[doc->kind] : "nothing";
}

void doc_print_scalar(Buffer *out, const Doc *doc) {
    char number[32];
    switch (doc ? doc->kind : DOC_NULL) {
    case DOC_BOOL: buffer_text(out, doc->boolean ? "true" : "false"); break;
    case DOC_INTEGER: buffer_format(out, "%" PRId64, doc->integer); break;
    case DOC_REAL: /* recognizable as one, and exact */
        snprintf(number, sizeof number, "%.17g", doc->real);
        buffer_format(out, "%s%s", number, strpbrk(number, ".e") ? "" : ".0");
        break;
    case DOC_TEXT: buffer_json_string(out, doc->text); break;
    default: buffer_text(out, "null");
    }
}

/* ---- parsing ---- */

/* An array or object that is open: where its values begin among the pending ones. */
typedef struct Frame {
    size_t start;
    DocKind kind;
} Frame;

typedef struct Parse {
    Arena *arena;
    VEC(Member) pending; /* values whose container is open; in objects, with their keys */
    VEC(Frame) open;
    const char *key;               /* of the next value, in an object */
    const char *known[KNOWN_KEYS]; /* keys seen lately, by hash: most occur again and again */
    const char *problem;           /* why the parse was stopped; NULL: out of memory */
} Parse;

static int stop(Parse *p, const char *problem) {
    p->problem = problem;
    return 0;
}

static int add(Parse *p, Doc value) {
    VEC_PUSH(&p->pending, (Member){p->key, value});
    return !p->pending.failed;
}

static int take_null(void *context) {
    return add(context, (Doc){.kind = DOC_NULL});
}

static int take_boolean(void *context, int boolean) {
    return add(context, (Doc){.kind = DOC_BOOL, .boolean = boolean != 0});
}

static int take_number(void *context, const char *digits, size_t length) {
    Parse *p = context;
    char text[512];
    if (length >= sizeof text) return stop(p, "a number is too long");
    memcpy(text, digits, length);
    text[length] = '\0';
    errno = 0;
    if (strpbrk(text, ".eE")) {
        double real = strtod(text, NULL);
        bool infinite = errno == ERANGE && (real > 1 || real < -1);
        return infinite ? stop(p, "a number is out of range")
                        : add(p, (Doc){.kind = DOC_REAL, .real = real});
    }
    int64_t integer = strtoll(text, NULL, 10);
    return errno ? stop(p, "an integer does not fit 64 bits")
                 : add(p, (Doc){.kind = DOC_INTEGER, .integer = integer});
}

static int take_text(void *context, const unsigned char *bytes, size_t length) {
    Parse *p = context;
    if (memchr(bytes, 0, length)) return stop(p, "a string contains NUL");
    const char *text = arena_string_n(p->arena, (const char *)bytes, length);
    return text ? add(p, (Doc){.kind = DOC_TEXT, .text = text}) : 0;
}

static int take_key(void *context, const unsigned char *bytes, size_t length) {
    Parse *p = context;
    const char *text = (const char *)bytes;
    if (memchr(bytes, 0, length)) return stop(p, "a key contains NUL");
    const char **known = &p->known[hash(text, length) % KNOWN_KEYS];
    if (!*known || strncmp(*known, text, length) != 0 || (*known)[length])
        *known = arena_string_n(p->arena, text, length);
    p->key = *known;
    return p->key != NULL;
}

static int open_container(Parse *p, DocKind kind) {
    if (p->open.count == MAX_DEPTH) return stop(p, "nested too deeply");
    /* The container itself waits before its values, with its key. */
    if (!add(p, (Doc){.kind = kind})) return 0;
    VEC_PUSH(&p->open, (Frame){p->pending.count, kind});
    return !p->open.failed;
}

static int open_array(void *context) {
    return open_container(context, DOC_ARRAY);
}

static int open_object(void *context) {
    return open_container(context, DOC_OBJECT);
}

static int close_array(void *context) {
    Parse *p = context;
    Frame frame = p->open.items[--p->open.count];
    size_t count = p->pending.count - frame.start;
    Doc *items = ARENA_ARRAY(p->arena, Doc, count);
    if (!items) return 0;
    for (size_t i = 0; i < count; i++) items[i] = p->pending.items[frame.start + i].value;
    p->pending.count = frame.start;
    Doc *array = &p->pending.items[frame.start - 1].value;
    array->items = items;
    array->count = (uint32_t)count;
    return 1;
}

/* Index the members, or at least compare their keys; false when two have the same. */
static bool check_keys(Members *members, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        const char *key = members->list[i].key;
        if (members->slots) {
            uint32_t slot = find_slot(members, key);
            if (members->slots[slot]) return false;
            members->slots[slot] = i + 1;
        }
        for (uint32_t j = 0; !members->slots && j < i; j++) {
            if (strcmp(members->list[j].key, key) == 0) return false;
        }
    }
    return true;
}

static int close_object(void *context) {
    Parse *p = context;
    Frame frame = p->open.items[--p->open.count];
    size_t count = p->pending.count - frame.start;
    Members *members = ARENA_NEW(p->arena, Members);
    Member *list = ARENA_ARRAY(p->arena, Member, count);
    if (!members || !list) return 0;
    memcpy(list, p->pending.items + frame.start, count * sizeof *list);
    *members = (Members){.list = list};
    if (count >= INDEXED_FROM) {
        uint32_t size = INDEXED_FROM;
        while (size < 2 * count) size *= 2;
        members->mask = size - 1;
        members->slots = ARENA_ARRAY(p->arena, uint32_t, size);
        if (!members->slots) return 0;
    }
    if (!check_keys(members, (uint32_t)count)) return stop(p, "an object has a key twice");
    p->pending.count = frame.start;
    Doc *object = &p->pending.items[frame.start - 1].value;
    object->members = members;
    object->count = (uint32_t)count;
    return 1;
}

static ferry_status fail(const Parse *p, yajl_handle handle, const char *path,
                         const unsigned char *bytes, size_t length, ferry_error *error) {
    size_t place = yajl_get_bytes_consumed(handle), line = 1, column = 1;
    for (size_t i = 0; i < place && i < length; i++) {
        column = bytes[i] == '\n' ? 1 : column + 1;
        line += bytes[i] == '\n';
    }
    unsigned char *text = p->problem ? NULL : yajl_get_error(handle, 0, bytes, length);
    const char *problem = p->problem ? p->problem : text ? (const char *)text : "";
    ferry_status status =
        error_set(error, FERRY_BAD_FORMAT, path, "not valid JSON: %.*s at line %zu, column %zu",
                  (int)strcspn(problem, "\n"), *problem ? problem : "damaged", line, column);
    if (text) yajl_free_error(handle, text);
    return status;
}

ferry_status doc_parse(const char *path, const void *bytes, size_t length, Arena *arena,
                       const Doc **out, ferry_error *error) {
    static const yajl_callbacks callbacks = {
        .yajl_null = take_null,
        .yajl_boolean = take_boolean,
        .yajl_number = take_number,
        .yajl_string = take_text,
        .yajl_start_map = open_object,
        .yajl_map_key = take_key,
        .yajl_end_map = close_object,
        .yajl_start_array = open_array,
        .yajl_end_array = close_array,
    };
    Parse parse = {.arena = arena};
    *out = NULL;
    yajl_handle handle = yajl_alloc(&callbacks, NULL, &parse);
    if (!handle) return error_memory(error, path, 0);
    yajl_status result = yajl_parse(handle, bytes, length);
    if (result == yajl_status_ok) result = yajl_complete_parse(handle);
    Doc *root = NULL;
    if (result == yajl_status_ok && parse.pending.count == 1) root = ARENA_NEW(arena, Doc);
    ferry_status status = FERRY_OK;
    if (root) {
        *root = parse.pending.items[0].value;
        *out = root;
    } else if (arena->failed || parse.pending.failed || parse.open.failed) {
        status = error_memory(error, path, length);
    } else {
        status = fail(&parse, handle, path, bytes, length, error);
    }
    yajl_free(handle);
    VEC_FREE(&parse.pending);
    VEC_FREE(&parse.open);
    return status;
}
