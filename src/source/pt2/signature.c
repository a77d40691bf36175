/* The signature: what the program is given, what it returns, and what it writes.
 *
 * A program writes inputs and buffers in place, or its signature names the result that one holds
 * afterwards. Either way what differs at the end from what was there at first becomes an output. */
#include "base/error.h"
#include "source/pt2/reader.h"

#include <stdlib.h>
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
    VEC_PUSH(&r->places, ((Place){name, target, value}));
    reader_bind(r, name, value);
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
        take_place(r, name, fqn, reader_weight(r, false, fqn, VALUE_PARAMETER));
    } else if (name && strcmp(kind, "buffer") == 0) {
        const char *fqn = text_member(body, "buffer_name");
        bool stored = doc_get(r->pt2->weights, fqn);
        take_place(r, name, fqn, reader_weight(r, !stored, fqn, VALUE_BUFFER));
    } else if (name && strcmp(kind, "tensor_constant") == 0) {
        const char *fqn = text_member(body, "tensor_constant_name");
        reader_bind(r, name, reader_weight(r, true, fqn, VALUE_CONSTANT));
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "an input of kind \"%s\" is not supported", kind);
    }
}

/* ---- outputs ---- */

static void read_user_output(Reader *r, const Doc *arg, Leaves *leaves) {
    const char *name = doc_text(doc_get(doc_get(arg, "as_tensor"), "name"));
    const char *size = doc_text(doc_get(doc_get(arg, "as_sym_int"), "as_name"));
    const char *path = next_path(r, leaves), *text = constant_text(r, arg);
    Program *program = r->b.program;
    if (name) {
        build_output(&r->b, path, reader_read(r, name));
    } else if (size) {
        const Sym *sym = map_find(&r->sizes, size);
        if (sym)
            build_output(&r->b, path, build_scalar_tensor(&r->b, sym, FERRY_I64));
        else
            reader_fail(r, FERRY_BAD_FORMAT, "the size \"%s\" is not defined", size);
    } else if (text) {
        VEC_PUSH(&program->output_constants,
                 (ConstantLeaf){leaves->next - 1, arena_string(&program->arena, path), text});
    } else {
        reader_fail(r, FERRY_UNSUPPORTED, "the output \"%s\" is neither a tensor nor a constant",
                    path);
    }
}

static void read_output_spec(Reader *r, const Doc *spec, Leaves *leaves) {
    const char *kind = doc_key(spec, 0);
    const Doc *body = doc_value(spec, 0);
    if (kind && strcmp(kind, "user_output") == 0) {
        read_user_output(r, doc_get(body, "arg"), leaves);
    } else if (!kind || !strstr(kind, "mutation")) {
        reader_fail(r, FERRY_UNSUPPORTED, "an output of kind \"%s\" is not supported",
                    kind ? kind : "");
    }
}

/* ---- writes ---- */

/* {"buffer_mutation": {"arg": {"name": ...}, "buffer_name": ...}}: write the place as the graph would. */
static void read_mutation(Reader *r, const Doc *spec) {
    const char *kind = doc_key(spec, 0);
    const Doc *body = doc_value(spec, 0);
    const char *result = text_member(doc_get(body, "arg"), "name");
    if (!kind || !strstr(kind, "mutation")) return;
    bool is_input = strcmp(kind, "user_input_mutation") == 0;
    const char *target =
        text_member(body, is_input                               ? "user_input_name"
                          : strcmp(kind, "buffer_mutation") == 0 ? "buffer_name"
                                                                 : "parameter_name");
    for (size_t i = 0; i < r->places.count; i++) {
        const Place *place = &r->places.items[i];
        if (strcmp(is_input ? place->name : place->target, target) != 0) continue;
        reader_write(r, place->name, reader_read(r, result));
        return;
    }
    reader_fail(r, FERRY_BAD_FORMAT, "the program writes \"%s\", which it has not", target);
}

static bool is_output_name(const Program *program, const char *name) {
    for (size_t i = 0; i < program->outputs.count; i++) {
        if (strcmp(program->outputs.items[i].name, name) == 0) return true;
    }
    return false;
}

/* What the place holds at the end, as an output: a leaf that is the same value, or one of its own. */
static void bind_write(Reader *r, const Place *place, Value *value) {
    Program *program = r->b.program;
    if (place->value->kind != VALUE_INPUT) place->value->kind = VALUE_STATE;
    for (size_t i = 0; i < program->outputs.count; i++) {
        Port *port = &program->outputs.items[i];
        if (port->value != value || port->writes) continue;
        port->writes = place->value;
        return;
    }
    const char *name = arena_format(&program->arena, "mutated.%s", place->target);
    while (name && is_output_name(program, name)) name = arena_format(&program->arena, "%s_", name);
    build_output(&r->b, name ? name : "", value);
    if (build_ok(&r->b) && program->outputs.count)
        program->outputs.items[program->outputs.count - 1].writes = place->value;
}

static void read_writes(Reader *r, const Doc *specs) {
    const Doc *spec;
    size_t i;
    DOC_EACH_ITEM(specs, i, spec) {
        if (build_ok(&r->b)) read_mutation(r, spec);
    }
    for (i = 0; i < r->places.count && build_ok(&r->b); i++) {
        const Place *place = &r->places.items[i];
        Value *value = reader_read(r, place->name);
        if (value != place->value && build_ok(&r->b)) bind_write(r, place, value);
    }
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
        if (!build_ok(&r->b)) return;
        read_output_spec(r, spec, outputs);
    }
    read_writes(r, results);
    if (inputs->next != inputs->paths.count || outputs->next != outputs->paths.count)
        reader_fail(r, FERRY_BAD_FORMAT, "the nested structure has more leaves than the signature");
}
