/* A text on its way to tokens: the normalized line, cut into pieces. */
#ifndef TEXT_WORK_H
#define TEXT_WORK_H

#include "text/line.h"
#include "text/regex.h"
#include "text/trie.h"
#include <ferry/status.h>

/* A piece of the line: bytes [begin, end). */
typedef struct Piece {
    uint32_t begin, end;
    uint32_t origin; /* where its original begins in the input */
    uint32_t token;  /* an added token that was found there, or TRIE_NONE */
} Piece;

typedef VEC(Piece) Pieces;

/* A part of a piece that a pattern matched, or that lies between matches. */
typedef struct Match {
    uint32_t begin, end;
    bool is_match;
} Match;

typedef VEC(Match) Matches;

typedef enum SplitBehavior {
    SPLIT_REMOVED,
    SPLIT_ISOLATED,
    SPLIT_MERGED_WITH_PREVIOUS,
    SPLIT_MERGED_WITH_NEXT,
    SPLIT_CONTIGUOUS,
    SPLIT_BEHAVIORS,
} SplitBehavior;

extern const char *const split_behavior_names[SPLIT_BEHAVIORS];

typedef struct Work {
    Line line;     /* what the pieces are of */
    Line spare[2]; /* where the next step writes */
    Pieces pieces, cut;
    Matches matches;
    Edits edits;
    const char *path; /* of the tokenizer, for messages */
    ferry_status status;
    ferry_error *error;
} Work;

void work_free(Work *work);

/* Was memory exhausted anywhere? */
bool work_failed(const Work *work);

/* Find what matches in a piece: all of [begin, end), in order, as matches and what lies between. */
typedef void WorkFind(Work *work, const void *what, uint32_t begin, uint32_t end);

WorkFind work_find_regex; /* a Regex */
WorkFind work_find_class; /* a WorkClass: each character of it is a match */

typedef bool WorkClass(uint32_t c, uint32_t wanted);

typedef struct WorkClassOf {
    WorkClass *has;
    uint32_t wanted;
} WorkClassOf;

/* Cut every piece that is not a token. `invert`: what lies between the matches are the matches. */
void work_split(Work *work, WorkFind *find, const void *what, SplitBehavior behavior, bool invert);

/* Add a piece that is cut from one, unless it is empty. */
void work_cut(Work *work, uint32_t begin, uint32_t end);

/* Put the pieces that were cut in place of the pieces. */
void work_take_cut(Work *work);

/* Rewrite every piece that is not a token: `rewrite` appends its new text to `out`. */
typedef void WorkRewrite(Work *work, const void *what, const Piece *piece, Line *out);
void work_rewrite(Work *work, WorkRewrite *rewrite, const void *what);

#endif
