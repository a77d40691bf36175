/* Reading XML: a document as a tree of elements with attributes. Text between elements is not kept.
 *
 * Whatever could make a small file large, or reach outside of it, is refused: document types, and with
 * them entities of the document's own. */
#ifndef FORMAT_XML_H
#define FORMAT_XML_H

#include "base/arena.h"
#include <ferry/status.h>

enum { XML_MAX_DEPTH = 64 };

typedef struct XmlAttribute {
    const char *name, *value;
} XmlAttribute;

typedef struct XmlElement XmlElement;
struct XmlElement {
    const char *name;
    const XmlAttribute *attributes;
    size_t attribute_count;
    unsigned long line;
    XmlElement *first, *last; /* children */
    XmlElement *next;         /* sibling */
};

/* The root of a document in UTF-8, in the arena. BAD_FORMAT names `path`, the line and the mistake. */
ferry_status xml_read(const void *bytes, size_t size, const char *path, Arena *arena,
                      const XmlElement **root, ferry_error *error);

/* The value of an attribute; NULL when the element (NULL: none) does not have it. */
const char *xml_value(const XmlElement *element, const char *name);

/* The first child called `name` of an element (NULL: none), and the next sibling called so; NULL when
 * there is none. */
const XmlElement *xml_child(const XmlElement *element, const char *name);
const XmlElement *xml_next(const XmlElement *element, const char *name);

#endif
