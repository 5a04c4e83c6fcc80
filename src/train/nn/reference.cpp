#include "train/nn/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace slipway::train {

Doubles dense_reference(const Doubles& x, const double* weight, const double* bias, int batch, int inputs,
                        int units) {
  Doubles y(static_cast<std::size_t>(batch * units));
  for (int b = 0; b < batch; ++b)
    for (int u = 0; u < units; ++u) {
      double sum = bias[u];
      for (int i = 0; i < inputs; ++i)
        sum += x[static_cast<std::size_t>(b * inputs + i)] * weight[i * units + u];
      y[static_cast<std::size_t>(b * units + u)] = sum;
    }
  return y;
}

Doubles conv_reference(const Doubles& x, const double* weight, const double* bias, int batch, const Shape& in,
                       const LayerSpec& spec) {
  const int height = (in.height + 2 * spec.padding - spec.kernel) / spec.stride + 1;
  const int width = (in.width + 2 * spec.padding - spec.kernel) / spec.stride + 1;
  Doubles y;
  for (int b = 0; b < batch; ++b)
    for (int f = 0; f < spec.units; ++f)
      for (int oy = 0; oy < height; ++oy)
        for (int ox = 0; ox < width; ++ox) {
          double sum = bias[f];
          for (int c = 0; c < in.channels; ++c)
            for (int ky = 0; ky < spec.kernel; ++ky)
              for (int kx = 0; kx < spec.kernel; ++kx) {
                const int iy = oy * spec.stride + ky - spec.padding,
                          ix = ox * spec.stride + kx - spec.padding;
                if (iy < 0 || ix < 0 || iy >= in.height || ix >= in.width) continue;
                sum += x[static_cast<std::size_t>(((b * in.channels + c) * in.height + iy) * in.width + ix)] *
                       weight[((f * in.channels + c) * spec.kernel + ky) * spec.kernel + kx];
              }
          y.push_back(sum);
        }
  return y;
}

Doubles pool_reference(const Doubles& x, int batch, const Shape& in, const LayerSpec& spec) {
  const int height = (in.height - spec.kernel) / spec.stride + 1;
  const int width = (in.width - spec.kernel) / spec.stride + 1;
  Doubles y;
  for (int plane = 0; plane < batch * in.channels; ++plane)
    for (int oy = 0; oy < height; ++oy)
      for (int ox = 0; ox < width; ++ox) {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int ky = 0; ky < spec.kernel; ++ky)
          for (int kx = 0; kx < spec.kernel; ++kx) {
            const int iy = oy * spec.stride + ky, ix = ox * spec.stride + kx;
            const double value = x[static_cast<std::size_t>((plane * in.height + iy) * in.width + ix)];
            top = std::max(top, value);
            sum += value;
          }
        y.push_back(spec.kind == LayerKind::max_pool ? top : sum / (spec.kernel * spec.kernel));
      }
  return y;
}

Doubles batch_norm_reference(const Doubles& x, const double* parameters, int batch, const Shape& in,
                             bool training) {
  const int area = in.height * in.width, channels = in.channels;
  Doubles y(x.size());
  for (int c = 0; c < channels; ++c) {
    const auto each = [&](auto use) {
      for (int b = 0; b < batch; ++b)
        for (int i = 0; i < area; ++i) use(static_cast<std::size_t>((b * channels + c) * area + i));
    };
    double mean = parameters[2 * channels + c], variance = parameters[3 * channels + c];
    if (training) {
      mean = variance = 0;
      each([&](std::size_t at) { mean += x[at] / (batch * area); });
      each([&](std::size_t at) { variance += (x[at] - mean) * (x[at] - mean) / (batch * area); });
    }
    each([&](std::size_t at) {
      y[at] = (x[at] - mean) / std::sqrt(variance + 1e-5) * parameters[c] + parameters[channels + c];
    });
  }
  return y;
}

Doubles forward_reference(const ModelSpec& model, const Doubles& parameters, const Doubles& samples,
                          int batch, bool training) {
  Doubles x = samples;
  Shape shape = model.input;
  const double* next = parameters.data();
  for (const LayerSpec& layer : model.layers) {
    switch (layer.kind) {
      case LayerKind::dense: {
        const int inputs = shape.size();
        x = dense_reference(x, next, next + inputs * layer.units, batch, inputs, layer.units);
        next += (inputs + 1) * layer.units;
        shape = {layer.units, 1, 1};
        break;
      }
      case LayerKind::conv: {
        const int weights = layer.units * shape.channels * layer.kernel * layer.kernel;
        x = conv_reference(x, next, next + weights, batch, shape, layer);
        next += weights + layer.units;
        shape = {layer.units, (shape.height + 2 * layer.padding - layer.kernel) / layer.stride + 1,
                 (shape.width + 2 * layer.padding - layer.kernel) / layer.stride + 1};
        break;
      }
      case LayerKind::max_pool:
      case LayerKind::avg_pool:
        x = pool_reference(x, batch, shape, layer);
        shape = {shape.channels, (shape.height - layer.kernel) / layer.stride + 1,
                 (shape.width - layer.kernel) / layer.stride + 1};
        break;
      case LayerKind::batch_norm:
        x = batch_norm_reference(x, next, batch, shape, training);
        next += 4 * shape.channels;
        break;
      case LayerKind::dropout: break;
      case LayerKind::relu:
        for (double& v : x) v = std::max(v, 0.0);
        break;
      case LayerKind::sigmoid:
        for (double& v : x) v = 1 / (1 + std::exp(-v));
        break;
      case LayerKind::tanh:
        for (double& v : x) v = std::tanh(v);
        break;
    }
  }
  return x;
}

double loss_reference(Loss loss, const Doubles& outputs, const std::vector<int>& labels) {
  const std::size_t classes = outputs.size() / labels.size();
  double total = 0;
  for (std::size_t b = 0; b < labels.size(); ++b) {
    const double* row = outputs.data() + b * classes;
    if (loss == Loss::cross_entropy) {
      const double top = *std::max_element(row, row + classes);
      double sum = 0;
      for (std::size_t i = 0; i < classes; ++i) sum += std::exp(row[i] - top);
      total += top + std::log(sum) - row[labels[b]];
    } else {
      for (std::size_t i = 0; i < classes; ++i) {
        const double off = row[i] - (static_cast<int>(i) == labels[b] ? 1 : 0);
        total += 0.5 * off * off;
      }
    }
  }
  return total;
}

void optimizer_reference(const OptimizerSpec& spec, std::uint64_t step, double scale, Doubles& values,
                         const Doubles& gradients, Doubles& state) {
  const double rate = rate_at(spec, step);
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; ++i) {
    const double g = gradients[i] * scale;
    switch (spec.kind) {
      case OptimizerKind::sgd: values[i] -= rate * g; break;
      case OptimizerKind::momentum:
        state[i] = spec.decay * state[i] + g;
        values[i] -= rate * state[i];
        break;
      case OptimizerKind::adagrad:
        state[i] += g * g;
        values[i] -= rate * g / (std::sqrt(state[i]) + 1e-7);
        break;
      case OptimizerKind::adam: {
        const double t = static_cast<double>(step + 1);
        state[i] = spec.beta1 * state[i] + (1 - spec.beta1) * g;
        state[n + i] = spec.beta2 * state[n + i] + (1 - spec.beta2) * g * g;
        const double corrected =
            rate * std::sqrt(1 - std::pow(spec.beta2, t)) / (1 - std::pow(spec.beta1, t));
        values[i] -= corrected * state[i] / (std::sqrt(state[n + i]) + spec.epsilon);
      }
    }
  }
}

}  // namespace slipway::train
