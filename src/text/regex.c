#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"
#include "base/error.h"
#include "text/unicode.h"

#include <pcre2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct Regex {
    pcre2_code *code;
    pcre2_match_data *match; /* a tokenizer belongs to one thread at a time */
    pcre2_match_context *context;
    pcre2_jit_stack *stack;
};

enum {
    OPTIONS = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
    MATCH_LIMIT = 1000000,
    JIT_STACK = 1 << 20,
};

void regex_free(Regex *regex) {
    if (!regex) return;
    pcre2_match_data_free(regex->match);
    pcre2_match_context_free(regex->context);
    pcre2_jit_stack_free(regex->stack);
    pcre2_code_free(regex->code);
    free(regex);
}

/* `*problem` and `*place` as pcre2_compile tells them. */
static pcre2_code *compile(const char *pattern, size_t length, uint32_t options, int *problem,
                           size_t *place) {
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context) return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, length, options, problem, place, context);
    pcre2_compile_context_free(context);
    return code;
}

bool regex_is_known(const char *pattern) {
    int problem;
    size_t place;
    pcre2_code *code = compile(pattern, strlen(pattern), OPTIONS, &problem, &place);
    pcre2_code_free(code);
    return code != NULL;
}

static Regex *new_regex(Settings *settings, const char *shown, const char *pattern,
                        uint32_t options) {
    int problem = 0;
    size_t place = 0;
    pcre2_code *code = compile(pattern, strlen(pattern), options, &problem, &place);
    if (!code) {
        unsigned char message[128] = "out of memory";
        if (problem) pcre2_get_error_message(problem, message, sizeof message);
        setting_fail(settings, FERRY_BAD_FORMAT, "the pattern \"%s\" is not valid: %s", shown,
                     (char *)message);
        return NULL;
    }
    Regex *regex = calloc(1, sizeof *regex);
    if (regex) {
        regex->code = code;
        regex->match = pcre2_match_data_create(1, NULL);
        regex->context = pcre2_match_context_create(NULL);
        regex->stack = pcre2_jit_stack_create(32 << 10, JIT_STACK, NULL);
    }
    if (!regex || !regex->match || !regex->context) {
        if (!regex) pcre2_code_free(code);
        regex_free(regex);
        setting_fail(settings, FERRY_OUT_OF_MEMORY, "out of memory");
        return NULL;
    }
    pcre2_set_match_limit(regex->context, MATCH_LIMIT);
    /* Without just-in-time compilation, as in a process that may not have it, matching is slower. */
    if (regex->stack && pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0)
        pcre2_jit_stack_assign(regex->context, NULL, regex->stack);
    return regex;
}

Regex *regex_new(Settings *settings, const char *pattern) {
    Buffer translated = {0};
    Regex *regex = NULL;
    const char *problem = regex_translate(pattern, &translated);
    if (problem)
        setting_fail(settings, FERRY_UNSUPPORTED, "the pattern \"%s\" uses %s", pattern, problem);
    else if (translated.failed)
        setting_fail(settings, FERRY_OUT_OF_MEMORY, "out of memory");
    else
        regex = new_regex(settings, pattern, buffer_string(&translated), OPTIONS);
    buffer_free(&translated);
    return regex;
}

Regex *regex_read(Settings *settings, const Doc *component) {
    const Doc *pattern = setting_object(settings, component, "pattern");
    const char *text = doc_text(doc_get(pattern, "String"));
    if (text) return new_regex(settings, text, text, PCRE2_UTF | PCRE2_LITERAL);
    text = setting_text(settings, pattern, "Regex");
    return settings->status == FERRY_OK ? regex_new(settings, text) : NULL;
}

RegexWalk regex_walk(const Regex *regex, const char *text, size_t length) {
    return (RegexWalk){.regex = regex, .text = text, .length = length, .last_end = SIZE_MAX};
}

bool regex_next(RegexWalk *walk) {
    while (walk->from <= walk->length) {
        const Regex *regex = walk->regex;
        int found = pcre2_match(regex->code, (PCRE2_SPTR)walk->text, walk->length, walk->from,
                                PCRE2_NO_UTF_CHECK, regex->match, regex->context);
        if (found < 0) {
            if (found != PCRE2_ERROR_NOMATCH) walk->problem = found;
            return false;
        }
        const size_t *ends = pcre2_get_ovector_pointer(regex->match);
        walk->begin = ends[0];
        walk->end = ends[1];
        /* \K in a lookahead could have set the start behind the end. */
        if (walk->begin > walk->end || walk->begin < walk->from) return false;
        bool again = walk->begin == walk->end && walk->end == walk->last_end;
        walk->from = walk->end;
        if (!again) {
            walk->last_end = walk->end;
            return true;
        }
        /* An empty match right after a match does not count; look behind the next character. */
        walk->from += walk->from < walk->length ? utf8_size(walk->text[walk->from]) : 1;
    }
    return false;
}

ferry_status regex_problem(const RegexWalk *walk, const char *path, ferry_error *error) {
    unsigned char message[128];
    pcre2_get_error_message(walk->problem, message, sizeof message);
    return error_set(error, FERRY_UNSUPPORTED, path,
                     "a pattern of the tokenizer gave up on the text: %s", (char *)message);
}
