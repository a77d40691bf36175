/* The protobuf wire format: fields appended to a buffer, and a walker over encoded fields.
 *
 * A field is a varint key (number << 3 | wire type) and a value: varint (0), 8 bytes (1), length and
 * bytes (2), 4 bytes (5). A nested message is length-delimited; its length is patched in as a padded
 * five-byte varint when it is closed, so everything is written in one pass. */
#ifndef FORMAT_PROTOBUF_H
#define FORMAT_PROTOBUF_H

#include "base/buffer.h"
#include <stdint.h>

void proto_int(Buffer *buffer, uint32_t field, int64_t value);
void proto_float(Buffer *buffer, uint32_t field, float value);
void proto_bytes(Buffer *buffer, uint32_t field, const void *bytes, size_t length);
void proto_string(Buffer *buffer, uint32_t field, const char *text);

/* Open a nested message; close it with the returned mark. Messages may nest. */
size_t proto_open(Buffer *buffer, uint32_t field);
void proto_close(Buffer *buffer, size_t mark);

/* ---- reading ---- */

typedef struct ProtoField {
    uint32_t number;
    uint32_t wire;              /* 0, 1, 2 or 5 */
    uint64_t value;             /* varint and fixed-size values */
    const unsigned char *bytes; /* length-delimited */
    size_t length;
} ProtoField;

typedef struct ProtoReader {
    const unsigned char *next, *end;
    bool failed; /* the bytes are no valid message */
} ProtoReader;

ProtoReader proto_reader(const void *bytes, size_t length);

/* The next field; false at the end or after a failure. */
bool proto_next(ProtoReader *reader, ProtoField *field);

/* The next varint of packed values. */
bool proto_varint(ProtoReader *reader, uint64_t *value);

/* The next little-endian number of `size` bytes, at most 8. */
bool proto_fixed(ProtoReader *reader, size_t size, uint64_t *value);

#endif
