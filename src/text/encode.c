/* Encoding: normalize, cut, look up, add what belongs around. */
#include "base/error.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#include <stdlib.h>

enum { MAX_TEXT = 1 << 30 };

static ferry_status set_input(ferry_tokenizer *t, const char *text, size_t length,
                              ferry_error *error) {
    size_t place = 0;
    if (length > MAX_TEXT)
        return error_set(error, FERRY_UNSUPPORTED, t->path,
                         "the text has %zu bytes; expected at most %d", length, MAX_TEXT);
    if (!utf8_check(text, length, &place))
        return error_set(error, FERRY_INVALID_ARGUMENT, t->path,
                         "the text is not UTF-8: byte 0x%02x at offset %zu",
                         (unsigned char)text[place], place);
    Line *line = &t->input;
    line->length = 0;
    if (!line_reserve(line, length + 1)) return error_memory(error, t->path, length);
    if (length) memcpy(line->bytes, text, length);
    for (size_t i = 0, size; i < length; i += size) {
        size = utf8_size(text[i]);
        for (size_t k = 0; k < size; k++)
            line->spans[i + k] = (Span){(uint32_t)i, (uint32_t)(i + size)};
    }
    line->length = length;
    return FERRY_OK;
}

static bool is_blank(uint32_t c) {
    return c == 0x120 /* a space, byte-level */ || char_is_space(c);
}

/* Count the blanks that a token begins and ends with. */
static void count_blanks(const char *text, size_t length, Encoded *token) {
    size_t before = 0, after = 0;
    for (size_t i = 0; i < length && is_blank(utf8_get(text + i)); i += utf8_size(text[i]))
        before++;
    for (size_t end = length; end > 0; after++) {
        end = utf8_before(text, end);
        if (!is_blank(utf8_get(text + end))) break;
    }
    token->before = (uint16_t)(before < UINT16_MAX ? before : UINT16_MAX);
    token->after = (uint16_t)(after < UINT16_MAX ? after : UINT16_MAX);
}

/* Add a token of a piece; `text` is what it is called when the vocabulary does not say it. */
static void put_token(ferry_tokenizer *t, const Piece *piece, Token token, const char *text) {
    const Span *spans = t->work.line.spans + piece->begin;
    Encoded encoded = {.id = token.id, .second = t->post.ends.count > 0};
    encoded.type = encoded.second;
    /* Affixes that fell back to bytes stand for nothing in the text. */
    uint32_t length = piece->end - piece->begin;
    uint32_t begin = token.begin < length ? token.begin : length - 1;
    uint32_t end = token.end < length ? token.end : length;
    encoded.span = (Span){spans[begin].begin, spans[end > begin ? end - 1 : begin].end};
    if (t->trims) {
        const char *called = text ? text : vocab_text(&t->model->vocab, token.id);
        count_blanks(called, text ? token.end - token.begin : strlen(called), &encoded);
    }
    VEC_PUSH(&t->post.tokens, encoded);
}

static ferry_status put_piece(ferry_tokenizer *t, const Piece *piece, ferry_error *error) {
    const char *text = t->work.line.bytes + piece->begin;
    size_t length = piece->end - piece->begin;
    if (piece->token != TRIE_NONE) {
        put_token(t, piece, (Token){piece->token, 0, (uint32_t)length, true}, text);
        return FERRY_OK;
    }
    t->tokens.count = 0;
    if (!t->model->tokenize(t->model, text, length, &t->tokens))
        return error_set(error, FERRY_UNSUPPORTED, t->path,
                         "no token for \"%.*s\", and the vocabulary has no unknown token (%s)",
                         (int)(length < 64 ? length : 64), text, t->model->missing);
    for (size_t i = 0; i < t->tokens.count; i++) {
        Token token = t->tokens.items[i];
        put_token(t, piece, token, token.is_text ? text + token.begin : NULL);
    }
    return FERRY_OK;
}

/* Append the tokens of one text as a segment. */
static ferry_status put_text(ferry_tokenizer *t, const char *text, size_t length,
                             ferry_error *error) {
    Work *work = &t->work;
    TRY(set_input(t, text, length, error));
    work->status = FERRY_OK;
    work->error = error;
    added_split(&t->added, t->normalizer, &t->input, work);
    pretokenizer_run(t->pretokenizer, work);
    TRY(work->status);
    if (work_failed(work)) return error_memory(error, t->path, length);
    for (size_t i = 0; i < work->pieces.count; i++)
        TRY(put_piece(t, &work->pieces.items[i], error));
    size_t which = t->post.ends.count;
    t->post.inputs[which] = text;
    t->post.lengths[which] = length;
    VEC_PUSH(&t->post.ends, t->post.tokens.count);
    return t->tokens.failed ? error_memory(error, t->path, length) : FERRY_OK;
}

/* Allocate an encoding, with its arrays behind it, the widest first. */
static ferry_encoding *new_encoding(size_t count) {
    size_t each = sizeof(ferry_text_span) + 2 * sizeof(uint32_t) + 2;
    unsigned char *block = malloc(sizeof(ferry_encoding) + count * each);
    if (!block) return NULL;
    ferry_encoding *encoding = (ferry_encoding *)block;
    ferry_text_span *offsets = (ferry_text_span *)(encoding + 1);
    uint32_t *ids = (uint32_t *)(offsets + count), *types = ids + count;
    unsigned char *special = (unsigned char *)(types + count);
    *encoding = (ferry_encoding){count, ids, types, offsets, special, special + count};
    return encoding;
}

static void fill(ferry_encoding *encoding, size_t i, const Encoded *token) {
    ((uint32_t *)encoding->ids)[i] = token->id;
    ((uint32_t *)encoding->type_ids)[i] = token->type;
    ((ferry_text_span *)encoding->offsets)[i] =
        (ferry_text_span){token->span.begin, token->span.end};
    ((unsigned char *)encoding->special)[i] = token->special;
    ((unsigned char *)encoding->attention_mask)[i] = !token->padding;
}

static ferry_status make_encoding(ferry_tokenizer *t, bool pad, ferry_encoding **out,
                                  ferry_error *error) {
    const Post *post = &t->post;
    if (pad && !t->padding.given)
        return error_set(error, FERRY_INVALID_ARGUMENT, t->path,
                         "has no \"padding\"; encode without, or append ids");
    size_t count = post->tokens.count, missing = pad ? padding_missing(&t->padding, count) : 0;
    size_t first = t->padding.left ? missing : 0;
    Encoded padding = {
        .id = t->padding.id, .type = t->padding.type, .special = true, .padding = true};
    ferry_encoding *encoding = new_encoding(count + missing);
    if (!encoding) return error_memory(error, t->path, count);
    for (size_t i = 0; i < count + missing; i++) {
        bool is_token = i >= first && i - first < count;
        fill(encoding, i, is_token ? &post->tokens.items[i - first] : &padding);
    }
    *out = encoding;
    return FERRY_OK;
}

void ferry_encode_config_init(ferry_encode_config *config) {
    *config = (ferry_encode_config){.size = sizeof *config, .special_tokens = true};
}

ferry_status ferry_tokenizer_encode(ferry_tokenizer *t, const char *text, size_t length,
                                    const ferry_encode_config *config, ferry_encoding **out,
                                    ferry_error *error) {
    ferry_encode_config defaults;
    ferry_encode_config_init(&defaults);
    if (!config) config = &defaults;
    error_clear(error);
    *out = NULL;
    if (config->size != sizeof *config)
        return error_set(error, FERRY_INVALID_ARGUMENT, NULL,
                         "the configuration has size %zu; call ferry_encode_config_init",
                         config->size);
    Post *post = &t->post;
    post->tokens.count = post->next.count = post->ends.count = post->next_ends.count = 0;
    post->special_tokens = config->special_tokens;
    TRY(put_text(t, text, length, error));
    if (config->pair) TRY(put_text(t, config->pair, config->pair_length, error));
    size_t added =
        config->special_tokens ? postprocessor_added(t->postprocessor, config->pair != NULL) : 0;
    if (post->tokens.failed || post->ends.failed) return error_memory(error, t->path, length);
    if (config->truncate) TRY(truncate_inputs(&t->truncation, post, added, t->path, error));
    postprocessor_run(t->postprocessor, post);
    if (post->tokens.failed || post->ends.failed || post->next.failed || post->next_ends.failed)
        return error_memory(error, t->path, length);
    return make_encoding(t, config->pad, out, error);
}

void ferry_encoding_free(ferry_encoding *encoding) {
    free(encoding);
}
