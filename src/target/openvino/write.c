/* Writing the model: weights to the .bin, streamed, then the graph to the .xml.
 *
 * <net>
 *   <layers>  Parameters in the order of the inputs, everything else, Results in that of the outputs
 *   <edges>
 *   <rt_info> what the model is, and how it is best run */
#include "base/error.h"
#include "format/xml_write.h"
#include "pass/pass.h"
#include "target/openvino/emit.h"
#include "target/openvino/state.h"
#include "target/openvino/weights.h"

static bool accepts(const void *context, const Node *node) {
    (void)context;
    return openvino_supports(node->op);
}

ferry_status openvino_legalize(Program *program, const OpenvinoOptions *options,
                               ferry_error *error) {
    if (!options->stateless) TRY(state_keep(program, error));
    TRY(pass_plain_attention(program, error));
    return pass_legalize(program, "openvino", accepts, NULL, error);
}

/* ---- the graph ---- */

static void add_parameters(Ir *ir) {
    Program *program = ir->program;
    for (size_t i = 0; i < program->inputs.count; i++) {
        const Value *value = program->inputs.items[i].value;
        ir->ports[value->id] = ir_parameter(ir, signature_input(program, i), value);
    }
}

/* A tensor has the names of all the results that read it: an output that is also an input, or another
 * output, is converted to its own type to have a name of its own. */
static void add_results(Ir *ir) {
    Program *program = ir->program;
    for (size_t i = 0; i < program->outputs.count; i++) {
        const Value *value = program->outputs.items[i].value;
        IrPort port = ir_value(ir, value);
        bool named = value->kind != VALUE_NODE;
        for (size_t j = 0; j < i && !named; j++) named = program->outputs.items[j].value == value;
        ir->label = signature_output(program, i);
        if (named) port = ir_convert(ir, port, value->dtype);
        ir_result(ir, signature_output(program, i), port);
    }
}

static void add_layers(Ir *ir) {
    add_parameters(ir);
    state_read(ir);
    for (const Node *node = ir->program->first; node && ir->status == FERRY_OK; node = node->next) {
        ir_lower(ir, node);
    }
    ir->node = NULL;
    if (ir->status == FERRY_OK) state_assign(ir);
    if (ir->status == FERRY_OK) add_results(ir);
}

/* ---- the file ---- */

static void append_info(Buffer *xml, const char *name, const char *value) {
    buffer_format(xml, "<%s", name);
    xml_attribute(xml, "value", value);
    buffer_text(xml, "/>");
}

/* Without KV_CACHE_PRECISION the CPU plugin keeps keys and values in 8 bits. It honours what is said here,
 * except for INFERENCE_PRECISION_HINT, which must be given to it when the model is compiled. */
static void append_rt_info(Buffer *xml, const Program *program) {
    const char *type = ir_element_type(program->dtype);
    buffer_text(xml, "<rt_info>\n<runtime_options>");
    append_info(xml, "INFERENCE_PRECISION_HINT", type);
    append_info(xml, "KV_CACHE_PRECISION", type);
    buffer_text(xml, "</runtime_options>\n<ferry>");
    append_info(xml, "version", ferry_version());
    append_info(xml, "architecture", program->architecture);
    append_info(xml, "model_type", program->model_type);
    buffer_text(xml, "</ferry>\n</rt_info>\n");
}

static void append_model(Ir *ir, Buffer *xml) {
    buffer_text(xml, "<?xml version=\"1.0\"?>\n<net");
    xml_attribute(xml, "name", ir->program->architecture);
    buffer_text(xml, " version=\"11\">\n<layers>\n");
    buffer_append(xml, ir->layers.bytes, ir->layers.length);
    buffer_text(xml, "</layers>\n<edges>\n");
    buffer_append(xml, ir->edges.bytes, ir->edges.length);
    buffer_text(xml, "</edges>\n");
    append_rt_info(xml, ir->program);
    buffer_text(xml, "</net>\n");
}

static bool prepare(Ir *ir) {
    size_t count = ir->program->value_count;
    ir->ports = ARENA_ARRAY(&ir->arena, IrPort, count);
    ir->states = ARENA_ARRAY(&ir->arena, IrPort, count);
    ir->dimensions = signature_dimensions(ir->program, &ir->arena);
    return ir->ports && ir->states && ir->dimensions && weights_place(ir);
}

static void ir_free(Ir *ir) {
    buffer_free(&ir->layers);
    buffer_free(&ir->edges);
    buffer_free(&ir->pool);
    map_free(&ir->constants);
    map_free(&ir->sizes);
    arena_free(&ir->arena);
}

ferry_status openvino_write(Program *program, const OpenvinoOptions *options, OutputFile *xml,
                            OutputFile *bin, OpenvinoSizes *sizes, ferry_error *error) {
    Ir ir = {.program = program, .options = options, .error = error};
    Buffer bytes = {0};
    if (options->link) TRY(openvino_linked_file(program, &ir.linked, error));
    if (!prepare(&ir)) ir_fail(&ir, FERRY_OUT_OF_MEMORY, "out of memory");
    if (ir.status == FERRY_OK) add_layers(&ir);
    if (ir.status == FERRY_OK) append_model(&ir, &bytes);
    if (ir.layers.failed || ir.edges.failed || ir.pool.failed || ir.constants.failed ||
        ir.sizes.failed || ir.arena.failed || bytes.failed) {
        ir_fail(&ir, FERRY_OUT_OF_MEMORY, "out of memory");
    }
    if (ir.status == FERRY_OK && !options->link) weights_write(&ir, bin);
    if (ir.status == FERRY_OK) ir.status = output_write(xml, 0, bytes.bytes, bytes.length, error);
    *sizes = (OpenvinoSizes){.xml_bytes = bytes.length,
                             .bin_bytes = options->link ? 0 : ir.pool_offset + ir.pool.length,
                             .layers = ir.layer_count,
                             .weights = ir.weight_count};
    buffer_free(&bytes);
    ir_free(&ir);
    return ir.status;
}
