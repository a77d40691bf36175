/* Chat templates: Jinja, as Transformers runs it (jinja2's sandbox with trim_blocks, lstrip_blocks, loop
 * controls, {% generation %}, and a tojson that escapes nothing).
 *
 * The text is cut into tokens (token.c), parsed to a tree (parser.c, expression.c) and run (run.c,
 * evaluate.c) on values like Python's. What jinja2 has and this lacks is refused where it stands, with its
 * line. Templates are hostile: they end within limits on steps, memory and depth. */
#ifndef TEMPLATE_TEMPLATE_H
#define TEMPLATE_TEMPLATE_H

#include "base/buffer.h"
#include "format/json.h"
#include "text/template/token.h"

typedef struct Template Template;

/* The most that a run may take: evaluated nodes and visited items, bytes that it makes. */
typedef struct TemplateLimits {
    size_t steps, memory;
} TemplateLimits;

#define TEMPLATE_LIMITS ((TemplateLimits){.steps = 50000000, .memory = (size_t)256 << 20})

/* Parse a text; the template lives in the arena, and the name's strings must live as long. */
ferry_status template_parse(TemplateName name, Arena *arena, const char *text, size_t length,
                            const Template **out, ferry_error *error);

/* Run a template on variables, a JSON object, and append its output. */
ferry_status template_render(const Template *template, const json_t *variables,
                             TemplateLimits limits, Buffer *out, ferry_error *error);

#endif
