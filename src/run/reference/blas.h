/* The BLAS. Its header is not clean under our warnings, so it is read as a system header. */
#ifndef RUN_REFERENCE_BLAS_H
#define RUN_REFERENCE_BLAS_H

#pragma GCC system_header
#include <blis.h>

#endif
