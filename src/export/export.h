/* Private parts of the public handles. */
#ifndef EXPORT_EXPORT_H
#define EXPORT_EXPORT_H

#include "base/pool.h"
#include "format/json.h"
#include "graph/registry.h"
#include "run/executorch.h"
#include "run/onnxruntime.h"
#include "run/openvino.h"
#include "source/checkpoint/checkpoint.h"
#include "source/checkpoint/model.h"
#include "source/pt2/pt2.h"
#include "target/onnx/onnx.h"
#include <ferry/ferry.h>

/* An opened source: a checkpoint, a torch.export program, or the programs of a generation split, each a
 * source of its own. */
struct ferry_model {
    Checkpoint *checkpoint;
    Pt2 *pt2;
    ferry_model **components;
    const char **component_names;
    size_t component_count;
    const char *directory; /* where config.json may be, unless it is told by a GGUF file */
    ferry_weight *weights;
    size_t weight_count;
    Arena arena;
};

/* Everything that export.json holds. */
typedef struct Manifest {
    Arena arena;
    const char *format;                    /* "onnx" */
    const char *component;                 /* "model", "decode" */
    const char *file;                      /* "model.onnx" */
    const char *architecture;              /* "LlamaForCausalLM" */
    const char *dtype;                     /* "float32" */
    ferry_port *inputs, *outputs, *states; /* states: caches that the program keeps to itself */
    size_t input_count, output_count, state_count;
    int64_t static_cache; /* length of the caches; 0: they grow */
    bool counted;         /* the caches that it goes on from are static */
    bool traced;          /* the source was a torch.export program */
    json_t *ranges;       /* of symbolic sizes, by name; in the document; may be NULL */
    json_t *json;         /* the document; owned */
} Manifest;

typedef struct ExportTarget ExportTarget;

/* One program, or, when `component_count` is not 0, several, each an export of its own. */
struct ferry_exported {
    Manifest manifest;
    ferry_exported **components;
    size_t component_count;
    const char *directory; /* in the manifest's arena; NULL until saved or loaded */

    /* of a fresh export; NULL in a loaded one */
    const ferry_model *model;
    const ExportTarget *target;
    ferry_export_config config;

    Registry builtin; /* empty in an export with plug-ins, which have a registry of their own */

    Program *program;  /* legalized; read from the file on demand in a loaded export */
    Pt2 *pt2;          /* behind a program that was read from a .pt2 */
    MappedFiles files; /* behind a program that was read */
    Pool *pool;
    OnnxRuntime *runtime;
    OnnxSession *session;
    OpenVino *openvino;
    OpenVinoSession *openvino_session;
    ExecuTorch *executorch;
    ExecuTorchSession *executorch_session;
};

/* ---- model.c ---- */

/* The source of the component called `name` (NULL: of the only one). */
ferry_status model_component(ferry_model *model, const char *name, ferry_model **out,
                             ferry_error *error);

/* ---- target.c ---- */

typedef struct Save Save;

/* What differs between the formats that can be exported to. */
struct ExportTarget {
    const char *name;            /* "onnx" */
    const char *prefix, *suffix; /* of a component's file: "openvino_" "model" ".xml" */
    bool keeps_caches;           /* its programs can, from run to run */
    bool keeps_weights;          /* those of a program that stays one remain what they were to it */
    ferry_status (*legalize)(Program *program, const Registry *registry,
                             const ferry_export_config *config, ferry_error *error);
    /* Settle what depends on the finished program; NULL: nothing does. */
    ferry_status (*finish)(Program *program, const ferry_export_config *config, ferry_error *error);
    /* What to compute in: `wanted`, or by default what a checkpoint in `stored` becomes. `*note` is what
     * the user should know about it, or NULL. */
    ferry_dtype (*choose_dtype)(const ferry_export_config *config, ferry_dtype wanted,
                                ferry_dtype stored, const char **note);
    /* Open the files of the export through the save, and write them. */
    ferry_status (*write)(Save *save);
    /* What the file calls the program's inputs and outputs. */
    const char *(*input_name)(Program *program, size_t index);
    const char *(*output_name)(Program *program, size_t index);
};

/* NULL when there is no target of that name. */
const ExportTarget *target_find(const char *name);

/* ---- save.c ---- */

enum { SAVE_MAX_FILES = 64 };

struct Save {
    ferry_exported *exported;
    const char *directory;
    Arena arena;
    OutputFile files[SAVE_MAX_FILES]; /* in the order in which they are committed */
    size_t count;
    const char
        *stale[SAVE_MAX_FILES]; /* what an earlier export may have left and this one has not */
    size_t stale_count;
    SharedWeights shared; /* between components */
    ferry_export_sizes sizes;
    ferry_error *error;
};

/* The export's file with another ending: "decode.onnx" and ".data" give "decode.onnx.data"; with `from` given,
 * what stands from there on is replaced. */
const char *save_sibling(Save *save, const char *from, const char *ending);

/* A file of the export, opened beside its place; NULL after a failure. */
OutputFile *save_open(Save *save, const char *name, uint64_t size, ferry_status *status);

/* A symbolic link to `file` in the place of a file of the export. */
ferry_status save_link(Save *save, const char *name, const MappedFile *file);

/* ---- files.c ---- */

/* Write the files that go with an export: configurations, the tokenizer. */
ferry_status files_write(Save *save);

/* ---- inputs.c ---- */

/* The inputs that a configuration asks for; `*inputs` is in the program's arena. */
ferry_status inputs_resolve(const ferry_export_config *config, Program *program,
                            InputRequest **inputs, size_t *count, ferry_error *error);

/* Give the sizes of a program's inputs the upper bounds that `dynamic_shapes` asks for. */
ferry_status inputs_bound(const ferry_export_config *config, Program *program, ferry_error *error);

/* ---- structure.c ---- */

/* Replace the classes in the nested structures of a program by dicts and lists. */
ferry_status structure_make_plain(Program *program, ferry_error *error);

/* ---- manifest_describe.c ---- */

/* The metadata of a component. */
json_t *manifest_describe(Program *program, const ExportTarget *target,
                          const ferry_export_config *config);

/* ---- manifest.c ---- */

/* Describe the program; `config` is how it was exported. */
ferry_status manifest_make(Manifest *manifest, Program *program, const ExportTarget *target,
                           const ferry_export_config *config, ferry_error *error);

/* Describe a torch.export program in `file`, as if it had been saved with an export.json. */
ferry_status manifest_of_pt2(Manifest *manifest, Program *program, const char *file,
                             ferry_error *error);
/* Read export.json; the fields of the only component are taken over, or, when there are several, those that
 * they share. */
ferry_status manifest_read(Manifest *manifest, const char *directory, ferry_error *error);

/* The manifest of component `index` of a document. NOT_FOUND past the end. */
ferry_status manifest_component(const Manifest *all, size_t index, Manifest *out,
                                ferry_error *error);

/* The document of an export with these components. */
ferry_status manifest_join(Manifest *manifest, ferry_exported *const *components, size_t count,
                           ferry_error *error);
void manifest_free(Manifest *manifest);

/* Give the program the symbols of a loaded export with their ranges, as far as export.json has them. */
ferry_status manifest_declare_sizes(const Manifest *manifest, Program *program, ferry_error *error);

/* ---- samples.c ---- */

/* Inputs that fit the export's signature; `round` 0 and 1 have different sizes. */
ferry_status samples_make(const ferry_exported *exported, int round, ferry_tensors **out,
                          ferry_error *error);

/* ---- run.c ---- */

/* The keyword of the model that an input or output of the graph is: "cache.layers.0.keys" for
 * "input.cache.layers.0.keys", which is called so where there is an output of that keyword too. */
const char *port_keyword(const char *name);

/* The tensors of `from` under the names that port_keyword gives. They are not copied: `*out` keeps `from`. */
ferry_status ports_by_keyword(ferry_tensors *from, ferry_tensors **out, ferry_error *error);

/* True when the runtime of this name takes exports of this format. */
bool runtime_takes(const char *runtime, const char *format);

/* ---- exported.c ---- */

/* Where the export's families, translations, ... are: its plug-ins' registry, or its own. */
const Registry *exported_registry(const ferry_exported *exported);

/* The program of an export, read from its file when it was loaded. */
ferry_status exported_program(ferry_exported *exported, ferry_error *error);

#endif
