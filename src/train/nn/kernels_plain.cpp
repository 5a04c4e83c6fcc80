#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "train/nn/half.h"
#include "train/nn/kernels.h"

#define SLIPWAY_LANES 4
#define SLIPWAY_SET plain
#define SLIPWAY_SET_NAME "plain"
#include "train/nn/kernels_body.h"
