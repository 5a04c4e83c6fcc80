// Every kernel of every instruction set against the plain loop, over sizes that do not fit its registers.
#include "train/nn/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "train/nn/half.h"
#include "train/nn/optimizer.h"
#include "train/nn/reference.h"

namespace slipway::train {
namespace {

std::vector<const Kernels*> all_sets() {
  std::vector<const Kernels*> sets;
  for (const char* name : {"plain", "avx2", "avx512"})
    if (const Kernels* set = kernels_named(name)) sets.push_back(set);
  return sets;
}

std::vector<float> noise(std::size_t n, std::uint64_t seed, double reach = 3) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>((random.unit() * 2 - 1) * reach);
  return values;
}

const std::size_t sizes[] = {1, 3, 7, 8, 15, 16, 17, 31, 33, 100, 1025};

TEST(Kernels, ActivationsMatchTheLibrary) {
  for (const Kernels* k : all_sets())
    for (const std::size_t n : sizes) {
      SCOPED_TRACE(std::string(k->name) + " " + std::to_string(n));
      const std::vector<float> x = noise(n, n, 20), d = noise(n, n + 1);
      std::vector<float> r = x, s = x, t = x;
      k->relu(r.data(), n);
      k->sigmoid(s.data(), n);
      k->tanh(t.data(), n);
      std::vector<float> dr = d, ds = d, dt = d;
      k->relu_backward(r.data(), dr.data(), n);
      k->sigmoid_backward(s.data(), ds.data(), n);
      k->tanh_backward(t.data(), dt.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const double sigmoid = 1 / (1 + std::exp(-static_cast<double>(x[i]))), tanh = std::tanh(x[i]);
        EXPECT_EQ(r[i], std::max(x[i], 0.0F));
        EXPECT_NEAR(s[i], sigmoid, 2e-7);
        EXPECT_NEAR(t[i], tanh, 4e-7);
        EXPECT_EQ(dr[i], x[i] > 0 ? d[i] : 0.0F);
        EXPECT_NEAR(ds[i], d[i] * sigmoid * (1 - sigmoid), 1e-6);
        EXPECT_NEAR(dt[i], d[i] * (1 - tanh * tanh), 3e-6);
      }
    }
}

TEST(Kernels, SoftmaxMatchesTheReference) {
  for (const Kernels* k : all_sets())
    for (const std::size_t n : {1UL, 2UL, 10UL, 16UL, 37UL}) {
      SCOPED_TRACE(k->name);
      std::vector<float> row = noise(n, n, 30);
      const Doubles wide(row.begin(), row.end());
      const float log_sum = k->softmax_row(row.data(), n);
      double sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const double loss = loss_reference(Loss::cross_entropy, wide, {static_cast<int>(i)});
        EXPECT_NEAR(row[i], std::exp(-loss), 1e-6);
        EXPECT_NEAR(log_sum - static_cast<float>(wide[i]), loss, 1e-4);
        sum += row[i];
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
}

TEST(Kernels, SparseProductsMatchDenseOnes) {
  for (const Kernels* k : all_sets())
    for (const std::size_t width : {16UL, 48UL, 112UL, 128UL, 224UL, 304UL}) {
      SCOPED_TRACE(std::string(k->name) + " " + std::to_string(width));
      constexpr std::size_t rows = 13, columns = 29;
      Random random(width);
      std::vector<std::uint32_t> start{0};
      std::vector<std::uint16_t> column;
      std::vector<std::uint8_t> value;
      Doubles dense(rows * columns);
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < columns; ++c) {
          if (!random.chance(0.3) || r == 4) continue;  // row 4 is empty
          column.push_back(static_cast<std::uint16_t>(c));
          value.push_back(static_cast<std::uint8_t>(random.between(1, 255)));
          dense[r * columns + c] = value.back() / 255.0;
        }
        start.push_back(static_cast<std::uint32_t>(column.size()));
      }
      const SparseRows x{start.data(), column.data(), value.data(), rows};
      const std::vector<float> w = noise(columns * width, 1), bias = noise(width, 2),
                               d = noise(rows * width, 3);
      std::vector<float> y(rows * width, 99), dw(columns * width, 99), scaled(column.size());
      k->sparse_forward(x, w.data(), bias.data(), width, y.data());
      const Doubles wide_w(w.begin(), w.end()), wide_bias(bias.begin(), bias.end());
      const Doubles expected =
          dense_reference(dense, wide_w.data(), wide_bias.data(), rows, columns, static_cast<int>(width));
      for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 2e-5) << i;

      std::vector<std::uint32_t> column_start(columns + 1);
      std::vector<std::uint16_t> row(column.size());
      transpose(x, columns, column_start.data(), row.data(), scaled.data());
      k->sparse_gradient({column_start.data(), row.data(), scaled.data(), columns}, d.data(), width,
                         dw.data());
      for (std::size_t c = 0; c < columns; ++c)
        for (std::size_t j = 0; j < width; ++j) {
          double sum = 0;
          for (std::size_t r = 0; r < rows; ++r) sum += dense[r * columns + c] * d[r * width + j];
          ASSERT_NEAR(dw[c * width + j], sum, 2e-5);
        }
    }
}

TEST(Kernels, ProductsMatchPlainLoops) {
  struct Sizes {
    std::size_t rows, width, inner;
    bool turned;
  };
  const Sizes cases[] = {{1, 16, 1, false},   {5, 16, 7, true},   {25, 16, 100, false}, {100, 16, 100, true},
                         {3, 112, 10, false}, {7, 64, 33, true},  {13, 208, 5, false},  {24, 128, 17, true},
                         {49, 240, 3, false}, {100, 48, 61, true}};
  for (const Kernels* k : all_sets())
    for (const auto& [rows, width, inner, turned] : cases) {
      SCOPED_TRACE(std::string(k->name) + " " + std::to_string(rows) + " x " + std::to_string(width));
      const std::size_t a_row = turned ? 1 : inner + 3, a_step = turned ? rows + 2 : 1;
      const std::vector<float> a = noise((rows + 2) * (inner + 3), 1), b = noise(inner * (width + 16), 2);
      std::vector<float> c(rows * (width + 5), 77);
      k->multiply({a.data(), a_row, a_step, b.data(), width + 16, c.data(), width + 5, rows, width, inner});
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < width; ++j) {
          double sum = 0;
          for (std::size_t q = 0; q < inner; ++q)
            sum += static_cast<double>(a[i * a_row + q * a_step]) * b[q * (width + 16) + j];
          ASSERT_NEAR(c[i * (width + 5) + j], sum, 1e-4 * std::sqrt(static_cast<double>(inner)));
        }
        ASSERT_EQ(c[i * (width + 5) + width], 77) << "nothing is written beside it";
      }
    }
}

TEST(Kernels, SumsAndBiases) {
  for (const Kernels* k : all_sets())
    for (const std::size_t n : sizes) {
      SCOPED_TRACE(k->name);
      const std::vector<float> a = noise(n, 1), b = noise(n, 2), c = noise(n, 3);
      const float* from[] = {a.data(), b.data(), c.data()};
      std::vector<float> to(n, 99), sums(n, 99);
      for (const std::size_t begin : {std::size_t{0}, n / 3}) {
        k->sum(to.data(), from, 3, begin, n - begin);
        for (std::size_t i = begin; i < n; ++i)
          EXPECT_EQ(to[i - begin], a[i] + b[i] + c[i]) << "the order of addition is fixed";
      }
      std::vector<float> rows = a;
      rows.insert(rows.end(), b.begin(), b.end());
      k->column_sums(rows.data(), 2, n, sums.data());
      k->add_bias(rows.data(), 2, n, c.data());
      for (std::size_t i = 0; i < n; ++i) {
        EXPECT_EQ(sums[i], a[i] + b[i]);
        EXPECT_EQ(rows[i], a[i] + c[i]);
        EXPECT_EQ(rows[n + i], b[i] + c[i]);
      }
    }
}

TEST(Kernels, OptimizersMatchTheReference) {
  using enum OptimizerKind;
  for (const OptimizerKind kind : {sgd, momentum, adam, adagrad})
    for (const std::size_t n : {1UL, 17UL, 2051UL}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(kind)) + " " + std::to_string(n));
      const OptimizerSpec spec{.kind = kind, .schedule = Schedule::cosine, .rate = 0.1F, .steps_total = 40};
      Optimizer optimizer(spec, {0, n}, {});
      std::vector<float> values = noise(n, 5);
      Doubles wide(values.begin(), values.end()), state(Optimizer::state_floats(kind, n));
      for (std::uint64_t step = 0; step < 6; ++step) {
        const std::vector<float> g = noise(n, 50 + step);
        optimizer.apply(step, 0.25F, values, g);
        optimizer_reference(spec, step, 0.25, wide, Doubles(g.begin(), g.end()), state);
      }
      for (std::size_t i = 0; i < n; ++i) ASSERT_NEAR(values[i], wide[i], 1e-4) << i;
    }
}

TEST(Kernels, OptimizerStepCanBeSplit) {
  using enum OptimizerKind;
  constexpr std::size_t n = 5003;
  for (const OptimizerKind kind : {sgd, momentum, adam, adagrad}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const OptimizerSpec spec{.kind = kind, .rate = 0.1F};
    const std::vector<Range> statistics = {{1000, 1100}, {2040, 2060}, {n - 3, n}};
    Optimizer whole(spec, {0, n}, statistics), parted(spec, {0, n}, statistics);
    std::vector<float> expected = noise(n, 5), values = expected;
    for (std::uint64_t step = 0; step < 6; ++step) {
      const std::vector<float> g = noise(n, 50 + step);
      whole.apply(step, 0.25F, expected, g);
      const std::size_t part = 1 + 613 * step;
      for (std::size_t at = 0; at < n; at += part) {
        const std::size_t count = std::min(part, n - at);
        parted.apply_part(step, 0.25F, at, std::span(values).subspan(at, count),
                          std::span(g).subspan(at, count));
      }
    }
    EXPECT_EQ(values, expected) << "bit for bit";
    EXPECT_TRUE(std::ranges::equal(parted.state(), whole.state()));
  }
}

TEST(Kernels, DropoutKeepsTheMeanAndRepeats) {
  for (const Kernels* k : all_sets()) {
    SCOPED_TRACE(k->name);
    constexpr std::size_t n = 100'003;
    std::vector<float> a(n, 1.0F), b(n, 1.0F), c(n, 1.0F);
    k->dropout(a.data(), n, 0.3F, 77);
    k->dropout(b.data(), n, 0.3F, 77);
    k->dropout(c.data(), n, 0.3F, 78);
    EXPECT_EQ(a, b);
    EXPECT_NE(a, c);
    double sum = 0;
    for (const float v : a) {
      EXPECT_TRUE(v == 0.0F || std::abs(v - 1 / 0.7F) < 1e-6F);
      sum += v;
    }
    EXPECT_NEAR(sum / n, 1, 0.01);
  }
}

TEST(Kernels, HalfPrecisionRoundsToTheNearest) {
  std::vector<float> values = noise(1003, 9, 70000);
  for (const float special :
       {0.0F, -0.0F, 1e-9F, 6e-8F, 5.9e-5F, 65504.0F, 65520.0F, 1e30F, INFINITY, -INFINITY})
    values.push_back(special);
  for (const Kernels* k : all_sets()) {
    SCOPED_TRACE(k->name);
    std::vector<std::uint16_t> half(values.size());
    std::vector<float> back(values.size());
    k->to_half(values.data(), half.data(), values.size());
    k->from_half(half.data(), back.data(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(half[i], float_to_half(values[i])) << values[i];
      EXPECT_EQ(back[i], half_to_float(half[i]));
      if (std::abs(values[i]) < 65504.0F && std::abs(values[i]) > 1e-4F) {
        EXPECT_NEAR(back[i] / values[i], 1, 1.0 / 2048);
      }
    }
    EXPECT_TRUE(std::isnan(half_to_float(float_to_half(NAN))));
  }
}

}  // namespace
}  // namespace slipway::train
