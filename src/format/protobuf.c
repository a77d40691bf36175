#include "format/protobuf.h"

#include <string.h>

static void append_varint(Buffer *buffer, uint64_t value) {
    unsigned char bytes[10];
    size_t length = 0;
    do {
        bytes[length++] = (unsigned char)(value & 0x7f) | (value > 0x7f ? 0x80 : 0);
        value >>= 7;
    } while (value);
    buffer_append(buffer, bytes, length);
}

void proto_int(Buffer *buffer, uint32_t field, int64_t value) {
    append_varint(buffer, (uint64_t)field << 3);
    append_varint(buffer, (uint64_t)value);
}

void proto_float(Buffer *buffer, uint32_t field, float value) {
    append_varint(buffer, (uint64_t)field << 3 | 5);
    buffer_append(buffer, &value, sizeof value);
}

void proto_bytes(Buffer *buffer, uint32_t field, const void *bytes, size_t length) {
    append_varint(buffer, (uint64_t)field << 3 | 2);
    append_varint(buffer, length);
    buffer_append(buffer, bytes, length);
}

void proto_string(Buffer *buffer, uint32_t field, const char *text) {
    proto_bytes(buffer, field, text, strlen(text));
}

enum { LENGTH_BYTES = 5 };

size_t proto_open(Buffer *buffer, uint32_t field) {
    static const unsigned char placeholder[LENGTH_BYTES];
    append_varint(buffer, (uint64_t)field << 3 | 2);
    buffer_append(buffer, placeholder, LENGTH_BYTES);
    return buffer->length;
}

void proto_close(Buffer *buffer, size_t mark) {
    if (buffer->failed) return;
    size_t length = buffer->length - mark;
    if (length >> 7 * LENGTH_BYTES) {
        buffer->failed = true;
        return;
    }
    for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7) {
        buffer->bytes[mark - LENGTH_BYTES + (size_t)i] =
            (unsigned char)(length & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0);
    }
}

/* ---- reading ---- */

ProtoReader proto_reader(const void *bytes, size_t length) {
    const unsigned char *start = bytes;
    return (ProtoReader){.next = start, .end = start ? start + length : start};
}

bool proto_varint(ProtoReader *reader, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 70 && reader->next < reader->end; shift += 7) {
        unsigned char byte = *reader->next++;
        if (shift < 64) *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    reader->failed = true;
    return false;
}

bool proto_fixed(ProtoReader *reader, size_t size, uint64_t *value) {
    *value = 0;
    if ((size_t)(reader->end - reader->next) < size) {
        reader->failed = true;
        return false;
    }
    for (size_t i = 0; i < size; i++) *value |= (uint64_t)reader->next[i] << 8 * i;
    reader->next += size;
    return true;
}

bool proto_next(ProtoReader *reader, ProtoField *field) {
    uint64_t key, length;
    if (reader->failed || reader->next >= reader->end || !proto_varint(reader, &key)) return false;
    *field = (ProtoField){.number = (uint32_t)(key >> 3), .wire = (uint32_t)(key & 7)};
    switch (field->wire) {
    case 0: return proto_varint(reader, &field->value);
    case 1: return proto_fixed(reader, 8, &field->value);
    case 5: return proto_fixed(reader, 4, &field->value);
    case 2:
        if (!proto_varint(reader, &length)) return false;
        if (length <= (size_t)(reader->end - reader->next)) {
            field->bytes = reader->next;
            field->length = (size_t)length;
            reader->next += length;
            return true;
        }
        break;
    default: break;
    }
    reader->failed = true;
    return false;
}
