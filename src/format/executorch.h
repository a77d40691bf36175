/* Numbers in the files of ExecuTorch (.pte) that writing, reading and running share. */
#ifndef FORMAT_EXECUTORCH_H
#define FORMAT_EXECUTORCH_H

#include <ferry/dtype.h>

/* A value of the program, as the schema numbers the members of its union. */
typedef enum SlotKind {
    SLOT_NULL = 1,
    SLOT_INT,
    SLOT_BOOL,
    SLOT_DOUBLE,
    SLOT_TENSOR,
    SLOT_STRING,
    SLOT_INTS,
    SLOT_DOUBLES,
    SLOT_BOOLS,
    SLOT_TENSORS,
    SLOT_OPTIONAL_TENSORS,
} SlotKind;

enum { PTE_CALL_KERNEL = 1, PTE_CALL_DELEGATE = 2 };
enum { PTE_STATIC = 0, PTE_DYNAMIC_BOUND = 1 };
enum { PTE_LOCATION_INLINE = 0, PTE_LOCATION_SEGMENT = 1 };

/* The number of an element type (c10::ScalarType), and back; -1 and FERRY_DTYPE_NONE where the other side
 * has no such type. */
int pte_dtype(ferry_dtype dtype);
ferry_dtype pte_dtype_of(int number);

#endif
