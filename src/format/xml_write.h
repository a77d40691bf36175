/* Writing XML: attributes and text with what must be escaped. Tags are short enough to be written as
 * they are. */
#ifndef FORMAT_XML_WRITE_H
#define FORMAT_XML_WRITE_H

#include "base/buffer.h"

/* Text in which every character stands for itself. XML has no control characters: "?" stands for one. */
void xml_text(Buffer *buffer, const char *text);

/* ` name="value"` */
void xml_attribute(Buffer *buffer, const char *name, const char *value);

#endif
