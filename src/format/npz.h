/* NumPy .npz archives: a zip file with one .npy member for each array. */
#ifndef FORMAT_NPZ_H
#define FORMAT_NPZ_H

#include <ferry/tensor.h>

/* Add every array of an archive in memory to `tensors`, under its member's name without ".npy".
 * Members may be stored or deflated. Sizes are checked before anything is allocated: an archive of n
 * bytes never asks for more than the 1032 n that deflate can expand to. Bools keep the bytes they
 * have. `path` is for messages. */
ferry_status npz_read(const char *path, const unsigned char *bytes, size_t size,
                      ferry_tensors *tensors, ferry_error *error);

/* Write an archive of stored members, which appears complete or not at all. */
ferry_status npz_write(const char *path, const ferry_tensors *tensors, ferry_error *error);

#endif
