#include "format/xml_write.h"

static const char *entity(unsigned char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    default: return c < ' ' ? "?" : NULL;
    }
}

void xml_text(Buffer *buffer, const char *text) {
    const char *plain = text;
    for (; *text; text++) {
        const char *replacement = entity((unsigned char)*text);
        if (!replacement) continue;
        buffer_append(buffer, plain, (size_t)(text - plain));
        buffer_text(buffer, replacement);
        plain = text + 1;
    }
    buffer_append(buffer, plain, (size_t)(text - plain));
}

void xml_attribute(Buffer *buffer, const char *name, const char *value) {
    buffer_format(buffer, " %s=\"", name);
    xml_text(buffer, value);
    buffer_text(buffer, "\"");
}
