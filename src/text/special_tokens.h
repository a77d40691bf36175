/* The special tokens of a checkpoint by their names in its configuration: "bos_token", "image_token", ... */
#ifndef TEXT_SPECIAL_TOKENS_H
#define TEXT_SPECIAL_TOKENS_H

#include "format/json.h"

/* Read tokenizer_config.json of a directory, or what stands for it in a GGUF file, and, as Transformers does, special_tokens_map.json where the
 * former does not list the added tokens. `*tokens` is an object of strings, `*config` the first file or
 * NULL; both are the caller's (json_decref), also after a failure. */
ferry_status special_tokens_read(const char *directory, json_t **tokens, json_t **config,
                                 ferry_error *error);

#endif
