/* Unicode's normalization forms, as edits that say which character came from which. */
#ifndef TEXT_FORMS_H
#define TEXT_FORMS_H

#include "text/line.h"

typedef struct Form {
    bool compatible, composed; /* NFD: neither; NFKC: both */
} Form;

/* Append the edits that bring the text into a form; false, without edits, when it is in it. */
bool form_edits(Form form, const char *bytes, size_t length, Edits *edits);

#endif
