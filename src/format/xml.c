/* A tree from the events of Expat. */
#include "format/xml.h"
#include "base/error.h"

#include <expat.h>
#include <string.h>

typedef struct Reader {
    XML_Parser parser;
    Arena *arena;
    XmlElement *open[XML_MAX_DEPTH];
    size_t depth;
    XmlElement *root;
    const char *problem; /* of ours; NULL: none */
} Reader;

static void stop(Reader *reader, const char *problem) {
    if (!reader->problem) reader->problem = problem;
    XML_StopParser(reader->parser, XML_FALSE);
}

/* `words`: names and values in turn, then NULL. */
static bool copy_attributes(Arena *arena, XmlElement *element, const char **words) {
    size_t count = 0;
    while (words[2 * count]) count++;
    XmlAttribute *attributes = ARENA_ARRAY(arena, XmlAttribute, count);
    for (size_t i = 0; attributes && i < count; i++) {
        attributes[i].name = arena_string(arena, words[2 * i]);
        attributes[i].value = arena_string(arena, words[2 * i + 1]);
    }
    element->attributes = attributes;
    element->attribute_count = count;
    return !arena->failed;
}

static void XMLCALL start_element(void *context, const char *name, const char **words) {
    Reader *reader = context;
    if (reader->problem) return;
    if (reader->depth == XML_MAX_DEPTH) {
        stop(reader, "elements are nested more than 64 deep");
        return;
    }
    XmlElement *element = ARENA_NEW(reader->arena, XmlElement);
    if (!element || !copy_attributes(reader->arena, element, words)) {
        stop(reader, "out of memory");
        return;
    }
    element->name = arena_string(reader->arena, name);
    element->line = XML_GetCurrentLineNumber(reader->parser);
    XmlElement *parent = reader->depth ? reader->open[reader->depth - 1] : NULL;
    if (!parent)
        reader->root = element;
    else if (parent->last)
        parent->last->next = element;
    else
        parent->first = element;
    if (parent) parent->last = element;
    reader->open[reader->depth++] = element;
}

static void XMLCALL end_element(void *context, const char *name) {
    Reader *reader = context;
    (void)name;
    if (!reader->problem) reader->depth--;
}

static void XMLCALL refuse_doctype(void *context, const char *name, const char *system,
                                   const char *public, int has_internal_subset) {
    (void)name, (void)system, (void)public, (void)has_internal_subset;
    stop(context, "document types and entities are not accepted");
}

/* Expat takes lengths as int. */
static enum XML_Status parse(XML_Parser parser, const char *bytes, size_t size) {
    enum { CHUNK = 1 << 20 };
    do {
        size_t length = size < CHUNK ? size : CHUNK;
        size -= length;
        enum XML_Status status = XML_Parse(parser, bytes, (int)length, size == 0);
        if (status != XML_STATUS_OK) return status;
        bytes += length;
    } while (size);
    return XML_STATUS_OK;
}

ferry_status xml_read(const void *bytes, size_t size, const char *path, Arena *arena,
                      const XmlElement **root, ferry_error *error) {
    Reader reader = {.parser = XML_ParserCreate("UTF-8"), .arena = arena};
    *root = NULL;
    if (!reader.parser) return error_memory(error, path, 0);
    XML_SetUserData(reader.parser, &reader);
    XML_SetElementHandler(reader.parser, start_element, end_element);
    XML_SetStartDoctypeDeclHandler(reader.parser, refuse_doctype);
    ferry_status status = FERRY_OK;
    if (parse(reader.parser, bytes, size) != XML_STATUS_OK) {
        enum XML_Error code = XML_GetErrorCode(reader.parser);
        const char *problem = reader.problem ? reader.problem : XML_ErrorString(code);
        unsigned long line = XML_GetCurrentLineNumber(reader.parser);
        status =
            error_set(error, FERRY_BAD_FORMAT, path, "not valid XML: line %lu: %s", line, problem);
        if (code == XML_ERROR_NO_MEMORY) status = error_memory(error, path, 0);
    }
    XML_ParserFree(reader.parser);
    if (arena->failed) status = error_memory(error, path, 0);
    if (status == FERRY_OK) *root = reader.root;
    return status;
}

const char *xml_value(const XmlElement *element, const char *name) {
    for (size_t i = 0; element && i < element->attribute_count; i++) {
        if (strcmp(element->attributes[i].name, name) == 0) return element->attributes[i].value;
    }
    return NULL;
}

static const XmlElement *first_called(const XmlElement *element, const char *name) {
    while (element && strcmp(element->name, name) != 0) element = element->next;
    return element;
}

const XmlElement *xml_child(const XmlElement *element, const char *name) {
    return element ? first_called(element->first, name) : NULL;
}

const XmlElement *xml_next(const XmlElement *element, const char *name) {
    return first_called(element->next, name);
}
