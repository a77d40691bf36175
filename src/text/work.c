#include "text/work.h"
#include "text/unicode.h"

#include <stdlib.h>

const char *const split_behavior_names[SPLIT_BEHAVIORS] = {
    "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};

void work_free(Work *work) {
    line_free(&work->line);
    line_free(&work->spare[0]);
    line_free(&work->spare[1]);
    VEC_FREE(&work->pieces);
    VEC_FREE(&work->cut);
    VEC_FREE(&work->matches);
    VEC_FREE(&work->edits);
}

bool work_failed(const Work *work) {
    return work->line.failed || work->spare[0].failed || work->spare[1].failed ||
           work->pieces.failed || work->cut.failed || work->matches.failed || work->edits.failed;
}

static void add_match(Work *work, size_t begin, size_t end, bool is_match) {
    VEC_PUSH(&work->matches, (Match){(uint32_t)begin, (uint32_t)end, is_match});
}

void work_find_regex(Work *work, const void *what, uint32_t begin, uint32_t end) {
    RegexWalk walk = regex_walk(what, work->line.bytes + begin, end - begin);
    size_t last = 0;
    while (regex_next(&walk)) {
        if (last != walk.begin) add_match(work, begin + last, begin + walk.begin, false);
        add_match(work, begin + walk.begin, begin + walk.end, true);
        last = walk.end;
    }
    if (last != walk.length) add_match(work, begin + last, end, false);
    if (walk.problem && work->status == FERRY_OK)
        work->status = regex_problem(&walk, work->path, work->error);
}

void work_find_class(Work *work, const void *what, uint32_t begin, uint32_t end) {
    const WorkClassOf *class = what;
    const char *bytes = work->line.bytes;
    uint32_t last = begin;
    for (uint32_t i = begin, next; i < end; i = next) {
        next = i + (uint32_t)utf8_size(bytes[i]);
        if (!class->has(utf8_get(bytes + i), class->wanted)) continue;
        if (last < i) add_match(work, last, i, false);
        add_match(work, i, next, true);
        last = next;
    }
    if (last < end) add_match(work, last, end, false);
}

void work_cut(Work *work, uint32_t begin, uint32_t end) {
    if (begin < end && end <= work->line.length)
        VEC_PUSH(&work->cut, (Piece){begin, end, work->line.spans[begin].begin, TRIE_NONE});
}

void work_take_cut(Work *work) {
    Pieces old = work->pieces;
    work->pieces = work->cut;
    work->cut = old;
    work->cut.count = 0;
}

/* Merge matches as the behavior says; what is left of them are the pieces. */
static void merge(Matches *matches, SplitBehavior behavior) {
    size_t out = 0;
    bool before = false; /* was the last one a match? */
    Match *items = matches->items;
    for (size_t i = 0; i < matches->count; i++) {
        Match match = items[i];
        bool joins =
            behavior == SPLIT_CONTIGUOUS ? match.is_match == before : match.is_match && !before;
        if (joins && out > 0)
            items[out - 1].end = match.end;
        else
            items[out++] = match;
        before = match.is_match;
    }
    matches->count = out;
}

static void merge_with_next(Matches *matches) {
    size_t out = matches->count;
    bool before = false;
    Match *items = matches->items;
    for (size_t i = matches->count; i-- > 0;) {
        Match match = items[i];
        if (match.is_match && !before && out < matches->count)
            items[out].begin = match.begin;
        else
            items[--out] = match;
        before = match.is_match;
    }
    memmove(items, items + out, (matches->count - out) * sizeof *items);
    matches->count -= out;
}

void work_split(Work *work, WorkFind *find, const void *what, SplitBehavior behavior, bool invert) {
    for (size_t p = 0; p < work->pieces.count && work->status == FERRY_OK; p++) {
        Piece piece = work->pieces.items[p];
        if (piece.token != TRIE_NONE) {
            VEC_PUSH(&work->cut, piece);
            continue;
        }
        Matches *matches = &work->matches;
        matches->count = 0;
        find(work, what, piece.begin, piece.end);
        for (size_t i = 0; invert && i < matches->count; i++)
            matches->items[i].is_match = !matches->items[i].is_match;
        if (matches->count > 0 && behavior == SPLIT_MERGED_WITH_NEXT)
            merge_with_next(matches);
        else if (behavior == SPLIT_MERGED_WITH_PREVIOUS || behavior == SPLIT_CONTIGUOUS)
            merge(matches, behavior);
        for (size_t i = 0; i < matches->count; i++) {
            Match match = matches->items[i];
            if (behavior != SPLIT_REMOVED || !match.is_match)
                work_cut(work, match.begin, match.end);
        }
    }
    work_take_cut(work);
}

void work_rewrite(Work *work, WorkRewrite *rewrite, const void *what) {
    Line *out = &work->spare[0];
    out->length = 0;
    for (size_t i = 0; i < work->pieces.count; i++) {
        Piece piece = work->pieces.items[i];
        uint32_t begin = (uint32_t)out->length;
        if (piece.token == TRIE_NONE)
            rewrite(work, what, &piece, out);
        else
            line_copy(out, &work->line, piece.begin, piece.end);
        piece.begin = begin;
        piece.end = (uint32_t)out->length;
        if (begin < piece.end) VEC_PUSH(&work->cut, piece);
    }
    Line old = work->line;
    work->line = *out;
    *out = old;
    work_take_cut(work);
}
