/* The prompt of `ferry generate`. */
#ifndef CLI_PROMPT_H
#define CLI_PROMPT_H

#include "cli/cli.h"

typedef struct PromptArgs {
    const char *directory, *text; /* text NULL: a sound alone */
    StringList images, sounds;
    bool chat;
} PromptArgs;

typedef struct Prompt {
    const ferry_tensors *inputs; /* of the model */
    ferry_tokenizer *tokenizer;
    char *text;
    ferry_processor *processor;
    ferry_processed *processed;
    ferry_tensors *made;
} Prompt;

/* Make the inputs. The prompt is to be freed, after an error too. */
ferry_status prompt_make(const PromptArgs *args, Prompt *prompt, ferry_error *error);
void prompt_free(Prompt *prompt);

#endif
