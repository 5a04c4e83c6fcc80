// Fully connected layers: our sparse kernels on the raw bytes of the first layer, our own product for narrow
// layers such as the last, oneDNN's sgemm for the rest.
#include <oneapi/dnnl/dnnl.h>

#include <cstring>

#include "base/check.h"
#include "train/nn/aligned.h"
#include "train/nn/layer.h"

namespace slipway::train {
namespace {

// Weights are inputs x width, the outputs padded to whole registers; the padding is zero.
class Dense final : public Layer {
 public:
  Dense(const LayerPlace& place, int units)
      : Layer({{units, 1, 1}, round_up_16(static_cast<std::size_t>(units)), nullptr}),
        name_(place.name),
        batch_(static_cast<std::size_t>(place.batch)),
        inputs_(static_cast<std::size_t>(place.input.shape.size())),
        in_stride_(place.input.stride),
        units_(static_cast<std::size_t>(units)),
        width_(output().stride),
        // The product writes whole registers, also of what flows back.
        is_narrow_(units <= narrow_max && in_stride_ % 16 == 0 && in_stride_ >= round_up_16(inputs_)),
        uses_own_product_(is_narrow_ || (place.starts_quickly && !place.training)) {
    if (is_narrow_ && place.training) turned_.resize(units_ * in_stride_);
  }

  std::vector<Parameter> parameters() const override {
    const int inputs = static_cast<int>(inputs_), units = static_cast<int>(units_);
    return {{name_ + ".weight", {inputs, units}, inputs_ * width_, Parameter::Kind::weight, inputs},
            {name_ + ".bias", {units}, width_, Parameter::Kind::bias, inputs}};
  }

  void forward(const Pass& pass, const float* parameters, const float* in, float* out, float*) override {
    const float* bias = parameters + inputs_ * width_;
    if (pass.sparse != nullptr) {
      kernels().sparse_forward(*pass.sparse, parameters, bias, width_, out);
      return;
    }
    if (uses_own_product_)
      kernels().multiply({in, in_stride_, 1, parameters, width_, out, width_, batch_, width_, inputs_});
    else
      multiply('N', 'N', batch_, width_, inputs_, in, in_stride_, parameters, width_, out, width_);
    kernels().add_bias(out, batch_, width_, bias);
  }

  void backward(const Pass& pass, const float* parameters, const float* in, const float*, float* d_out,
                float* d_in, float* gradients) override {
    if (pass.columns != nullptr)
      kernels().sparse_gradient(*pass.columns, d_out, width_, gradients);
    else if (is_narrow_)
      kernels().multiply({in, 1, in_stride_, d_out, width_, gradients, width_, inputs_, width_, batch_});
    else
      multiply('T', 'N', inputs_, width_, batch_, in, in_stride_, d_out, width_, gradients, width_);
    kernels().column_sums(d_out, batch_, width_, gradients + inputs_ * width_);
    if (d_in == nullptr) return;
    if (!is_narrow_)
      return multiply('N', 'T', batch_, inputs_, width_, d_out, width_, parameters, width_, d_in, in_stride_);
    for (std::size_t u = 0; u < units_; ++u)
      for (std::size_t i = 0; i < inputs_; ++i) turned_[u * in_stride_ + i] = parameters[i * width_ + u];
    kernels().multiply(
        {d_out, width_, 1, turned_.data(), in_stride_, d_in, in_stride_, batch_, in_stride_, units_});
  }

  void to_plain(std::size_t which, const float* own, float* plain) const override {
    const std::size_t rows = which == 0 ? inputs_ : 1;
    for (std::size_t r = 0; r < rows; ++r)
      std::memcpy(plain + r * units_, own + r * width_, units_ * sizeof(float));
  }
  void from_plain(std::size_t which, const float* plain, float* own) const override {
    const std::size_t rows = which == 0 ? inputs_ : 1;
    for (std::size_t r = 0; r < rows; ++r) {
      std::memcpy(own + r * width_, plain + r * units_, units_ * sizeof(float));
      std::memset(own + r * width_ + units_, 0, (width_ - units_) * sizeof(float));
    }
  }

 private:
  static void multiply(char a_turned, char b_turned, std::size_t m, std::size_t n, std::size_t k,
                       const float* a, std::size_t a_stride, const float* b, std::size_t b_stride, float* c,
                       std::size_t c_stride) {
    const auto size = [](std::size_t value) { return static_cast<dnnl_dim_t>(value); };
    const dnnl_status_t status = dnnl_sgemm(a_turned, b_turned, size(m), size(n), size(k), 1.0F, a,
                                            size(a_stride), b, size(b_stride), 0.0F, c, size(c_stride));
    SLIPWAY_CHECK(status == dnnl_success);
  }

  static constexpr int narrow_max = 64;
  std::string name_;
  std::size_t batch_, inputs_, in_stride_, units_, width_;
  bool is_narrow_, uses_own_product_;
  Flat turned_;  // the weights, units x inputs
};

}  // namespace

std::unique_ptr<Layer> make_dense(const LayerPlace& place, int units) {
  return std::make_unique<Dense>(place, units);
}

}  // namespace slipway::train
