/* Added tokens: found in the text before anything else is done to it, or after it is normalized. */
#ifndef TEXT_ADDED_H
#define TEXT_ADDED_H

#include "base/map.h"
#include "text/model.h"
#include "text/normalizer.h"

typedef struct AddedToken {
    const char *content;
    const char *form; /* the content, normalized when the token asks for that */
    uint32_t id;
    bool single_word, left, right, normalized, special;
} AddedToken;

typedef struct Added {
    AddedToken *tokens;
    size_t count;
    Map by_content, by_id, special; /* AddedToken; the last has special ones by their content */
    Trie plain, normalized;         /* what to look for, with places in `tokens` */
    uint32_t limit;                 /* ids are below */
} Added;

/* The vocabulary and the normalizer must be there. */
void added_read(Settings *settings, const Doc *list, const Model *model,
                const Normalizer *normalizer, Work *work, Added *out);
void added_free(Added *added);

/* The id of an added token or NULL. */
const AddedToken *added_by_id(const Added *added, uint32_t id);

/* Make the pieces of an input: find the tokens that are looked for as they are, normalize what lies
 * between, and find the normalized ones. `input` is well-formed. */
void added_split(const Added *added, const Normalizer *normalizer, const Line *input, Work *work);

#endif
