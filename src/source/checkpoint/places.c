/* Tokens that stand for patches of images, as the models of Qwen see them: they have a place in time, height
 * and width, and every pair of features turns with one of the three; and layers may add features of the
 * image to them. */
#include "source/checkpoint/decoder.h"

enum { MAX_PAIRS = 2048 };

/* The sizes of the sections, which must share out the pairs. */
static void read_sections(Model *m, const RotarySpec *spec, json_t *list, int64_t pairs,
                          int64_t out[3]) {
    int64_t left = pairs;
    bool fits = !list || json_array_size(list) == 3;
    for (size_t i = 0; i < 3 && fits; i++) {
        out[i] = list ? json_integer_value(json_array_get(list, i)) : spec->sections[i];
        fits = out[i] >= 0 && out[i] <= left;
        if (fits) left -= out[i];
    }
    if (fits && left == 0 && pairs <= MAX_PAIRS) return;
    build_fail(&m->b, FERRY_BAD_FORMAT,
               "%s: expected \"mrope_section\" to be three numbers that share out %lld pairs of "
               "features, at most %d",
               m->config_path, (long long)pairs, MAX_PAIRS);
}

/* Does pair `i` turn with place 1 (height) or 2 (width)? */
static bool turns_with(const RotarySpec *spec, const int64_t sections[3], int64_t i, int place) {
    if (spec->places == PLACE_INTERLEAVED) return i % 3 == place && i < 3 * sections[place];
    int64_t start = sections[0] + (place == 2 ? sections[1] : 0);
    return i >= start && i < start + sections[place];
}

Value *rotary_places(Model *m, const RotarySpec *spec, json_t *list, int64_t pairs,
                     Value *positions) {
    static const char *const names[3] = {NULL, "rotary_emb.height", "rotary_emb.width"};
    Builder *b = &m->b;
    int64_t sections[3];
    unsigned char mask[MAX_PAIRS];
    Value *steps = NULL;
    read_sections(m, spec, list, pairs, sections);
    if (!build_ok(b)) return &b->poison;
    for (int place = 0; place < 3; place++) {
        Value *one = build_to(b, build_select(b, positions, 0, place), FERRY_F32);
        one = build_unsqueeze(b, one, -1);
        for (int64_t i = 0; place && i < pairs; i++) mask[i] = turns_with(spec, sections, i, place);
        steps = place == 0 ? one
                           : build_where(b,
                                         build_constant(b, VALUE_CONSTANT, names[place], FERRY_BOOL,
                                                        1, &pairs, mask),
                                         one, steps);
    }
    return steps;
}

Value *decoder_positions(Model *m) {
    const Sym *shape[3] = {build_const(&m->b, 4), m->batch, m->sequence};
    Value *given = model_input(m, "position_ids", FERRY_I64, 3, shape);
    if (!given) return build_unsqueeze(&m->b, model_slots(m), 0);
    return build_slice_const(&m->b, build_to(&m->b, given, FERRY_I64), 0, 1, 4);
}

Value *decoder_add_visual(Decoder *d, Value *x, int64_t layer) {
    Model *m = d->m;
    Builder *b = &m->b;
    SymTable *symbols = &b->program->symbols;
    const Sym *hidden = build_const(b, d->hidden), *one = build_const(b, 1);
    const Sym *shape[2] = {sym_symbol(symbols, "visual", 1, SYM_UNBOUNDED), hidden};
    const Sym *places[2] = {m->batch, m->sequence}, *row[2] = {one, hidden};
    Value *features = model_input_leaf(m, "deepstack_visual_embeds",
                                       arena_format(&b->program->arena, "%lld", (long long)layer),
                                       m->dtype, 2, shape);
    Value *mask = model_input(m, "visual_pos_masks", FERRY_BOOL, 2, places);
    if (!features || !mask) return x;
    if (!d->visual) {
        Value *seen = build_to(b, mask, FERRY_I64);
        Value *count =
            build_cumsum(b, build_view(b, seen, (const Sym *const[]){build_const(b, -1)}, 1), 0);
        d->visual = build_mul(b, build_view(b, count, places, 2), seen);
    }
    Value *nothing = build_full(b, row, 2, 0, m->dtype);
    Value *table = build_cat(b, (Value *const[]){nothing, features}, 2, 0);
    return build_add(b, x, build_embedding(b, table, d->visual));
}
