#include "text/forms.h"
#include "text/unicode.h"

/* Put the marks from `start` on into canonical order: by combining class, else as they stand. */
static void order_marks(Edit *edits, size_t start, size_t end) {
    for (size_t i = start + 1; i < end; i++) {
        Edit edit = edits[i];
        int class = char_combining_class(edit.c);
        size_t k = i;
        for (; k > start && char_combining_class(edits[k - 1].c) > class; k--)
            edits[k] = edits[k - 1];
        edits[k] = edit;
    }
}

/* Marks of one base beyond this many are not text; ordering them must not take quadratic time. */
enum { MAX_MARKS = 1024 };

static void decompose(Form form, const char *bytes, size_t length, Edits *edits) {
    size_t marks = edits->count; /* where the marks after the last base begin */
    for (size_t i = 0; i < length; i += utf8_size(bytes[i])) {
        uint32_t parts[32];
        size_t count = char_decompose(utf8_get(bytes + i), form.compatible, parts);
        for (size_t k = 0; k < count; k++) {
            if (char_combining_class(parts[k]) == 0 || edits->count - marks > MAX_MARKS) {
                order_marks(edits->items, marks, edits->count);
                marks = edits->count + (char_combining_class(parts[k]) == 0);
            }
            VEC_PUSH(edits, (Edit){parts[k], k > 0});
        }
    }
    if (!edits->failed) order_marks(edits->items, marks, edits->count);
}

/* Compose in place; a composed character replaces what it was made from. */
static void compose(Edits *edits) {
    size_t out = 0, base = SIZE_MAX; /* where the last base stands in what is written */
    int last = -1; /* combining class of what stands between the base and here; -1: nothing does */
    for (size_t i = 0; i < edits->count; i++) {
        Edit edit = edits->items[i];
        int class = char_combining_class(edit.c);
        uint32_t whole = 0;
        if (base != SIZE_MAX && last < class) whole = char_compose(edits->items[base].c, edit.c);
        if (whole) {
            edits->items[base].c = whole;
            edits->items[base].change += edit.change - 1;
            continue;
        }
        if (class == 0) {
            base = out;
            last = -1;
        } else if (base != SIZE_MAX) {
            last = class;
        }
        edits->items[out++] = edit;
    }
    edits->count = out;
}

bool form_edits(Form form, const char *bytes, size_t length, Edits *edits) {
    /* ASCII is in every form, and what comes before the combining marks in NFC. */
    unsigned char limit = form.composed && !form.compatible ? 0xcc : 0x80;
    size_t i = 0;
    while (i < length && (unsigned char)bytes[i] < limit) i++;
    if (i == length) return false;
    decompose(form, bytes, length, edits);
    if (form.composed && !edits->failed) compose(edits);
    return true;
}
