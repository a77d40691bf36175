#include "text/model.h"

static const struct {
    const char *type;
    Model *(*read)(Settings *settings, const Doc *doc);
} kinds[] = {
    {"BPE", bpe_read},
    {"Unigram", unigram_read},
    {"WordLevel", wordlevel_read},
    {"WordPiece", wordpiece_read},
};

/* Files from before models had a type. */
static const char *guess_type(const Doc *doc) {
    if (doc_get(doc, "merges")) return "BPE";
    if (doc_is_array(doc_get(doc, "vocab"))) return "Unigram";
    return doc_get(doc, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

Model *model_read(Settings *settings, const Doc *doc) {
    settings->place = "model";
    const char *type = setting_text_or(settings, doc, "type", guess_type(doc));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].type, type) != 0) continue;
        Model *model = kinds[i].read(settings, doc);
        if (settings->status == FERRY_OK) return model;
        model_free(model);
        return NULL;
    }
    setting_fail(settings, FERRY_UNSUPPORTED,
                 "the type \"%s\" is not known; expected BPE, Unigram, WordPiece or WordLevel",
                 type);
    return NULL;
}

void model_free(Model *model) {
    if (model && model->free) model->free(model);
}
