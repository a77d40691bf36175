#include "run/reference/layers.h"

#include <math.h>
#include <string.h>

#define REAL       float
#define NAME(stem) layers_##stem##_f32
#define EXP(x)     expf(x)
#include "run/reference/layers.inc"
#undef REAL
#undef NAME
#undef EXP

#define REAL       double
#define NAME(stem) layers_##stem##_f64
#define EXP(x)     exp(x)
#include "run/reference/layers.inc"
