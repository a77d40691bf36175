/* The chat templates of a checkpoint, with its special tokens. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H

#include "base/vec.h"
#include "text/template/template.h"
#include <ferry/text.h>

typedef struct ChatTemplate {
    const char *name;
    const Template *template;
} ChatTemplate;

struct ferry_chat {
    Arena arena;
    const char *path;
    VEC(ChatTemplate) templates;
    json_t *tokens; /* "bos_token": "<s>", ... */
};

#endif
