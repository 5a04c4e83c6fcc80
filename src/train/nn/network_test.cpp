// Whole networks against plain loops: outputs, losses, and every gradient by finite differences.
#include "train/nn/network.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "train/data/digits.h"
#include "train/data/order.h"
#include "train/nn/optimizer.h"
#include "train/nn/reference.h"

namespace slipway::train {
namespace {

Dataset noise_images(Shape shape, int classes, std::size_t count, double filled) {
  struct Bytes {
    std::vector<std::uint8_t> images, labels;
  };
  const auto bytes = std::make_shared<Bytes>();
  Random random(17);
  for (std::size_t i = 0; i < count * static_cast<std::size_t>(shape.size()); ++i)
    bytes->images.push_back(random.chance(filled) ? static_cast<std::uint8_t>(random.between(1, 255)) : 0);
  for (std::size_t i = 0; i < count; ++i)
    bytes->labels.push_back(static_cast<std::uint8_t>(random.between(0, classes - 1)));
  return Dataset(shape, classes,
                 {{bytes->images.data(), static_cast<std::size_t>(shape.size()), bytes->labels.data(), 1,
                   count, bytes}});
}

struct Case {
  const char* text;
  double filled = 0.9;
};
// Odd channel counts, odd sides, strides, and every layer kind and loss.
const Case cases[] = {
    {"{name: linear, input: [1, 5, 7], layers: [{dense: 4}]}"},
    {"{name: squared, input: [1, 5, 7], loss: squared_error, layers: [{dense: 9}, tanh, {dense: 4}]}"},
    {"{name: sparse, input: [1, 9, 9], layers: [{dense: 19}, sigmoid, {dense: 4}]}", 0.2},
    {"{name: deep, input: [2, 4, 4], layers: [{dense: 21}, sigmoid, {dense: 17}, relu, {dense: 4}]}"},
    {"{name: conv, input: [1, 9, 11], layers: [{conv: {filters: 3, kernel: 3}}, tanh, {dense: 4}]}"},
    {"{name: lenet6, input: [1, 12, 12], layers: [{conv: {filters: 6, kernel: 5, padding: 2}}, sigmoid, "
     "{avg_pool: 2}, "
     "{conv: {filters: 16, kernel: 3}}, tanh, {dense: 4}]}"},
    {"{name: stride, input: [3, 11, 11], layers: [{conv: {filters: 5, kernel: 3, stride: 2, padding: 1}}, "
     "tanh, "
     "{max_pool: {kernel: 3, stride: 2}}, {dense: 4}]}"},
    {"{name: wide, input: [3, 8, 8], layers: [{conv: {filters: 32, kernel: 3, padding: same}}, tanh, "
     "{conv: {filters: 32, kernel: 3, padding: same}}, tanh, {max_pool: 2}, {dense: 4}]}"},
    {"{name: norm, input: [2, 7, 7], layers: [{conv: {filters: 7, kernel: 3}}, batch_norm, tanh, {dense: "
     "10}, "
     "batch_norm, sigmoid, {dense: 4}]}"},
    {"{name: pooled, input: [1, 8, 8], layers: [{avg_pool: 2}, {dense: 12}, tanh, {dense: 4}]}"},
};

class Built {
 public:
  explicit Built(const Case& test, int batch = 6)
      : model(parse_model(test.text, "test").value()),
        data(noise_images(model.input, 4, 40, test.filled)),
        network(Network::build(model, 4, {.batch = batch}).value()),
        values(network.floats()),
        gradients(network.floats(), 99.0F),
        plain(network.plain_floats()) {
    network.initialise(3, values);
    network.to_plain(values, plain);
    Random random(5);  // biases and running values start at 0 and 1: move them, or their errors hide
    for (float& v : plain) v += static_cast<float>((random.unit() - 0.5) * 0.2);
    std::size_t at = 0;
    for (const Parameter& p : network.parameters()) {
      if (p.kind == Parameter::Kind::variance)
        for (std::size_t i = 0; i < p.plain_floats(); ++i) plain[at + i] = std::abs(plain[at + i]) + 0.5F;
      at += p.plain_floats();
    }
    network.from_plain(plain, values);
    for (int b = 0; b < batch; ++b) indices.push_back(static_cast<std::uint32_t>(b * 3 + 1));
    for (const std::uint32_t index : indices) {
      labels.push_back(data.label(index));
      for (int i = 0; i < model.input.size(); ++i) samples.push_back(data.image(index)[i] / 255.0);
    }
  }
  double loss(const Doubles& parameters) const {
    const int batch = static_cast<int>(indices.size());
    return loss_reference(model.loss, forward_reference(model, parameters, samples, batch, true), labels);
  }

  ModelSpec model;
  Dataset data;
  Network network;
  Flat values, gradients;
  std::vector<float> plain;
  std::vector<std::uint32_t> indices;
  std::vector<int> labels;
  Doubles samples;
};

TEST(Network, GradientsMatchFiniteDifferences) {
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text);
    Built built(test);
    const BatchResult result =
        built.network.train(built.data, built.indices, 1, built.values, built.gradients);
    Doubles wide(built.plain.begin(), built.plain.end());
    EXPECT_NEAR(result.loss, built.loss(wide), 2e-3);
    std::vector<float> found(built.plain.size());
    built.network.to_plain(built.gradients, found);
    std::size_t at = 0;
    Random random(1);
    for (const Parameter& parameter : built.network.parameters()) {
      const std::size_t count = parameter.plain_floats();
      for (std::size_t probe = 0; probe < std::min<std::size_t>(count, 25) && !parameter.is_statistic();
           ++probe) {
        const std::size_t i =
            at + static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(count) - 1));
        constexpr double h = 1e-5;
        const double middle = wide[i];
        wide[i] = middle + h;
        const double above = built.loss(wide);
        wide[i] = middle - h;
        const double below = built.loss(wide);
        wide[i] = middle;
        const double slope = (above - below) / (2 * h);
        EXPECT_NEAR(found[i], slope, 2e-3 + 2e-3 * std::abs(slope)) << parameter.name << " " << i - at;
      }
      at += count;
    }
  }
}

TEST(Network, PaddingGetsNoGradient) {
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text);
    Built built(test);
    Optimizer optimizer({.kind = OptimizerKind::momentum, .rate = 0.1F}, {0, built.values.size()},
                        statistic_ranges(built.network.parameters()));
    for (std::uint64_t step = 0; step < 3; ++step) {
      built.network.train(built.data, built.indices, step, built.values, built.gradients);
      optimizer.apply(step, 0.2F, built.values, built.gradients);
    }
    Flat clean(built.values.size());
    built.network.to_plain(built.values, built.plain);
    built.network.from_plain(built.plain, clean);
    EXPECT_EQ(clean, built.values) << "a round trip through the plain form clears padding";
  }
}

TEST(Network, PredictionsMatchTheReference) {
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text);
    Built built(test);
    Network network = Network::build(built.model, 4, {.batch = 4, .training = false}).value();
    Flat values(network.floats());
    std::vector<float> outputs(built.indices.size() * 4);
    network.from_plain(built.plain, values);
    const std::vector<float> samples(built.samples.begin(), built.samples.end());
    network.predict(samples.data(), built.indices.size(), values, outputs.data());
    Doubles expected = forward_reference(built.model, Doubles(built.plain.begin(), built.plain.end()),
                                         built.samples, static_cast<int>(built.indices.size()), false);
    for (std::size_t b = 0; b < built.indices.size() && built.model.loss == Loss::cross_entropy; ++b) {
      const Doubles row(expected.begin() + static_cast<std::ptrdiff_t>(b * 4),
                        expected.begin() + static_cast<std::ptrdiff_t>(b * 4 + 4));
      for (int c = 0; c < 4; ++c)
        expected[b * 4 + static_cast<std::size_t>(c)] =
            std::exp(-loss_reference(Loss::cross_entropy, row, {c}));
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) EXPECT_NEAR(outputs[i], expected[i], 2e-4);
  }
}

TEST(Network, RunningMeansMoveTowardsTheBatch) {
  Built built(cases[8]);
  built.network.train(built.data, built.indices, 1, built.values, built.gradients);
  std::size_t at = 0;
  for (const Parameter& p : built.network.parameters()) {
    if (p.is_statistic()) break;
    at += p.floats;
  }
  const float before = built.values[at], batch_mean = built.gradients[at] / 6;
  Optimizer optimizer({}, {0, built.values.size()}, statistic_ranges(built.network.parameters()));
  optimizer.apply(0, 1.0F / 6, built.values, built.gradients);
  EXPECT_NEAR(built.values[at], before + 0.1F * (batch_mean - before), 1e-5);
}

TEST(Network, DropoutTrainsAndEvaluationIgnoresIt) {
  const Case dropping{
      "{name: d, input: [1, 6, 6], layers: [{dense: 32}, sigmoid, {dropout: 0.5}, {dense: 4}]}"};
  Built built(dropping);
  const double a = built.network.train(built.data, built.indices, 1, built.values, built.gradients).loss;
  const Flat first = built.gradients;
  const double b = built.network.train(built.data, built.indices, 1, built.values, built.gradients).loss;
  EXPECT_EQ(a, b);
  EXPECT_EQ(first, built.gradients) << "same key, same choice";
  EXPECT_NE(a, built.network.train(built.data, built.indices, 2, built.values, built.gradients).loss);
  Network network = Network::build(built.model, 4, {.batch = 6, .training = false}).value();
  Flat values(network.floats());
  network.from_plain(built.plain, values);
  Doubles wide(built.plain.begin(), built.plain.end());
  const Evaluation all = evaluate(network, built.data, values);
  EXPECT_GT(all.loss, 0);
  EXPECT_NEAR(
      network.evaluate(built.data, 1, 1, values).loss,
      loss_reference(Loss::cross_entropy,
                     forward_reference(built.model, wide,
                                       Doubles(built.samples.begin(), built.samples.begin() + 36), 1, false),
                     {built.labels[0]}),
      1e-4);
}

TEST(Network, AugmentationChangesPicturesAndRepeats) {
  const ModelSpec model = parse_model("{name: a, input: [3, 8, 8], layers: [{dense: 4}]}", "test").value();
  const Dataset data = noise_images(model.input, 4, 8, 1.0);
  Network plain = Network::build(model, 4, {.batch = 8}).value();
  Network moved =
      Network::build(model, 4, {.batch = 8, .training = true, .threads = 1, .augment = true}).value();
  Flat values(plain.floats()), a(plain.floats()), b(plain.floats()), c(plain.floats()), d(plain.floats());
  plain.initialise(1, values);
  const std::vector<std::uint32_t> indices = {0, 1, 2, 3, 4, 5, 6, 7};
  plain.train(data, indices, 1, values, a);
  moved.train(data, indices, 1, values, b);
  moved.train(data, indices, 1, values, c);
  moved.train(data, indices, 2, values, d);
  EXPECT_NE(a, b);
  EXPECT_EQ(b, c) << "same key, same pictures";
  EXPECT_NE(b, d);
}

TEST(Network, TheBuiltInModelsLearnDrawnDigits) {
  const DataPair data = draw_digits(1, {4000, 1000});
  for (const char* name : {"mlp", "mlp2", "replica"}) {
    SCOPED_TRACE(name);
    const ModelSpec model = built_in_model(name, {.input = data.train.shape()}).value();
    Network network = Network::build(model, 10, {.batch = 50}).value();
    Network tester = Network::build(model, 10, {.batch = 100, .training = false}).value();
    Flat values(network.floats()), gradients(network.floats()), tested(tester.floats());
    std::vector<float> plain(network.plain_floats());
    network.initialise(1, values);
    const GoodDefaults good = good_defaults(model);
    Optimizer optimizer(
        {.kind = parse_optimizer(good.optimizer).value(), .rate = static_cast<float>(good.learning_rate)},
        {0, values.size()}, {});
    Order order(1, {4000, 50});
    for (std::uint64_t step = 0; step < 12 * order.steps_per_epoch(); ++step) {
      network.train(data.train, order.at(step, 0), step, values, gradients);
      optimizer.apply(step, 1.0F / 50, values, gradients);
    }
    network.to_plain(values, plain);
    tester.from_plain(plain, tested);
    EXPECT_GE(evaluate(tester, data.test, tested).accuracy, 0.95);
  }
}

}  // namespace
}  // namespace slipway::train
