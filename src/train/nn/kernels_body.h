// The kernels themselves, included once per instruction set by kernels_avx512.cpp, kernels_avx2.cpp and
// kernels_plain.cpp after they set the target, SLIPWAY_LANES (floats per register) and SLIPWAY_SET (the
// namespace). Written with the compiler's vector types, so that one source serves all three. The standard
// headers are included by those files before the target changes: an inline library function compiled for
// AVX-512 here could otherwise be the copy the linker keeps for everyone.

namespace slipway::train::SLIPWAY_SET {
namespace {

constexpr std::size_t lanes = SLIPWAY_LANES;
typedef float V __attribute__((vector_size(SLIPWAY_LANES * 4), aligned(4), may_alias));
typedef std::int32_t I __attribute__((vector_size(SLIPWAY_LANES * 4), aligned(4), may_alias));
typedef std::uint32_t U __attribute__((vector_size(SLIPWAY_LANES * 4), aligned(4), may_alias));

#define SLIPWAY_INLINE inline __attribute__((always_inline))

SLIPWAY_INLINE V load(const float* p) { return *reinterpret_cast<const V*>(p); }
SLIPWAY_INLINE void store(float* p, V v) { *reinterpret_cast<V*>(p) = v; }
SLIPWAY_INLINE V all(float x) { return V{} + x; }
SLIPWAY_INLINE V choose(I mask, V yes, V no) {
  return reinterpret_cast<V>((mask & reinterpret_cast<I>(yes)) | (~mask & reinterpret_cast<I>(no)));
}
SLIPWAY_INLINE V larger(V a, V b) { return choose(a > b, a, b); }
SLIPWAY_INLINE V smaller(V a, V b) { return choose(a < b, a, b); }

SLIPWAY_INLINE V square_root(V x) {
#if SLIPWAY_LANES == 16
  return reinterpret_cast<V>(_mm512_maskz_sqrt_ps(0xffff, reinterpret_cast<__m512>(x)));
#elif SLIPWAY_LANES == 8
  return reinterpret_cast<V>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#else
  return reinterpret_cast<V>(_mm_sqrt_ps(reinterpret_cast<__m128>(x)));
#endif
}

// e^x to about 1e-7 relative: x = n ln2 + r with |r| <= ln2/2, a polynomial in r, then n added to the
// exponent.
SLIPWAY_INLINE V exponential(V x) {
  x = smaller(larger(x, all(-87.0F)), all(88.0F));
  const V magic = all(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer kept in the low bits
  const V shifted = x * 1.44269504F + magic;
  const V n = shifted - magic;
  const V r = (x - n * 0.693145752F) - n * 1.42860677e-6F;
  V p = all(1.0F / 5040);
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return reinterpret_cast<V>(reinterpret_cast<I>(p) + (reinterpret_cast<I>(shifted) << 23));
}

// Runs `f` on whole registers and on a padded copy of the rest.
template <class F>
SLIPWAY_INLINE void each(float* y, std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, f(load(y + i)));
  if (i < n) {
    float rest[lanes] = {};
    for (std::size_t j = i; j < n; ++j) rest[j - i] = y[j];
    store(rest, f(load(rest)));
    for (std::size_t j = i; j < n; ++j) y[j] = rest[j - i];
  }
}

// The same over an output and what it is computed from.
template <class F>
SLIPWAY_INLINE void each(const float* x, float* y, std::size_t n, F f) {
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, f(load(x + i), load(y + i)));
  if (i < n) {
    float from[lanes] = {}, to[lanes] = {};
    for (std::size_t j = i; j < n; ++j) from[j - i] = x[j], to[j - i] = y[j];
    store(to, f(load(from), load(to)));
    for (std::size_t j = i; j < n; ++j) y[j] = to[j - i];
  }
}

struct ByteScale {
  float value[256];
  constexpr ByteScale() : value() {
    for (int i = 0; i < 256; ++i) value[i] = static_cast<float>(i) / 255.0F;
  }
};
constexpr ByteScale byte_scale;

// R registers of columns stay in registers while a whole row's (or column's) nonzeros stream by.
template <std::size_t R>
SLIPWAY_INLINE void sparse_forward_block(const SparseRows& x, const float* w, const float* bias,
                                         std::size_t width, std::size_t at, float* y) {
  for (std::size_t r = 0; r < x.rows; ++r) {
    V sum[R];
    for (std::size_t j = 0; j < R; ++j) sum[j] = load(bias + at + j * lanes);
    const std::uint32_t end = x.row_start[r + 1];
    for (std::uint32_t q = x.row_start[r]; q < end; ++q) {
      const float* row = w + x.column[q] * width + at;
      const float v = byte_scale.value[x.value[q]];
      for (std::size_t j = 0; j < R; ++j) sum[j] += v * load(row + j * lanes);
    }
    for (std::size_t j = 0; j < R; ++j) store(y + r * width + at + j * lanes, sum[j]);
  }
}
template <std::size_t R>
SLIPWAY_INLINE void sparse_gradient_block(const SparseColumns& x, const float* d, std::size_t width,
                                          std::size_t at, float* dw) {
  for (std::size_t k = 0; k < x.columns; ++k) {
    V sum[R] = {};
    const std::uint32_t end = x.column_start[k + 1];
    for (std::uint32_t q = x.column_start[k]; q < end; ++q) {
      const float* row = d + x.row[q] * width + at;
      const float v = x.value[q];
      for (std::size_t j = 0; j < R; ++j) sum[j] += v * load(row + j * lanes);
    }
    for (std::size_t j = 0; j < R; ++j) store(dw + k * width + at + j * lanes, sum[j]);
  }
}

template <class Eight, class Seven, class Four, class One>
SLIPWAY_INLINE void in_blocks(std::size_t width, Eight eight, Seven seven, Four four, One one) {
  std::size_t at = 0;
  while (at < width) {
    const std::size_t left = (width - at) / lanes;
    if (left == 7 || left == 14) {  // 100 units padded to 112: the classic network in one pass
      seven(at);
      at += 7 * lanes;
    } else if (left >= 8) {
      eight(at);
      at += 8 * lanes;
    } else if (left >= 4) {
      four(at);
      at += 4 * lanes;
    } else {
      one(at);
      at += lanes;
    }
  }
}

void sparse_forward(const SparseRows& x, const float* w, const float* bias, std::size_t width, float* y) {
  in_blocks(
      width, [&](std::size_t at) { sparse_forward_block<8>(x, w, bias, width, at, y); },
      [&](std::size_t at) { sparse_forward_block<7>(x, w, bias, width, at, y); },
      [&](std::size_t at) { sparse_forward_block<4>(x, w, bias, width, at, y); },
      [&](std::size_t at) { sparse_forward_block<1>(x, w, bias, width, at, y); });
}
void sparse_gradient(const SparseColumns& x, const float* d, std::size_t width, float* dw) {
  in_blocks(
      width, [&](std::size_t at) { sparse_gradient_block<8>(x, d, width, at, dw); },
      [&](std::size_t at) { sparse_gradient_block<7>(x, d, width, at, dw); },
      [&](std::size_t at) { sparse_gradient_block<4>(x, d, width, at, dw); },
      [&](std::size_t at) { sparse_gradient_block<1>(x, d, width, at, dw); });
}

// M rows by R registers of the product stay in registers while the inner dimension streams by.
template <std::size_t R, std::size_t M>
SLIPWAY_INLINE void multiply_block(const Product& p, std::size_t row, std::size_t at) {
  V sum[M][R] = {};
  for (std::size_t k = 0; k < p.inner; ++k) {
    V b[R];
    for (std::size_t j = 0; j < R; ++j) b[j] = load(p.b + k * p.b_row + at + j * lanes);
    for (std::size_t i = 0; i < M; ++i) {
      const float a = p.a[(row + i) * p.a_row + k * p.a_step];
      for (std::size_t j = 0; j < R; ++j) sum[i][j] += a * b[j];
    }
  }
  for (std::size_t i = 0; i < M; ++i)
    for (std::size_t j = 0; j < R; ++j) store(p.c + (row + i) * p.c_row + at + j * lanes, sum[i][j]);
}
template <std::size_t R>
SLIPWAY_INLINE void multiply_columns(const Product& p, std::size_t at) {
  constexpr std::size_t rows = (SLIPWAY_LANES == 16 ? 24 : 12) / R;  // as many sums as there are registers
  std::size_t row = 0;
  if constexpr (rows > 1)
    for (; row + rows <= p.rows; row += rows) multiply_block<R, rows>(p, row, at);
  for (; row < p.rows; ++row) multiply_block<R, 1>(p, row, at);
}
void multiply(const Product& p) {
  in_blocks(
      p.width, [&](std::size_t at) { multiply_columns<8>(p, at); },
      [&](std::size_t at) { multiply_columns<7>(p, at); },
      [&](std::size_t at) { multiply_columns<4>(p, at); },
      [&](std::size_t at) { multiply_columns<1>(p, at); });
}

void add_bias(float* y, std::size_t rows, std::size_t width, const float* bias) {
  for (std::size_t r = 0; r < rows; ++r) each(bias, y + r * width, width, [](V b, V v) { return v + b; });
}
void column_sums(const float* d, std::size_t rows, std::size_t width, float* sums) {
  for (std::size_t i = 0; i < width; ++i) sums[i] = 0;
  for (std::size_t r = 0; r < rows; ++r) each(d + r * width, sums, width, [](V v, V s) { return s + v; });
}

void relu(float* y, std::size_t n) {
  each(y, n, [](V v) { return larger(v, V{}); });
}
void sigmoid(float* y, std::size_t n) {
  each(y, n, [](V v) { return 1.0F / (1.0F + exponential(-v)); });
}
void hyperbolic_tangent(float* y, std::size_t n) {
  each(y, n, [](V v) { return 2.0F / (1.0F + exponential(v * -2.0F)) - 1.0F; });
}
void relu_backward(const float* y, float* d, std::size_t n) {
  each(y, d, n, [](V v, V g) { return choose(v > V{}, g, V{}); });
}
void sigmoid_backward(const float* y, float* d, std::size_t n) {
  each(y, d, n, [](V v, V g) { return g * v * (1.0F - v); });
}
void tanh_backward(const float* y, float* d, std::size_t n) {
  each(y, d, n, [](V v, V g) { return g * (1.0F - v * v); });
}

// Two rounds of multiply and shift over (key, index): far from cryptographic, enough that neither rows nor
// columns of a layer see a pattern.
SLIPWAY_INLINE U scramble(U index, std::uint32_t low, std::uint32_t high) {
  U z = (index + low) * 0x9E3779B1U;
  z = (z ^ (z >> 15) ^ high) * 0x85EBCA77U;
  return z ^ (z >> 13);
}
void dropout(float* y, std::size_t n, float drop, std::uint64_t key) {
  const auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  const auto limit = static_cast<std::int32_t>(drop * 16777216.0F);
  const float keep = 1.0F / (1.0F - drop);
  U index;
  for (std::size_t j = 0; j < lanes; ++j) index[j] = static_cast<std::uint32_t>(j);
  each(y, n, [&](V v) {
    const I draw = reinterpret_cast<I>(scramble(index, low, high) >> 8);
    index += static_cast<std::uint32_t>(lanes);
    return choose(draw >= limit, v * keep, V{});
  });
}

float softmax_row(float* row, std::size_t n) {
  float top = row[0];
  for (std::size_t i = 1; i < n; ++i) top = row[i] > top ? row[i] : top;
  each(row, n, [&](V v) { return exponential(v - top); });
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += row[i];
  const float part = 1.0F / sum;
  for (std::size_t i = 0; i < n; ++i) row[i] *= part;
  return top + __builtin_logf(sum);
}

void sum(float* to, const float* const* from, std::size_t k, std::size_t begin, std::size_t n) {
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    V a = load(from[0] + begin + i), b = load(from[0] + begin + i + lanes);
    for (std::size_t s = 1; s < k; ++s) {
      a += load(from[s] + begin + i);
      b += load(from[s] + begin + i + lanes);
    }
    store(to + i, a);
    store(to + i + lanes, b);
  }
  for (; i < n; ++i) {
    float total = from[0][begin + i];
    for (std::size_t s = 1; s < k; ++s) total += from[s][begin + i];
    to[i] = total;
  }
}
void scale(float* values, float factor, std::size_t n) {
  each(values, n, [&](V v) { return v * factor; });
}
void bytes_to_floats(const std::uint8_t* from, float* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) / 255.0F;
}

void sgd(float* w, const float* g, std::size_t n, float factor, float rate) {
  const float step = factor * rate;
  each(g, w, n, [&](V gradient, V weight) { return weight - gradient * step; });
}
void momentum(float* w, const float* g, float* velocity, std::size_t n, float factor, float rate,
              float decay) {
  each(g, velocity, n, [&](V gradient, V v) { return v * decay + gradient * factor; });
  each(velocity, w, n, [&](V v, V weight) { return weight - v * rate; });
}
void adagrad(float* w, const float* g, float* squares, std::size_t n, float factor, float rate,
             float epsilon) {
  constexpr std::size_t block = 1024;  // stays in the first-level cache between the passes
  for (std::size_t at = 0; at < n; at += block) {
    const std::size_t m = n - at < block ? n - at : block;
    float step[block];
    for (std::size_t i = 0; i < m; ++i) step[i] = g[at + i] * factor;
    each(step, squares + at, m, [](V gradient, V s) { return s + gradient * gradient; });
    each(squares + at, step, m,
         [&](V s, V gradient) { return gradient * rate / (square_root(s) + epsilon); });
    each(step, w + at, m, [](V s, V weight) { return weight - s; });
  }
}
void adam(float* w, const float* g, float* mean, float* square, std::size_t n, float factor,
          AdamRates rates) {
  constexpr std::size_t block = 1024;
  for (std::size_t at = 0; at < n; at += block) {
    const std::size_t m = n - at < block ? n - at : block;
    float step[block];
    for (std::size_t i = 0; i < m; ++i) step[i] = g[at + i] * factor;
    each(step, mean + at, m, [&](V gradient, V v) { return v * rates.beta1 + gradient * (1 - rates.beta1); });
    each(step, square + at, m,
         [&](V gradient, V v) { return v * rates.beta2 + gradient * gradient * (1 - rates.beta2); });
    for (std::size_t i = 0; i < m; ++i) step[i] = mean[at + i];
    each(square + at, step, m, [&](V s, V v) { return v * rates.rate / (square_root(s) + rates.epsilon); });
    each(step, w + at, m, [](V s, V weight) { return weight - s; });
  }
}

void to_half(const float* from, std::uint16_t* to, std::size_t n) {
  std::size_t i = 0;
#if SLIPWAY_LANES >= 8
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) to[i] = float_to_half(from[i]);
}
void from_half(const std::uint16_t* from, float* to, std::size_t n) {
  std::size_t i = 0;
#if SLIPWAY_LANES >= 8
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (; i < n; ++i) to[i] = half_to_float(from[i]);
}

}  // namespace

extern const Kernels set;
const Kernels set = {SLIPWAY_SET_NAME,
                     sparse_forward,
                     sparse_gradient,
                     multiply,
                     add_bias,
                     column_sums,
                     relu,
                     sigmoid,
                     hyperbolic_tangent,
                     relu_backward,
                     sigmoid_backward,
                     tanh_backward,
                     dropout,
                     softmax_row,
                     sum,
                     scale,
                     bytes_to_floats,
                     sgd,
                     momentum,
                     adagrad,
                     adam,
                     to_half,
                     from_half};

}  // namespace slipway::train::SLIPWAY_SET
