#include "train/nn/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/random.h"
#include "train/data/order.h"

namespace slipway::train {
namespace {

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Floats = std::unique_ptr<float[], Free>;

Floats zeros(std::size_t count) {  // on a cache line, as the vector units like it
  const std::size_t bytes = (std::max<std::size_t>(count, 16) * sizeof(float) + 63) / 64 * 64;
  auto* memory = static_cast<float*>(std::aligned_alloc(64, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  return Floats(memory);
}

// Sparse rows address inputs with 16 bits; above half full the dense product is faster.
constexpr double sparse_density_max = 0.5;

}  // namespace

struct Network::State {
  ModelSpec model;
  NetworkOptions options;
  int classes = 0;
  Port input;
  std::vector<std::unique_ptr<Layer>> layers;
  std::vector<Parameter> parameters;
  std::vector<std::size_t> layer_offset;  // of each layer's parameters in the flat array
  std::size_t floats = 0, plain_floats = 0;

  Floats input_values;
  std::vector<Floats> value_memory, gradient_memory;
  std::vector<float*> values, gradients;  // per layer; an in-place layer shares its input's
  std::vector<float> outputs;             // softmax, or targets' differences

  const void* sparse_of = nullptr;  // the data the store was made for
  bool sparse_fits = false;
  std::unique_ptr<SparseStore> sparse;
  std::vector<std::uint32_t> prepared;  // the samples that rows and columns hold
  const SparseRows* rows = nullptr;
  const SparseColumns* columns = nullptr;

  std::size_t out_stride() const { return layers.back()->output().stride; }
  bool begins_dense() const { return !input.image; }

  void choose_input(const Dataset& data) {
    if (data.image(0) == sparse_of) return;
    sparse_of = data.image(0);
    sparse_fits = begins_dense() && data.shape().size() <= 65536 && data.density() < sparse_density_max;
    sparse.reset();
    prepared.clear();
    if (sparse_fits) sparse = std::make_unique<SparseStore>(data);
  }

  void load_dense(const Dataset& data, std::span<const std::uint32_t> indices, std::uint64_t key,
                  bool augment);
  void forward(const Pass& pass, const float* flat, float* flat_gradients);
  BatchResult loss(const Dataset& data, std::span<const std::uint32_t> indices, float* d_out);
};

Network::Network(std::unique_ptr<State> state) : state_(std::move(state)) {}
Network::Network(Network&&) noexcept = default;
Network& Network::operator=(Network&&) noexcept = default;
Network::~Network() = default;

int Network::batch() const { return state_->options.batch; }
const ModelSpec& Network::model() const { return state_->model; }
const std::vector<Parameter>& Network::parameters() const { return state_->parameters; }
std::size_t Network::floats() const { return state_->floats; }
std::size_t Network::plain_floats() const { return state_->plain_floats; }

Result<Network> Network::build(const ModelSpec& model, int classes, NetworkOptions options) {
  if (auto fits = check_model(model, classes); !fits) return fail(fits.error());
  set_kernel_threads(options.threads);
  auto state = std::make_unique<State>();
  State& s = *state;
  s.model = model;
  s.options = options;
  s.classes = classes;
  const bool starts_flat = model.layers.front().kind == LayerKind::dense || model.input.height == 1;
  s.input = starts_flat ? Port{model.input, static_cast<std::size_t>(model.input.size()), nullptr}
                        : picture_port(options.batch, model.input);
  Port port = s.input;
  try {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      const LayerSpec& spec = model.layers[i];
      const LayerPlace place{options.batch, port, fmt::format("layer{}", i + 1), options.training};
      if (spec.kind == LayerKind::dense && port.image) {
        s.layers.push_back(make_flatten(place));
        port = s.layers.back()->output();
      }
      const LayerPlace here{options.batch, port, place.name, options.training, options.starts_quickly};
      switch (spec.kind) {
        case LayerKind::dense: s.layers.push_back(make_dense(here, spec.units)); break;
        case LayerKind::conv: s.layers.push_back(make_conv(here, spec)); break;
        case LayerKind::max_pool:
        case LayerKind::avg_pool: s.layers.push_back(make_pool(here, spec)); break;
        case LayerKind::batch_norm: s.layers.push_back(make_batch_norm(here)); break;
        case LayerKind::dropout: s.layers.push_back(make_dropout(here, spec.rate)); break;
        default: s.layers.push_back(make_activation(here, spec.kind));
      }
      port = s.layers.back()->output();
    }
    const auto batch = static_cast<std::size_t>(options.batch);
    s.input_values = zeros(batch * s.input.stride);
    float* values = s.input_values.get();
    float* gradients = nullptr;
    for (const auto& layer : s.layers) {
      if (!layer->in_place()) {
        const std::size_t count = batch * layer->output().stride;
        s.value_memory.push_back(zeros(count));
        values = s.value_memory.back().get();
        if (options.training) s.gradient_memory.push_back(zeros(count));
        gradients = options.training ? s.gradient_memory.back().get() : nullptr;
      }
      s.values.push_back(values);
      s.gradients.push_back(gradients);
      s.layer_offset.push_back(s.floats);
      for (Parameter& parameter : layer->parameters()) {
        parameter.floats = round_up_16(parameter.floats);
        s.floats += parameter.floats;
        s.plain_floats += parameter.plain_floats();
        s.parameters.push_back(std::move(parameter));
      }
    }
    s.outputs.resize(batch * s.out_stride());
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::too_large,
                fmt::format("{} with batches of {} does not fit into memory", model.name, options.batch),
                "use a smaller --batch-size");
  } catch (const std::exception& error) {  // oneDNN's
    return fail(ErrorCode::invalid, fmt::format("{} cannot be built: {}", model.name, error.what()),
                "no kernel fits one of its layers; try other kernel sizes");
  }
  return Network(std::move(state));
}

std::uint64_t Network::layout_fingerprint() const {
  std::uint64_t hash = mix(state_->floats, state_->plain_floats);
  for (const char c : format_model(state_->model)) hash = mix(hash, static_cast<unsigned char>(c));
  // The inner order of weights shows in where a marked value lands.
  std::vector<float> plain(state_->plain_floats), own(state_->floats);
  for (std::size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i % 8191);
  from_plain(plain, own);
  for (std::size_t i = 0; i < own.size(); i += 37)
    hash = hash * 0x100000001b3ULL + static_cast<std::uint64_t>(own[i]);
  return hash;
}

void Network::initialise(std::uint64_t seed, std::span<float> values) const {
  std::vector<float> plain(state_->plain_floats);
  std::size_t at = 0, index = 0;
  for (const auto& layer : state_->layers) {
    const std::size_t position = static_cast<std::size_t>(&layer - state_->layers.data());
    // ReLU halves the variance that flows through, so its layers start twice as wide.
    bool rectified = false;
    for (std::size_t next = position + 1; next < state_->layers.size() && next <= position + 2; ++next)
      rectified = rectified || state_->layers[next]->in_place();
    for (const Parameter& parameter : layer->parameters()) {
      const std::size_t count = parameter.plain_floats();
      float fill = 0;
      if (parameter.kind == Parameter::Kind::scale || parameter.kind == Parameter::Kind::variance) fill = 1;
      std::fill_n(plain.begin() + static_cast<std::ptrdiff_t>(at), count, fill);
      if (parameter.kind == Parameter::Kind::weight) {
        const bool uses_relu =
            rectified && std::any_of(state_->model.layers.begin(), state_->model.layers.end(),
                                     [](const LayerSpec& l) { return l.kind == LayerKind::relu; });
        const double deviation = std::sqrt((uses_relu ? 2.0 : 1.0) / parameter.fan_in);
        Random random(mix(seed, 0x494e4954, index));
        const double reach = std::sqrt(3.0) * deviation;  // a uniform distribution of that deviation
        for (std::size_t i = 0; i < count; ++i)
          plain[at + i] = static_cast<float>((random.unit() * 2 - 1) * reach);
      }
      at += count;
      ++index;
    }
  }
  from_plain(plain, values);
}

void Network::State::load_dense(const Dataset& data, std::span<const std::uint32_t> indices,
                                std::uint64_t key, bool augment) {
  const Shape shape = data.shape();
  const auto size = static_cast<std::size_t>(shape.size());
  float* to = input_values.get();
  if (!augment) {
    for (std::size_t b = 0; b < indices.size(); ++b)
      kernels().bytes_to_floats(data.image(indices[b]), to + b * size, size);
    return;
  }
  constexpr int shift_max = 4;
  for (std::size_t b = 0; b < indices.size(); ++b) {
    const std::uint64_t draw = mix(key, indices[b], b);
    const int dx = static_cast<int>(draw % (2 * shift_max + 1)) - shift_max;
    const int dy = static_cast<int>(draw / 16 % (2 * shift_max + 1)) - shift_max;
    const bool flip = (draw >> 32 & 1U) != 0;
    const std::uint8_t* image = data.image(indices[b]);
    float* sample = to + b * size;
    for (int c = 0; c < shape.channels; ++c)
      for (int y = 0; y < shape.height; ++y)
        for (int x = 0; x < shape.width; ++x) {
          const int from_y = y + dy, from_x = (flip ? shape.width - 1 - x : x) + dx;
          const bool inside = from_y >= 0 && from_y < shape.height && from_x >= 0 && from_x < shape.width;
          *sample++ =
              inside ? static_cast<float>(image[(c * shape.height + from_y) * shape.width + from_x]) / 255.0F
                     : 0.0F;
        }
  }
}

void Network::State::forward(const Pass& pass, const float* flat, float* flat_gradients) {
  const float* in = input_values.get();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Pass own = pass;
    if (i > 0) own.sparse = nullptr;
    float* gradient = flat_gradients == nullptr ? nullptr : flat_gradients + layer_offset[i];
    layers[i]->forward(own, flat + layer_offset[i], in, values[i], gradient);
    in = values[i];
  }
}

BatchResult Network::State::loss(const Dataset& data, std::span<const std::uint32_t> indices, float* d_out) {
  const std::size_t stride = out_stride();
  const auto count = static_cast<std::size_t>(classes);
  const float* logits = values.back();
  BatchResult result;
  for (std::size_t b = 0; b < indices.size(); ++b) {
    const float* row = logits + b * stride;
    const std::size_t label = data.label(indices[b]);
    const auto best = static_cast<std::size_t>(std::max_element(row, row + count) - row);
    result.correct += best == label ? 1 : 0;
    float* d = d_out + b * stride;
    if (model.loss == Loss::cross_entropy) {
      std::memcpy(d, row, count * sizeof(float));
      result.loss += kernels().softmax_row(d, count) - row[label];
      d[label] -= 1.0F;
    } else {
      for (std::size_t i = 0; i < count; ++i) {
        const float off = row[i] - (i == label ? 1.0F : 0.0F);
        d[i] = off;
        result.loss += 0.5 * off * off;
      }
    }
  }
  return result;
}

void Network::prepare(const Dataset& data, std::span<const std::uint32_t> indices) {
  State& s = *state_;
  s.choose_input(data);
  if (!s.sparse) return;
  s.rows = &s.sparse->rows(indices);
  s.columns = &s.sparse->columns();
  s.prepared.assign(indices.begin(), indices.end());
}

BatchResult Network::train(const Dataset& data, std::span<const std::uint32_t> indices, std::uint64_t key,
                           std::span<const float> values, std::span<float> gradients) {
  State& s = *state_;
  SLIPWAY_CHECK(s.options.training && static_cast<int>(indices.size()) == s.options.batch);
  SLIPWAY_CHECK(values.size() >= s.floats && gradients.size() >= s.floats);
  SLIPWAY_CHECK(reinterpret_cast<std::uintptr_t>(values.data()) % 64 == 0);
  SLIPWAY_CHECK(reinterpret_cast<std::uintptr_t>(gradients.data()) % 64 == 0);
  set_kernel_threads(s.options.threads);
  s.choose_input(data);
  Pass pass{.training = true, .key = key};
  if (s.sparse) {
    if (!std::equal(indices.begin(), indices.end(), s.prepared.begin(), s.prepared.end()))
      prepare(data, indices);
    pass.sparse = s.rows;
    pass.columns = s.columns;
  } else {
    s.load_dense(data, indices, key, s.options.augment && data.shape().channels == 3);
  }
  s.forward(pass, values.data(), gradients.data());
  const BatchResult result = s.loss(data, indices, s.gradients.back());
  for (std::size_t i = s.layers.size(); i-- > 0;) {
    Pass own = pass;
    if (i > 0) own.columns = nullptr;
    const float* in = i == 0 ? s.input_values.get() : s.values[i - 1];
    float* d_in = i == 0 ? nullptr : s.gradients[i - 1];
    s.layers[i]->backward(own, values.data() + s.layer_offset[i], in, s.values[i], s.gradients[i], d_in,
                          gradients.data() + s.layer_offset[i]);
  }
  return result;
}

BatchResult Network::evaluate(const Dataset& data, std::size_t first, std::size_t count,
                              std::span<const float> values) {
  State& s = *state_;
  const auto batch = static_cast<std::size_t>(s.options.batch);
  SLIPWAY_CHECK(count <= batch && first + count <= data.count() && count > 0);
  set_kernel_threads(s.options.threads);
  s.choose_input(data);
  std::vector<std::uint32_t> indices(batch, static_cast<std::uint32_t>(first));  // the rest repeats the first
  for (std::size_t i = 0; i < count; ++i) indices[i] = static_cast<std::uint32_t>(first + i);
  Pass pass;
  s.prepared.clear();
  if (s.sparse)
    pass.sparse = &s.sparse->rows(indices);
  else
    s.load_dense(data, indices, 0, false);
  s.forward(pass, values.data(), nullptr);
  return s.loss(data, std::span(indices).first(count), s.outputs.data());
}

void Network::predict(const float* samples, std::size_t count, std::span<const float> values,
                      float* outputs) {
  State& s = *state_;
  const auto batch = static_cast<std::size_t>(s.options.batch), classes = static_cast<std::size_t>(s.classes);
  const auto size = static_cast<std::size_t>(s.model.input.size());
  set_kernel_threads(s.options.threads);
  for (std::size_t first = 0; first < count; first += batch) {
    const std::size_t now = std::min(batch, count - first);
    std::memcpy(s.input_values.get(), samples + first * size, now * size * sizeof(float));
    s.forward({}, values.data(), nullptr);
    for (std::size_t b = 0; b < now; ++b) {
      float* out = outputs + (first + b) * classes;
      std::memcpy(out, s.values.back() + b * s.out_stride(), classes * sizeof(float));
      if (s.model.loss == Loss::cross_entropy) kernels().softmax_row(out, classes);
    }
  }
}

void Network::to_plain(std::span<const float> own, std::span<float> plain) const {
  std::size_t from = 0, to = 0;
  for (const auto& layer : state_->layers) {
    const auto parameters = layer->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      layer->to_plain(i, own.data() + from, plain.data() + to);
      from += round_up_16(parameters[i].floats);
      to += parameters[i].plain_floats();
    }
  }
}

void Network::from_plain(std::span<const float> plain, std::span<float> own) const {
  std::fill(own.begin(), own.end(), 0.0F);
  std::size_t from = 0, to = 0;
  for (const auto& layer : state_->layers) {
    const auto parameters = layer->parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      layer->from_plain(i, plain.data() + from, own.data() + to);
      from += parameters[i].plain_floats();
      to += round_up_16(parameters[i].floats);
    }
  }
}

std::size_t Parameter::plain_floats() const {
  std::size_t count = 1;
  for (const int side : shape) count *= static_cast<std::size_t>(side);
  return count;
}
void Layer::to_plain(std::size_t, const float*, float*) const {}
void Layer::from_plain(std::size_t, const float*, float*) const {}

Evaluation evaluate(Network& network, const Dataset& data, std::span<const float> values) {
  double loss = 0;
  std::size_t correct = 0;
  const auto batch = static_cast<std::size_t>(network.batch());
  for (std::size_t first = 0; first < data.count(); first += batch) {
    const BatchResult part = network.evaluate(data, first, std::min(batch, data.count() - first), values);
    loss += part.loss;
    correct += part.correct;
  }
  const auto count = static_cast<double>(data.count());
  return {static_cast<double>(correct) / count, loss / count};
}

}  // namespace slipway::train
