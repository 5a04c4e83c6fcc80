#pragma once
// One step of a network. A CPU home stands behind it today; another home (CUDA) implements the same class.
//
// All parameters of a network lie in one flat array, all gradients in another of equal layout, so that
// exchange, optimizer and checkpoint are loops over floats. A layer is handed its own part of them at every
// call, and so can write gradients straight into a shared-memory segment. Its part may be laid out and padded
// as its kernels like; to_plain and from_plain translate. Padding is zero and stays zero: it gets no
// gradient.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/data/dataset.h"
#include "train/nn/kernels.h"
#include "train/nn/model.h"

namespace slipway::train {

struct ImageLayout;  // oneDNN's description of a batch of pictures; only nn/*.cpp look inside

// What flows from one layer to the next: `stride` floats per sample, of which the first shape.size() are the
// values of a flat port. A port of pictures has a layout, and its stride counts padded channels.
struct Port {
  Shape shape;
  std::size_t stride = 0;
  std::shared_ptr<const ImageLayout> image;
};

struct Parameter {
  enum class Kind { weight, bias, scale, shift, mean, variance };
  std::string name;        // layer3.weight
  std::vector<int> shape;  // plain: dense is inputs x outputs, conv is filters x channels x height x width
  std::size_t floats = 0;  // in the flat array, padding included
  Kind kind = Kind::weight;
  int fan_in = 1;

  // Running means are not trained: their gradient slot carries the batch's value and moves them slowly.
  bool is_statistic() const { return kind == Kind::mean || kind == Kind::variance; }
  std::size_t plain_floats() const;
};

// What a pass needs besides numbers.
struct Pass {
  bool training = false;
  std::uint64_t key = 0;               // differs per step and worker: the source of dropout's choices
  const SparseRows* sparse = nullptr;  // the batch without zeros, for a first dense layer; else null
  const SparseColumns* columns = nullptr;
};

class Layer {
 public:
  explicit Layer(Port output) : output_(std::move(output)) {}
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  const Port& output() const { return output_; }
  virtual std::vector<Parameter> parameters() const { return {}; }
  // Works on its input's memory: `in` and `out` are the same array, and so are the two gradients.
  virtual bool in_place() const { return false; }

  // `gradients` is null outside training; only running means use it here.
  virtual void forward(const Pass& pass, const float* parameters, const float* in, float* out,
                       float* gradients) = 0;
  // `d_in` is null when nobody needs it (the first layer). Gradients are sums over the batch, overwritten.
  virtual void backward(const Pass& pass, const float* parameters, const float* in, const float* out,
                        float* d_out, float* d_in, float* gradients) = 0;

  // One parameter between its own layout and the plain one. By default they are the same.
  virtual void to_plain(std::size_t which, const float* own, float* plain) const;
  virtual void from_plain(std::size_t which, const float* plain, float* own) const;

 protected:
  void set_output(Port output) { output_ = std::move(output); }

 private:
  Port output_;
};

struct LayerPlace {  // what a layer must know to be built
  int batch = 0;
  Port input;
  std::string name;  // layer3
  bool training = false;
  bool starts_quickly = false;  // see NetworkOptions
};

std::unique_ptr<Layer> make_dense(const LayerPlace& place, int units);
std::unique_ptr<Layer> make_conv(const LayerPlace& place, const LayerSpec& spec);
std::unique_ptr<Layer> make_pool(const LayerPlace& place, const LayerSpec& spec);
std::unique_ptr<Layer> make_batch_norm(const LayerPlace& place);
std::unique_ptr<Layer> make_activation(const LayerPlace& place, LayerKind kind);
std::unique_ptr<Layer> make_dropout(const LayerPlace& place, float rate);
// From pictures in oneDNN's layout to plain rows; a flat port needs none.
std::unique_ptr<Layer> make_flatten(const LayerPlace& place);

// The port of a batch of plain pictures, channel by channel, as the data has them.
Port picture_port(int batch, const Shape& shape);

// Sets the number of threads oneDNN uses in the calling thread. One process per core is the rule; more than
// one is for a lone worker.
void set_kernel_threads(int threads);

inline std::size_t round_up_16(std::size_t n) { return (n + 15) / 16 * 16; }

}  // namespace slipway::train
