// Activations and dropout: element by element, in place, whatever the layout.
#include <omp.h>

#include <cstring>

#include "train/data/order.h"
#include "train/nn/onednn.h"

namespace slipway::train {
namespace {

class Activation final : public Layer {
 public:
  Activation(const LayerPlace& place, LayerKind kind)
      : Layer(place.input), kind_(kind), floats_(place.input.stride * static_cast<std::size_t>(place.batch)) {
    // Padded channels must stay zero, and sigmoid(0) is not: keep a mask to clear them with.
    if (kind == LayerKind::sigmoid && place.input.image) make_mask(place);
  }
  bool in_place() const override { return true; }

  void forward(const Pass&, const float*, const float*, float* out, float*) override {
    if (kind_ == LayerKind::relu) kernels().relu(out, floats_);
    if (kind_ == LayerKind::tanh) kernels().tanh(out, floats_);
    if (kind_ == LayerKind::sigmoid) kernels().sigmoid(out, floats_);
    for (std::size_t i = 0; i < mask_.size(); ++i) out[i] *= mask_[i];
  }
  void backward(const Pass&, const float*, const float*, const float* out, float* d_out, float*,
                float*) override {
    if (kind_ == LayerKind::relu) kernels().relu_backward(out, d_out, floats_);
    if (kind_ == LayerKind::tanh) kernels().tanh_backward(out, d_out, floats_);
    if (kind_ == LayerKind::sigmoid) kernels().sigmoid_backward(out, d_out, floats_);
  }

 private:
  void make_mask(const LayerPlace& place) {
    const dnnl::memory::desc& desc = place.input.image->desc;
    const auto dims = desc.dims();
    if (dims[1] == place.input.shape.channels) return;
    const auto plain_desc = plain_pictures(static_cast<int>(dims[0]), static_cast<int>(dims[1]),
                                           static_cast<int>(dims[2]), static_cast<int>(dims[3]));
    std::vector<float> plain(floats_, 0.0F);
    const std::size_t real = static_cast<std::size_t>(place.input.shape.size());
    for (std::size_t b = 0; b < static_cast<std::size_t>(place.batch); ++b)
      std::fill_n(plain.begin() + static_cast<std::ptrdiff_t>(b * place.input.stride), real, 1.0F);
    mask_.resize(floats_);
    dnnl::stream stream(cpu_engine());
    dnnl::memory from = memory_at(plain_desc, plain.data()), to = memory_at(desc, mask_.data());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  LayerKind kind_;
  std::size_t floats_;
  std::vector<float> mask_;
};

class Dropout final : public Layer {
 public:
  Dropout(const LayerPlace& place, float rate)
      : Layer(place.input), rate_(rate), floats_(place.input.stride * static_cast<std::size_t>(place.batch)) {
    for (const char c : place.name) salt_ = salt_ * 131 + static_cast<unsigned char>(c);
  }

  void forward(const Pass& pass, const float*, const float* in, float* out, float*) override {
    apply(pass, in, out);
  }
  void backward(const Pass& pass, const float*, const float*, const float*, float* d_out, float* d_in,
                float*) override {
    if (d_in != nullptr) apply(pass, d_out, d_in);
  }

 private:
  // Not in place: the activation before it still needs its own output for the way back.
  void apply(const Pass& pass, const float* from, float* to) const {
    std::memcpy(to, from, floats_ * sizeof(float));
    if (pass.training && rate_ > 0) kernels().dropout(to, floats_, rate_, mix(pass.key, salt_));
  }

  float rate_;
  std::size_t floats_;
  std::uint64_t salt_ = 0;  // layers of one network must not drop alike
};

}  // namespace

std::unique_ptr<Layer> make_activation(const LayerPlace& place, LayerKind kind) {
  return std::make_unique<Activation>(place, kind);
}
std::unique_ptr<Layer> make_dropout(const LayerPlace& place, float rate) {
  return std::make_unique<Dropout>(place, rate);
}

void set_kernel_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace slipway::train
