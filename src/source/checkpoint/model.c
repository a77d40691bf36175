/* Building the program of a checkpoint. The services of model.h are in config.c, weights.c, inputs.c and
 * activation.c; the list of families is in families.c. */
#include "source/checkpoint/cache.h"
#include "source/checkpoint/families.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

void model_note(Model *m, const char *format, ...) {
    if (!m->request->note || !build_ok(&m->b)) return;
    va_list args;
    va_start(args, format);
    m->request->note(m->request->note_context, arena_vformat(&m->b.program->arena, format, args));
    va_end(args);
}

/* ---- building ---- */

static bool supports(const Family *family, Task task) {
    return (family->tasks >> task & 1u) != 0;
}

/* "LlamaForCausalLM", but for the classes that are not called so. */
static const char *class_name(Model *m, Task task) {
    static const struct {
        const char *model_type;
        Task task;
        const char *name;
    } irregular[] = {
        {"gpt2", TASK_CAUSAL_LM, "GPT2LMHeadModel"},
        {"marian", TASK_TEXT_TO_TEXT, "MarianMTModel"},
        {"gemma3_text", TASK_FEATURES, "Gemma3TextModel"},
        {"vit", TASK_IMAGE_FEATURES, "ViTModel"},
        {"dinov2", TASK_IMAGE_FEATURES, "Dinov2Model"},
        {"clip_text_model", TASK_FEATURES, "CLIPTextModel"},
        {"clip_vision_model", TASK_FEATURES, "CLIPVisionModel"},
        {"siglip_text_model", TASK_FEATURES, "SiglipTextModel"},
        {"siglip_vision_model", TASK_FEATURES, "SiglipVisionModel"},
        {"gemma3_text", TASK_SEQUENCE_CLASSIFICATION, "Gemma3TextForSequenceClassification"},
    };
    for (size_t i = 0; i < sizeof irregular / sizeof *irregular; i++) {
        if (irregular[i].task == task && !strcmp(irregular[i].model_type, m->family->model_type))
            return irregular[i].name;
    }
    return arena_format(&m->b.program->arena, "%s%s", m->family->class_prefix, task_suffix(task));
}

/* The task of the class called `name`; of several, one that the family supports. */
static bool task_of_class(Model *m, const char *name, Task *out) {
    bool found = false;
    for (int task = 0; task < TASK_COUNT; task++) {
        if (strcmp(name, class_name(m, (Task)task)) != 0) continue;
        if (!found) *out = (Task)task;
        found = true;
        if (!supports(m->family, (Task)task)) continue;
        *out = (Task)task;
        break;
    }
    return found;
}

static void choose_task(Model *m) {
    json_t *classes = config_get(m, "architectures");
    const char *name = m->request->architecture;
    if (!name) name = json_string_value(json_array_get(classes, 0));
    if (classes && !json_is_array(classes)) {
        build_fail(&m->b, FERRY_BAD_FORMAT, "%s: expected \"architectures\" to be a list, found %s",
                   m->config_path, json_kind(classes));
    }
    if (m->request->has_task)
        m->task = m->request->task;
    else if (!name)
        m->task = TASK_FEATURES;
    else if (!task_of_class(m, name, &m->task)) {
        build_fail(&m->b, FERRY_UNSUPPORTED,
                   "%s: the class \"%s\" is not supported for model type %s; choose a task with "
                   "--task, or export its torch.export program (.pt2)",
                   m->config_path, name, m->family->model_type);
    }
    if (!supports(m->family, m->task)) {
        build_fail(&m->b, FERRY_UNSUPPORTED, "model type %s has no support for the task %s",
                   m->family->model_type, task_name(m->task));
    }
    m->b.program->architecture = class_name(m, m->task);
}

static ferry_status unknown_type(const Checkpoint *cp, const Registry *registry,
                                 ferry_error *error) {
    return error_set(
        error, FERRY_UNSUPPORTED, cp->directory,
        "the model type \"%s\" is not built natively (the nearest that is: \"%s\"; see "
        "`ferry models`): export the model with torch.export and give ferry the .pt2",
        cp->model_type, families_nearest(registry, cp->model_type));
}

ferry_status model_components(const Checkpoint *checkpoint, const Registry *registry,
                              const char *const **out, ferry_error *error) {
    static const char *const decoder[] = {"prefill", "decode", NULL};
    const Family *family = registry_find(registry, EXTENSION_FAMILY, checkpoint->model_type);
    if (!family) return unknown_type(checkpoint, registry, error);
    *out = family->components ? family->components : decoder;
    if (family->components || supports(family, TASK_CAUSAL_LM)) return FERRY_OK;
    return error_set(error, FERRY_UNSUPPORTED, checkpoint->directory,
                     "model type %s does not generate: export it whole", family->model_type);
}

/* Is the component that is asked for one of the model's? */
static void check_component(Model *m, const Registry *registry) {
    const char *const *names, *wanted = m->request->component;
    ferry_error error;
    if (!wanted) return;
    if (model_components(m->checkpoint, registry, &names, &error) != FERRY_OK) {
        build_fail(&m->b, error.status, "%s", error.message);
        return;
    }
    for (; *names; names++) {
        if (strcmp(*names, wanted) == 0) return;
    }
    build_fail(&m->b, FERRY_INVALID_ARGUMENT, "model type %s has no component \"%s\"",
               m->family->model_type, wanted);
}

/* What a call in Transformers would return besides, because the configuration says so. */
static void note_omitted_results(Model *m) {
    static const char *const keys[] = {"output_attentions", "output_hidden_states"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (config_bool_or(m, keys[i], false))
            model_note(m, "%s sets %s: the program does not return them", m->config_path, keys[i]);
    }
}

static void reject_quantized(Model *m) {
    json_t *scheme = config_get(m, "quantization_config");
    if (!scheme) return;
    const char *method = json_string_value(json_object_get(scheme, "quant_method"));
    build_fail(
        &m->b, FERRY_UNSUPPORTED,
        "%s: the weights are quantized (quant_method \"%s\"), which is not supported: export "
        "the unquantized checkpoint",
        m->config_path, method ? method : "unknown");
}

ferry_status model_build(const Checkpoint *checkpoint, const Registry *registry,
                         const ModelRequest *request, InputRequest *inputs, size_t input_count,
                         Program *program, ferry_error *error) {
    static const char *const whole[] = {"input_ids", "attention_mask", NULL};
    static const char *const steps[] = {"input_ids", "attention_mask", "position_ids", NULL};
    const Family *family = registry_find(registry, EXTENSION_FAMILY, checkpoint->model_type);
    if (!family) return unknown_type(checkpoint, registry, error);
    Model m = {.b = build_start(program, error),
               .checkpoint = checkpoint,
               .family = family,
               .registry = registry,
               .request = request,
               .part_prefix = "",
               .input_prefix = "",
               .cache_name = "cache",
               .dtype = request->dtype ? request->dtype : checkpoint_dtype(checkpoint),
               .named = inputs,
               .named_count = input_count};
    config_start(&m);
    model_merge_inputs(&m, request->component ? steps : whole, request->component != NULL);
    model_name_dimensions(&m);
    program->model_type = family->model_type;
    program->dtype = m.dtype;
    reject_quantized(&m);
    choose_task(&m);
    check_component(&m, registry);
    if (request->component && !family->components && m.task != TASK_CAUSAL_LM) {
        build_fail(&m.b, FERRY_INVALID_ARGUMENT,
                   "%s does not generate: ask for the task text-generation", program->architecture);
    }
    if (build_ok(&m.b)) family->build(&m);
    model_order_inputs(&m);
    note_omitted_results(&m);
    config_check_unread(&m);
    config_end(&m);
    if (m.weights.failed) program->arena.failed = true;
    ferry_status status = build_finish(&m.b);
    map_free(&m.weights);
    return status;
}
