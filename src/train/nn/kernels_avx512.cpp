#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "train/nn/half.h"
#include "train/nn/kernels.h"

#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#define SLIPWAY_LANES 16
#define SLIPWAY_SET avx512
#define SLIPWAY_SET_NAME "avx512"
#include "train/nn/kernels_body.h"
