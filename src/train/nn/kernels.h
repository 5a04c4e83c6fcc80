#pragma once
// The inner loops, chosen once at start for the processor at hand (AVX-512, AVX2, or plain).
//
// Every function here has a plain loop of the same meaning in reference.h; tests compare the two over odd
// sizes. Pointers need no alignment. Results depend on the chosen set in the last bits, never on timing.
#include <cstddef>
#include <cstdint>
#include <string>

namespace slipway::train {

// Bytes of a batch without their zeros, by row (sample) and by column (input).
struct SparseRows {
  const std::uint32_t* row_start;  // rows + 1
  const std::uint16_t* column;
  const std::uint8_t* value;
  std::size_t rows;
};
struct SparseColumns {
  const std::uint32_t* column_start;  // columns + 1
  const std::uint16_t* row;
  const float* value;  // scaled to 0..1
  std::size_t columns;
};

// c[rows x width] = a[rows x inner] times b[inner x width]; width is a multiple of 16. The element (i, k) of
// a is a[i * a_row + k * a_step], so that a may be turned.
struct Product {
  const float* a;
  std::size_t a_row, a_step;
  const float* b;
  std::size_t b_row;
  float* c;
  std::size_t c_row;
  std::size_t rows, width, inner;
};

struct AdamRates {
  float rate;  // with bias correction folded in
  float beta1, beta2, epsilon;
};

struct Kernels {
  const char* name;

  // y[rows x width] = bias + x/255 times w[columns x width]; width is a multiple of 16.
  void (*sparse_forward)(const SparseRows& x, const float* w, const float* bias, std::size_t width, float* y);
  // dw[columns x width] = x^T d, all of dw written.
  void (*sparse_gradient)(const SparseColumns& x, const float* d, std::size_t width, float* dw);

  // For small products: a large one is oneDNN's, which first takes tens of milliseconds to write its code.
  void (*multiply)(const Product& product);

  void (*add_bias)(float* y, std::size_t rows, std::size_t width, const float* bias);
  void (*column_sums)(const float* d, std::size_t rows, std::size_t width, float* sums);

  void (*relu)(float* y, std::size_t n);
  void (*sigmoid)(float* y, std::size_t n);
  void (*tanh)(float* y, std::size_t n);
  // d *= f'(x), from the outputs y = f(x).
  void (*relu_backward)(const float* y, float* d, std::size_t n);
  void (*sigmoid_backward)(const float* y, float* d, std::size_t n);
  void (*tanh_backward)(const float* y, float* d, std::size_t n);

  // y[i] is set to 0 with probability drop, else divided by 1 - drop; which ones depends on key and i alone,
  // so that the backward pass repeats the choice instead of storing it.
  void (*dropout)(float* y, std::size_t n, float drop, std::uint64_t key);

  // row[0..n) becomes exp(row - max) / sum; returns log(sum) + max, so that loss = that - logit.
  float (*softmax_row)(float* row, std::size_t n);

  // to[i] = sum of from[s][begin + i] over k sources s, added in order.
  void (*sum)(float* to, const float* const* from, std::size_t k, std::size_t begin, std::size_t n);
  void (*scale)(float* values, float factor, std::size_t n);
  void (*bytes_to_floats)(const std::uint8_t* from, float* to, std::size_t n);  // divided by 255

  // Optimizers over n parameters; the gradient is multiplied by `scale` first.
  void (*sgd)(float* w, const float* g, std::size_t n, float scale, float rate);
  void (*momentum)(float* w, const float* g, float* velocity, std::size_t n, float scale, float rate,
                   float decay);
  void (*adagrad)(float* w, const float* g, float* squares, std::size_t n, float scale, float rate,
                  float epsilon);
  void (*adam)(float* w, const float* g, float* mean, float* square, std::size_t n, float scale,
               AdamRates rates);

  void (*to_half)(const float* from, std::uint16_t* to, std::size_t n);
  void (*from_half)(const std::uint16_t* from, float* to, std::size_t n);
};

// The best set this processor can run. SLIPWAY_TRAIN_ISA=avx512|avx2|plain asks for a lesser one.
const Kernels& kernels();
// One set by name, or null when this processor cannot run it: for tests and comparisons.
const Kernels* kernels_named(const std::string& name);

// Sorts by column what is given by row. `start` has columns + 1 entries, `row` and `value` one per nonzero.
void transpose(const SparseRows& rows, std::size_t columns, std::uint32_t* start, std::uint16_t* row,
               float* value);

}  // namespace slipway::train
