/* The alphabet of byte-level tokenizers: printable bytes stand for themselves, the others, in order, are
 * the characters from U+0100 on. */
#include "text/normalizer.h"
#include "text/unicode.h"

// clang-format off
const uint16_t byte_level_chars[256] = {
    256, 257, 258, 259, 260, 261, 262, 263, 264, 265, 266, 267,
    268, 269, 270, 271, 272, 273, 274, 275, 276, 277, 278, 279,
    280, 281, 282, 283, 284, 285, 286, 287, 288, 33, 34, 35,
    36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59,
    60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71,
    72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83,
    84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95,
    96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107,
    108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119,
    120, 121, 122, 123, 124, 125, 126, 289, 290, 291, 292, 293,
    294, 295, 296, 297, 298, 299, 300, 301, 302, 303, 304, 305,
    306, 307, 308, 309, 310, 311, 312, 313, 314, 315, 316, 317,
    318, 319, 320, 321, 322, 161, 162, 163, 164, 165, 166, 167,
    168, 169, 170, 171, 172, 323, 174, 175, 176, 177, 178, 179,
    180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191,
    192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202, 203,
    204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215,
    216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227,
    228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239,
    240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251,
    252, 253, 254, 255,
};
// clang-format on

int byte_level_byte(uint32_t c) {
    if (c < 256) return byte_level_chars[c] == c ? (int)c : -1;
    for (int byte = 0; c < 512 && byte < 256; byte++) {
        if (byte_level_chars[byte] == c) return byte;
    }
    return -1;
}

void byte_level_encode(const Line *from, size_t begin, size_t end, Line *out) {
    if (!line_reserve(out, 2 * (end - begin))) return;
    char *to = out->bytes + out->length;
    Span *spans = out->spans + out->length;
    for (size_t i = begin; i < end; i++) {
        uint32_t c = byte_level_chars[(unsigned char)from->bytes[i]];
        if (c >= 0x80) {
            *to++ = (char)(0xc0 | c >> 6);
            *spans++ = from->spans[i];
        }
        *to++ = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
        *spans++ = from->spans[i];
    }
    out->length = (size_t)(to - out->bytes);
}
