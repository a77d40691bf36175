/* A program from the outside in: its inputs, the instructions in order, and its outputs. */
#include "base/error.h"
#include "source/executorch/reader.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- inputs ---- */

/* The size at place `d` of an input: as export.json tells it, a number, or a symbol. */
static const Sym *input_size(Reader *r, const ferry_port *port, const PteSlot *slot, size_t index,
                             uint32_t d) {
    SymTable *symbols = &r->b.program->symbols;
    const Sym *size;
    if (!slot->dynamic) return build_const(&r->b, slot->sizes[d]);
    if (!port) {
        const char *name = arena_format(&r->arena, "input_%zu_dim_%u", index, d);
        return sym_symbol(symbols, name, 0, slot->sizes[d]);
    }
    if (sym_parse(symbols, port->shape[d], false, &size, NULL) == FERRY_OK) return size;
    return sym_symbol(symbols, port->shape[d], 0, SYM_UNBOUNDED);
}

/* Input `index`, number `number` among the tensors. */
static void read_input(Reader *r, PteSlot *slot, uint32_t index, size_t number) {
    const ferry_port *port = r->ports->input_count ? &r->ports->inputs[number] : NULL;
    const Sym *sizes[FERRY_MAX_RANK];
    if (port && (port->rank != slot->rank || port->dtype != slot->dtype)) {
        pte_read_bad(
            r,
            "export.json says that the input \"%s\" has rank %zu and dtype %s; the program has "
            "rank %u and %s",
            port->name, port->rank, ferry_dtype_name(port->dtype), slot->rank,
            ferry_dtype_name(slot->dtype));
        return;
    }
    for (uint32_t d = 0; d < slot->rank; d++) sizes[d] = input_size(r, port, slot, number, d);
    const char *name = port ? arena_string(&r->b.program->arena, port->name)
                            : arena_format(&r->b.program->arena, "input_%zu", number);
    Value *value = build_input(&r->b, name, slot->dtype, slot->rank, sizes);
    if (reader_ok(r)) pte_read_give(r, flat_item(&r->f.inputs, index), value);
    slot->before = value;
}

/* Inputs that are no tensors are what the program was made with, and so are their values. */
static void read_inputs(Reader *r) {
    const PtePorts *ports = r->ports;
    size_t count = 0, read = 0;
    for (uint32_t i = 0; i < r->f.inputs.count && reader_ok(r); i++) {
        const PteSlot *slot = pte_read_slot(r, flat_item(&r->f.inputs, i));
        count += slot && slot->kind == SLOT_TENSOR;
    }
    bool named = ports->input_count > 0;
    if (named && (ports->input_count != count || ports->output_count != r->f.outputs.count)) {
        pte_read_bad(r, "export.json names %zu inputs and %zu outputs, the program has %zu and %u",
                     ports->input_count, ports->output_count, count, r->f.outputs.count);
    }
    for (uint32_t i = 0; i < r->f.inputs.count && reader_ok(r); i++) {
        PteSlot *slot = pte_read_slot(r, flat_item(&r->f.inputs, i));
        if (slot && slot->kind == SLOT_TENSOR) read_input(r, slot, i, read++);
    }
}

/* ---- instructions ---- */

/* "aten::add" with the overload "out" is the kernel "aten::add.out". */
static const char *kernel_name(Reader *r, uint64_t index) {
    FlatTable entry = flat_item_table(&r->f.operators, index);
    const char *name = flat_get_string(&entry, 0), *overload = flat_get_string(&entry, 1);
    if (!name) {
        pte_read_bad(r, "the operator %" PRIu64 " is not in the list, which has %u", index,
                     r->f.operators.count);
        return NULL;
    }
    if (!overload || !*overload) return name;
    return arena_format(&r->arena, "%s.%s", name, overload);
}

static void read_instruction(Reader *r, size_t index) {
    static const char *const others[] = {"nothing",       "",        "", "MoveCall",
                                         "JumpFalseCall", "FreeCall"};
    FlatTable entry = flat_item_table(&r->f.instructions, index), call = flat_get_table(&entry, 1);
    uint64_t kind = flat_get(&entry, 0, 1, 0), callee = flat_get(&call, 0, 4, 0);
    FlatVector list = flat_get_vector(&call, 1, 4);
    if (list.count > PTE_MAX_ITEMS) {
        pte_read_unsupported(r, "the instruction %zu has %u arguments", index, list.count);
        return;
    }
    uint32_t *args = ARENA_ARRAY(&r->arena, uint32_t, list.count);
    for (size_t i = 0; args && i < list.count; i++) args[i] = (uint32_t)flat_item(&list, i);
    if (!args) pte_read_memory(r);
    if (r->f.program.failed)
        pte_read_bad(r, "the instruction %zu leads outside of the file", index);
    if (!reader_ok(r)) return;
    PteCall made = {.args = args, .count = (uint32_t)list.count};
    if (kind == PTE_CALL_DELEGATE) {
        pte_read_delegate(r, callee, &made);
    } else if (kind == PTE_CALL_KERNEL) {
        made.kernel = kernel_name(r, callee);
        if (made.kernel) pte_read_kernel(r, &made);
    } else {
        pte_read_unsupported(
            r, "the instruction %zu is a %s: control flow is not understood", index,
            kind < sizeof others / sizeof *others ? others[kind] : "kind of its own");
    }
}

/* ---- outputs ---- */

static Value *find_input(const Reader *r, const char *name) {
    const Program *program = r->b.program;
    for (size_t i = 0; name && i < program->inputs.count; i++) {
        if (strcmp(program->inputs.items[i].name, name) == 0) return program->inputs.items[i].value;
    }
    return NULL;
}

/* What an input or a state is when the run ends is an output; the caller may have it written over an input
 * that is a tensor of its own, which only export.json tells. */
static void read_output(Reader *r, size_t index) {
    const ferry_port *port = r->ports->input_count ? &r->ports->outputs[index] : NULL;
    Value *value = pte_read_tensor(r, flat_item(&r->f.outputs, index));
    const PteSlot *slot = pte_read_slot(r, flat_item(&r->f.outputs, index));
    Arena *arena = &r->b.program->arena;
    if (!reader_ok(r)) return;
    build_output(&r->b,
                 port ? arena_string(arena, port->name) : arena_format(arena, "output_%zu", index),
                 value);
    if (!reader_ok(r) || r->b.program->outputs.failed) return;
    Port *output = &r->b.program->outputs.items[r->b.program->outputs.count - 1];
    output->writes = slot->before ? slot->before : find_input(r, port ? port->writes : NULL);
    if (slot->state) value_make_state(slot->before);
}

/* ---- the program ---- */

static void read_program(Reader *r) {
    if (!pte_read_slots(r)) return;
    if (r->f.outputs.count == 0) pte_read_bad(r, "the program has no output");
    read_inputs(r);
    for (size_t i = 0; i < r->f.instructions.count && reader_ok(r); i++) read_instruction(r, i);
    for (size_t i = 0; i < r->f.outputs.count && reader_ok(r); i++) read_output(r, i);
    if (!reader_ok(r)) return;
    program_sweep(r->b.program);
    r->b.program->dtype = program_float_dtype(r->b.program);
    if (r->arena.failed || r->places.failed || r->weights.failed) pte_read_memory(r);
}

/* A failure of the builder, with the file that it is about: what it cannot make sense of may be sound. */
static void explain(Reader *r, ferry_error *error) {
    if (r->told || !error) {
        if (error) *error = r->problem;
        return;
    }
    ferry_error problem = r->problem;
    ferry_status status = r->b.status;
    if (status == FERRY_INVALID_ARGUMENT || status == FERRY_BAD_FORMAT) status = FERRY_UNSUPPORTED;
    r->b.status = error_set(error, status, r->f.file->path, "%.900s", problem.message);
}

ferry_status executorch_read_file(const MappedFile *file, const PtePorts *ports, Program *program,
                                  ferry_error *error) {
    Reader r = {.ports = ports};
    TRY(pte_file(file, &r.f, error));
    r.b = build_start(program, &r.problem);
    read_program(&r);
    build_finish(&r.b);
    if (!reader_ok(&r)) explain(&r, error);
    ferry_status status = r.b.status;
    map_free(&r.places);
    map_free(&r.weights);
    arena_free(&r.arena);
    return status;
}

ferry_status executorch_read(const char *path, const PtePorts *ports, MappedFiles *files,
                             Program *program, ferry_error *error) {
    const MappedFile *file;
    TRY(files_map(files, path, &file, error));
    return executorch_read_file(file, ports, program, error);
}
