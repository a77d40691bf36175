/* The signature: what the program is given, what it returns, and what it writes.
 *
 * A program writes inputs and buffers in place, or its signature names the result that one holds
 * afterwards. Either way what differs at the end from what was there at first becomes an output. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <inttypes.h>
#include <string.h>

/* What a constant argument or result holds, as JSON text; NULL when it is no constant. */
static const char *constant_text(Reader *r, const Doc *value) {
    static const char *const plain[] = {"as_int", "as_float", "as_string", "as_bool"};
    if (doc_get(value, "as_none")) return "null";
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        const Doc *found = doc_get(value, plain[i]);
        if (!found) continue;
        Buffer text = {0};
        doc_print_scalar(&text, found);
        const char *copy = arena_string(&r->b.program->arena, buffer_string(&text));
        buffer_free(&text);
        return copy;
    }
    return NULL;
}

static const char *next_path(Reader *r, Leaves *leaves) {
    if (leaves->next < leaves->paths.count) return leaves->paths.items[leaves->next++];
    reader_fail(r, FERRY_BAD_FORMAT, "the nested structure has fewer leaves than the signature");
    return "";
}

/* ---- inputs ---- */

/* Bind something that the program may write. */
static void take_place(Reader *r, const char *name, const char *target, Value *value) {
    Binding *binding = reader_bind(r, name, value);
    if (binding) VEC_PUSH(&r->places, ((Place){name, target, value, binding, false}));
}

static void read_user_input(Reader *r, const Doc *arg, Leaves *leaves) {
    const char *name = doc_text(doc_get(doc_get(arg, "as_tensor"), "name"));
    const char *path = next_path(r, leaves);
    Program *program = r->b.program;
    if (!name) {
        const char *text = constant_text(r, arg);
        if (!text) {
            reader_fail(r, FERRY_UNSUPPORTED, "the input \"%s\" is neither a tensor nor a constant",
                        path);
            return;
        }
        VEC_PUSH(&program->input_constants,
                 (ConstantLeaf){leaves->next - 1, arena_string(&program->arena, path), text});
        return;
    }
    TensorMeta meta = reader_meta(r, name);
    if (!meta.dtype)
        reader_fail(r, FERRY_UNSUPPORTED, "the input \"%s\" has an unsupported dtype", path);
    take_place(r, name, path, build_input(&r->b, path, meta.dtype, meta.rank, meta.sizes));
}

static void read_constant_input(Reader *r, const Doc *body, Leaves *leaves) {
    const char *path = next_path(r, leaves);
    const char *text = constant_text(r, doc_get(body, "value"));
    Program *program = r->b.program;
    VEC_PUSH(&program->input_constants,
             ((ConstantLeaf){leaves->next - 1, arena_string(&program->arena, path),
                             text ? text : "null"}));
}

static const char *text_member(const Doc *object, const char *key) {
    const char *text = doc_text(doc_get(object, key));
    return text ? text : "";
}

static void read_input_spec(Reader *r, const Doc *spec, Leaves *leaves) {
    const char *kind = doc_key(spec, 0);
    const Doc *body = doc_value(spec, 0);
    const char *name = doc_text(doc_get(doc_get(body, "arg"), "name"));
    if (!kind) kind = "nothing";
    if (strcmp(kind, "user_input") == 0) {
        read_user_input(r, doc_get(body, "arg"), leaves);
    } else if (strcmp(kind, "constant_input") == 0) {
        read_constant_input(r, body, leaves);
    } else if (name && strcmp(kind, "parameter") == 0) {
        const char *fqn = text_member(body, "parameter_name");
        take_place(r, name, fqn, reader_weight(r, fqn, VALUE_PARAMETER));
    } else if (name && strcmp(kind, "buffer") == 0) {
        const char *fqn = text_member(body, "buffer_name");
        bool persistent = doc_get(r->pt2->weights, fqn);
        ValueKind buffer = persistent ? VALUE_PERSISTENT_BUFFER : VALUE_BUFFER;
        take_place(r, name, fqn, reader_weight(r, fqn, buffer));
    } else if (name && strcmp(kind, "tensor_constant") == 0) {
        const char *fqn = text_member(body, "tensor_constant_name");
        take_place(r, name, fqn, reader_weight(r, fqn, VALUE_CONSTANT));
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "an input of kind \"%s\" is not supported", kind);
    }
}

/* ---- writes ---- */

/* What an output of the signature writes: which member names it. */
static const char *const mutations[][2] = {{"buffer_mutation", "buffer_name"},
                                           {"parameter_mutation", "parameter_name"},
                                           {"user_input_mutation", "user_input_name"}};

/* An input by its name in the graph, a weight by its name in the model. */
static const Place *find_place(const Reader *r, const char *target, bool is_input) {
    for (size_t i = 0; i < r->places.count; i++) {
        const Place *place = &r->places.items[i];
        if ((place->value->kind == VALUE_INPUT) != is_input) continue;
        if (strcmp(is_input ? place->name : place->target, target) == 0) return place;
    }
    return NULL;
}

static bool is_place(const Reader *r, const char *name) {
    for (size_t i = 0; i < r->places.count; i++) {
        if (strcmp(r->places.items[i].name, name) == 0) return true;
    }
    return false;
}

/* {"buffer_mutation": {"arg": {"name": ...}, "buffer_name": ...}}: write the place as the graph would. The
 * result is the place from then on. */
static void read_mutation(Reader *r, const char *target, bool is_input, const Doc *body) {
    const char *result = text_member(doc_get(body, "arg"), "name");
    const Place *place = find_place(r, target, is_input);
    if (!place) {
        reader_fail(r, FERRY_BAD_FORMAT, "the program writes \"%s\", which it has not", target);
        return;
    }
    reader_write(r, place->name, reader_read(r, result));
    if (build_ok(&r->b) && !is_place(r, result)) map_put(&r->bindings, result, place->binding);
}

static void read_result(Reader *r, const Doc *spec) {
    const char *kind = doc_key(spec, 0);
    const Doc *body = doc_value(spec, 0);
    if (!kind) kind = "nothing";
    if (strcmp(kind, "user_output") == 0) return;
    for (size_t i = 0; i < sizeof mutations / sizeof *mutations; i++) {
        if (strcmp(mutations[i][0], kind) != 0) continue;
        read_mutation(r, text_member(body, mutations[i][1]), i == 2, body);
        return;
    }
    reader_fail(r, FERRY_UNSUPPORTED, "an output of kind \"%s\" is not supported", kind);
}

/* Find what is not as it was. */
static void find_writes(Reader *r) {
    for (size_t i = 0; i < r->places.count && build_ok(&r->b); i++) {
        Value *before = r->places.items[i].value, *value = reader_read(r, r->places.items[i].name);
        if (value == before || !build_ok(&r->b)) continue;
        r->places.items[i].written = true;
        if (before->kind != VALUE_INPUT) value_make_state(before);
        if (value->dtype != before->dtype || value->rank != before->rank) {
            reader_fail(r, FERRY_BAD_FORMAT,
                        "expected what is written to \"%s\" to have its type, found \"%s\"",
                        r->places.items[i].target, value->name);
        }
    }
}

/* ---- outputs ---- */

static void add_output(Reader *r, Port port) {
    if (build_ok(&r->b)) VEC_PUSH(&r->b.program->outputs, port);
}

/* The written input or weight that a tensor is, or NULL. */
static Value *written_place(const Reader *r, const char *name) {
    const Binding *binding = map_find(&r->bindings, name);
    for (size_t i = 0; i < r->places.count; i++) {
        const Place *place = &r->places.items[i];
        if (place->written && place->binding == binding) return place->value;
    }
    return NULL;
}

static void read_user_output(Reader *r, const Doc *arg, Leaves *leaves) {
    const char *name = doc_text(doc_get(doc_get(arg, "as_tensor"), "name"));
    const char *size = doc_text(doc_get(doc_get(arg, "as_sym_int"), "as_name"));
    Program *program = r->b.program;
    const char *path = arena_string(&program->arena, next_path(r, leaves));
    const char *text = constant_text(r, arg);
    const Sym *sym = size ? map_find(&r->sizes, size) : NULL;
    if (sym && sym_is_const(sym)) text = arena_format(&program->arena, "%" PRId64, sym->value);
    if (name) {
        Value *value = reader_read(r, name);
        add_output(r, (Port){.name = path, .value = value, .writes = written_place(r, name)});
    } else if (sym && !text) {
        Value *value = build_scalar_tensor(&r->b, sym, FERRY_I64);
        add_output(r, (Port){.name = path, .value = value, .is_number = true});
    } else if (size && !sym) {
        reader_fail(r, FERRY_BAD_FORMAT, "the size \"%s\" is not defined", size);
    } else if (text) {
        VEC_PUSH(&program->output_constants, (ConstantLeaf){leaves->next - 1, path, text});
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "the output \"%s\" is neither a tensor nor a constant",
                    path);
    }
}

static bool is_output_name(const Program *program, const char *name) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        if (strcmp(program->outputs.items[i].name, name) == 0) return true;
    }
    return false;
}

static bool is_output(const Program *program, const Value *place) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        if (program->outputs.items[i].writes == place) return true;
    }
    return false;
}

/* What a place holds at the end, where no leaf is the place. */
static void add_write(Reader *r, const Place *place) {
    Program *program = r->b.program;
    Value *value = reader_read(r, place->name);
    if (!place->written || is_output(program, place->value)) return;
    const char *name = arena_format(&program->arena, "mutated.%s", place->target);
    while (name && is_output_name(program, name)) name = arena_format(&program->arena, "%s_", name);
    add_output(r, (Port){.name = name ? name : "", .value = value, .writes = place->value});
}

void signature_read(Reader *r, const Doc *signature, Leaves *inputs, Leaves *outputs) {
    const Doc *spec, *results = doc_get(signature, "output_specs");
    size_t i;
    DOC_EACH_ITEM(doc_get(signature, "input_specs"), i, spec) {
        read_input_spec(r, spec, inputs);
        if (!build_ok(&r->b)) return;
    }
    translate_graph(r);
    DOC_EACH_ITEM(results, i, spec) {
        if (build_ok(&r->b)) read_result(r, spec);
    }
    find_writes(r);
    DOC_EACH_ITEM(results, i, spec) {
        const Doc *output = doc_get(spec, "user_output");
        if (output && build_ok(&r->b)) read_user_output(r, doc_get(output, "arg"), outputs);
    }
    for (i = 0; i < r->places.count; i++) add_write(r, &r->places.items[i]);
    if (inputs->next != inputs->paths.count || outputs->next != outputs->paths.count)
        reader_fail(r, FERRY_BAD_FORMAT, "the nested structure has more leaves than the signature");
}
