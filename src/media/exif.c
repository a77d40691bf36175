/* The one thing that is asked of EXIF: which way is up. */
#include "media/image.h"

#include <string.h>

static unsigned number(const unsigned char *at, size_t count, bool big) {
    unsigned value = 0;
    for (size_t i = 0; i < count; i++) value = value << 8 | at[big ? i : count - 1 - i];
    return value;
}

int exif_orientation(const unsigned char *bytes, size_t size) {
    enum { ENTRY = 12, TAG_ORIENTATION = 0x112, TYPE_SHORT = 3 };
    if (size < 8) return 1;
    bool big = memcmp(bytes, "MM\0*", 4) == 0;
    if (!big && memcmp(bytes, "II*\0", 4) != 0) return 1;
    size_t at = number(bytes + 4, 4, big);
    if (at > size - 2) return 1;
    size_t count = number(bytes + at, 2, big);
    for (at += 2; count-- > 0 && at <= size && size - at >= ENTRY; at += ENTRY) {
        if (number(bytes + at, 2, big) != TAG_ORIENTATION) continue;
        unsigned value = number(bytes + at + 8, 2, big);
        bool known = number(bytes + at + 2, 2, big) == TYPE_SHORT && value >= 1 && value <= 8;
        return known ? (int)value : 1;
    }
    return 1;
}
