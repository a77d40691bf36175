/* Symbols as torch knows them.
 *
 * torch reads the kind of a symbol off the first letters of its name, in either case: "u0" is
 * data-dependent, "x", "i", "h" and others belong to its code generators. A dimension keeps the name that
 * the user gave it unless that says something else to torch: then it becomes "s_" and the name. A
 * data-dependent size is "u" and a number. */
#include "target/dynamo/serialize.h"

#include <string.h>
#include <strings.h>

/* Of symbolic_shapes' prefixes, those that are not for sizes; and the classes that sizes are spelled with. */
static const char *const reserved[] = {"u",   "zf", "zuf", "tmp", "ps",   "i", "r0_",
                                       "r1_", "x",  "y",   "z",   "view", "h"};
static const char *const classes[] = {"Symbol",   "Integer", "Add", "Mul",
                                      "FloorDiv", "Mod",     "Min", "Max"};

static bool is_reserved(const char *name) {
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
        if (strncasecmp(name, reserved[i], strlen(reserved[i])) == 0) return true;
    }
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(name, classes[i]) == 0) return true;
    }
    return false;
}

static bool is_unbacked_name(const char *name) {
    return name[0] == 'u' && name[1] && strspn(name + 1, "0123456789") == strlen(name + 1);
}

static bool is_source(const Program *program, const Sym *symbol) {
    for (size_t i = 0; i < program->sources.count; i++) {
        if (program->sources.items[i].symbol == symbol) return true;
    }
    return false;
}

/* A valid identifier: what is no letter or digit becomes an underscore. */
static const char *identifier(Arena *arena, const char *name) {
    char *text = arena_copy(arena, name, strlen(name) + 1);
    for (char *c = text; c && *c; c++) {
        bool word =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        if (!word) *c = '_';
    }
    return text;
}

static const char *name_symbol(Serializer *s, Map *taken, const Sym *symbol) {
    const char *name = symbol->name, *format = "u%u";
    uint32_t number = 0;
    if (!is_source(s->program, symbol)) {
        name = identifier(&s->arena, name);
        if (name && is_reserved(name)) name = arena_format(&s->arena, "s_%s", name);
        format = name ? arena_format(&s->arena, "%s_%%u", name) : NULL;
    } else if (!is_unbacked_name(name)) {
        name = "u0";
    }
    while (name && format && map_find(taken, name))
        name = arena_format(&s->arena, format, ++number);
    return name && format ? name : "s";
}

/* A round number between the bounds of the `turn`-th symbol: torch takes a size that a sample at its bound
 * makes 0, such as what is left of a cache, for one that is always 0. */
static int64_t sample_within(const Sym *symbol, size_t turn) {
    int64_t least = symbol->lower > 1 ? symbol->lower : 2;
    for (int64_t step = 32; step > 1; step /= 2) {
        int64_t sample = (symbol->upper - 1) / step * step - (int64_t)turn * step;
        if (sample >= least) return sample;
    }
    return symbol->upper > least ? symbol->upper - 1 : symbol->upper;
}

void symbols_name(Serializer *s) {
    /* Different numbers that images, windows and heads divide. */
    static const int64_t factors[] = {5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    size_t used = 0;
    Map taken = {0};
    for (size_t i = 0; i < s->program->symbols.symbols.count; i++) {
        const Sym *symbol = s->program->symbols.symbols.items[i];
        int64_t sample = symbol->sample ? symbol->sample
                                        : 32 * factors[used % (sizeof factors / sizeof *factors)];
        if (sample < symbol->lower) sample = symbol->lower;
        if (sample > symbol->upper) sample = sample_within(symbol, used);
        used += s->symbol_value[i] != NULL;
        s->samples[i] = sample;
        s->symbol_names[i] = name_symbol(s, &taken, symbol);
        map_put(&taken, s->symbol_names[i], s);
    }
    if (taken.failed) s->arena.failed = true;
    map_free(&taken);
}

void symbols_note(Serializer *s, const Value *value) {
    for (uint32_t d = 0; d < value->rank; d++) {
        const Sym *size = value->shape[d];
        if (size->kind != SYM_SYMBOL || s->symbol_value[size->value]) continue;
        s->symbol_value[size->value] = value;
        s->symbol_dim[size->value] = (int)d;
    }
}

int64_t symbols_sample(const Serializer *s, const Sym *sym) {
    int64_t value;
    return sym_evaluate(sym, s->samples, &value) ? value : 0;
}
