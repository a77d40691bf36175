/* The readable text of a program. */
#include "graph/program.h"

#include <inttypes.h>
#include <string.h>

static void print_shape(Buffer *buffer, uint32_t rank, const Sym *const *shape) {
    buffer_text(buffer, "[");
    for (uint32_t d = 0; d < rank; d++) {
        if (d) buffer_text(buffer, ", ");
        sym_print(buffer, shape[d]);
    }
    buffer_text(buffer, "]");
}

void value_print_type(Buffer *buffer, const Value *value) {
    buffer_text(buffer, ferry_dtype_name(value->dtype));
    print_shape(buffer, value->rank, value->shape);
}

static void print_arg(Buffer *buffer, const Arg *arg) {
    switch (arg->kind) {
    case VALUE_NONE: buffer_text(buffer, "None"); break;
    case VALUE_TENSOR: buffer_format(buffer, "%%%s", arg->tensor->name); break;
    case VALUE_TENSORS:
        buffer_text(buffer, "[");
        for (uint32_t i = 0; i < arg->tensors.count; i++) {
            const Value *item = arg->tensors.items[i];
            if (i) buffer_text(buffer, ", ");
            if (item)
                buffer_format(buffer, "%%%s", item->name);
            else
                buffer_text(buffer, "None");
        }
        buffer_text(buffer, "]");
        break;
    case VALUE_INT: sym_print(buffer, arg->integer); break;
    case VALUE_INTS: print_shape(buffer, arg->integers.count, arg->integers.items); break;
    case VALUE_FLOAT: buffer_format(buffer, "%.17g", arg->number); break;
    case VALUE_BOOL: buffer_text(buffer, arg->boolean ? "True" : "False"); break;
    case VALUE_STRING: buffer_format(buffer, "'%s'", arg->string); break;
    case VALUE_DTYPE: buffer_text(buffer, ferry_dtype_name(arg->dtype)); break;
    }
}

static void print_node(Buffer *buffer, const Node *node) {
    buffer_text(buffer, "  ");
    for (uint32_t i = 0; i < node->output_count; i++) {
        buffer_format(buffer, "%s%%%s", i ? ", " : "", node->outputs[i]->name);
    }
    buffer_format(buffer, " = %s(", op_name(node->op));
    const OpSchema *schema = op_schema(node->op);
    for (uint32_t i = 0; i < schema->arg_count; i++) {
        if (i) buffer_text(buffer, ", ");
        print_arg(buffer, &node->args[i]);
    }
    buffer_text(buffer, ") : ");
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (i) buffer_text(buffer, ", ");
        value_print_type(buffer, node->outputs[i]);
    }
    if (*node->scope) buffer_format(buffer, "  # %s", node->scope);
    buffer_text(buffer, "\n");
}

static void print_symbols(Buffer *buffer, const SymTable *table) {
    if (table->symbols.count == 0) return;
    buffer_text(buffer, "symbols:\n");
    for (size_t i = 0; i < table->symbols.count; i++) {
        const Sym *symbol = table->symbols.items[i];
        buffer_format(buffer, "  %s in [%" PRId64 ", ", symbol->name, symbol->lower);
        if (symbol->upper == SYM_UNBOUNDED)
            buffer_text(buffer, "inf)\n");
        else
            buffer_format(buffer, "%" PRId64 "]\n", symbol->upper);
    }
}

void program_print(Buffer *buffer, const Program *program) {
    buffer_format(buffer, "program %s (model type %s, %s)\n", program->architecture,
                  program->model_type, ferry_dtype_name(program->dtype));
    print_symbols(buffer, &program->symbols);
    buffer_text(buffer, "inputs:\n");
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Port *port = &program->inputs.items[i];
        buffer_format(buffer, "  %s: %%%s : ", port->name, port->value->name);
        value_print_type(buffer, port->value);
        buffer_text(buffer, "\n");
    }
    if (program->states.count) buffer_text(buffer, "states:\n");
    for (size_t i = 0; i < program->states.count; i++) {
        const State *state = &program->states.items[i];
        buffer_format(buffer, "  %s: %%%s -> %%%s : ", state->name, state->before->name,
                      state->after->name);
        value_print_type(buffer, state->before);
        buffer_text(buffer, "\n");
    }
    buffer_text(buffer, "weights:\n");
    for (size_t i = 0; i < program->weights.count; i++) {
        buffer_format(buffer, "  %%%s : ", program->weights.items[i]->name);
        value_print_type(buffer, program->weights.items[i]);
        buffer_text(buffer, "\n");
    }
    buffer_text(buffer, "nodes:\n");
    for (const Node *node = program->first; node; node = node->next) print_node(buffer, node);
    buffer_text(buffer, "outputs:\n");
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Port *port = &program->outputs.items[i];
        buffer_format(buffer, "  %s: %%%s : ", port->name, port->value->name);
        value_print_type(buffer, port->value);
        if (port->writes) buffer_format(buffer, "  # writes %%%s", port->writes->name);
        buffer_text(buffer, "\n");
    }
}
