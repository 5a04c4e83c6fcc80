#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "train/nn/half.h"
#include "train/nn/kernels.h"

#pragma GCC target("avx2,fma,f16c")
#define SLIPWAY_LANES 8
#define SLIPWAY_SET avx2
#define SLIPWAY_SET_NAME "avx2"
#include "train/nn/kernels_body.h"
