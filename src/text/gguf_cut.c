/* The ways to cut text that GGUF files name, with the patterns of the tokenizers that they stand for. */
#include "text/gguf_tokenizer.h"

#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define BLANKS       "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER        "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER        "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define LEAD         "[^\\r\\n\\p{L}\\p{N}]?"

static const GgufCut gpt2 = {0};
static const GgufCut smollm = {.digits = true};
static const GgufCut llama3 = {.patterns = {CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}{1,3}"
                                                         "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS},
                               .ignore_merges = true,
                               .begins = true};
static const GgufCut dbrx = {.patterns = {CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}{1,3}"
                                                       "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS}};
static const GgufCut qwen2 = {
    .patterns = {CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" BLANKS},
    .nfc = true};
static const GgufCut qwen35 = {.patterns = {CONTRACTIONS
                                            "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}"
                                            "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS},
                               .nfc = true};
static const GgufCut tekken = {.patterns = {LEAD UPPER
                                            "*" LOWER "+|" LEAD UPPER "+" LOWER "*"
                                            "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS},
                               .ignore_merges = true,
                               .begins = true};
static const GgufCut gpt4o = {
    .patterns = {LEAD UPPER "*" LOWER "+" CONTRACTIONS "?|" LEAD UPPER "+" LOWER "*" CONTRACTIONS
                            "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" BLANKS}};

const GgufCut *gguf_cut(const char *name) {
    static const struct {
        const char *name;
        const GgufCut *cut;
    } cuts[] = {
        {"gpt-2", &gpt2},
        {"phi-2", &gpt2},
        {"mpt", &gpt2},
        {"olmo", &gpt2},
        {"jais", &gpt2},
        {"exaone4", &gpt2},
        {"trillion", &gpt2},
        {"granite-docling", &gpt2},
        {"smollm", &smollm},
        {"starcoder", &smollm},
        {"refact", &smollm},
        {"codeshell", &smollm},
        {"command-r", &smollm},
        {"exaone", &smollm},
        {"minerva-7b", &smollm},
        {"llama3", &llama3},
        {"llama-v3", &llama3},
        {"llama-bpe", &llama3},
        {"falcon3", &llama3},
        {"falcon-h1", &llama3},
        {"pixtral", &llama3},
        {"midm-2.0", &llama3},
        {"lfm2", &llama3},
        {"dbrx", &dbrx},
        {"smaug-bpe", &dbrx},
        {"glm4", &dbrx},
        {"chatglm-bpe", &dbrx},
        {"qwen2", &qwen2},
        {"deepseek-r1-qwen", &qwen2},
        {"kormo", &qwen2},
        {"f2llmv2", &qwen2},
        {"megrez", &qwen2},
        {"stablelm2", &qwen2},
        {"hunyuan", &qwen2},
        {"qwen35", &qwen35},
        {"tekken", &tekken},
        {"gpt-4o", &gpt4o},
        {"llama4", &gpt4o},
        {"kanana2", &gpt4o},
        {"talkie", &gpt4o},
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        if (strcmp(name, cuts[i].name) == 0) return cuts[i].cut;
    }
    return NULL;
}
