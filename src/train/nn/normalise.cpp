// Batch normalisation by oneDNN, over pictures and over rows.
#include <cstring>

#include "train/nn/onednn.h"

namespace slipway::train {
namespace {

using dnnl::memory;
using dnnl::prop_kind;
constexpr float epsilon = 1e-5F;

class BatchNorm final : public Layer {
 public:
  explicit BatchNorm(const LayerPlace& place)
      : Layer(place.input),
        name_(place.name),
        batch_(place.batch),
        channels_(static_cast<std::size_t>(place.input.shape.channels)),
        stream_(cpu_engine()) {
    const auto width = static_cast<memory::dim>(place.input.stride);
    desc_ = place.input.image
                ? place.input.image->desc
                : memory::desc({place.batch, width, 1, 1}, memory::data_type::f32, memory::format_tag::nhwc);
    padded_ = static_cast<std::size_t>(desc_.dims()[1]);
    statistic_desc_ = memory::desc({desc_.dims()[1]}, memory::data_type::f32, memory::format_tag::x);
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    if (place.training) {
      const dnnl::batch_normalization_forward::desc forward(prop_kind::forward_training, desc_, epsilon,
                                                            flags);
      const dnnl::batch_normalization_forward::primitive_desc chosen(forward, cpu_engine());
      forward_ = dnnl::batch_normalization_forward(chosen);
      const dnnl::batch_normalization_backward::desc backward(prop_kind::backward, desc_, desc_, epsilon,
                                                              flags);
      backward_ = dnnl::batch_normalization_backward(
          dnnl::batch_normalization_backward::primitive_desc(backward, cpu_engine(), chosen));
      mean_.resize(padded_);
      variance_.resize(padded_);
    }
    const dnnl::batch_normalization_forward::desc inference(
        prop_kind::forward_inference, desc_, epsilon, flags | dnnl::normalization_flags::use_global_stats);
    inference_ = dnnl::batch_normalization_forward(
        dnnl::batch_normalization_forward::primitive_desc(inference, cpu_engine()));
  }

  std::vector<Parameter> parameters() const override {
    const std::vector<int> shape = {static_cast<int>(channels_)};
    using enum Parameter::Kind;
    return {{name_ + ".scale", shape, padded_, scale, 1},
            {name_ + ".shift", shape, padded_, shift, 1},
            {name_ + ".mean", shape, padded_, mean, 1},
            {name_ + ".variance", shape, padded_, variance, 1}};
  }

  void forward(const Pass& pass, const float* parameters, const float* in, float* out,
               float* gradients) override {
    const bool learn = pass.training && gradients != nullptr;
    const float* mean = learn ? mean_.data() : parameters + 2 * padded_;
    const float* variance = learn ? variance_.data() : parameters + 3 * padded_;
    (learn ? forward_ : inference_)
        .execute(stream_, {{DNNL_ARG_SRC, memory_at(desc_, in)},
                           {DNNL_ARG_MEAN, memory_at(statistic_desc_, mean)},
                           {DNNL_ARG_VARIANCE, memory_at(statistic_desc_, variance)},
                           {DNNL_ARG_SCALE, memory_at(statistic_desc_, parameters)},
                           {DNNL_ARG_SHIFT, memory_at(statistic_desc_, parameters + padded_)},
                           {DNNL_ARG_DST, memory_at(desc_, out)}});
    if (!learn) return;
    // Gradients are sums over the batch everywhere, so the batch's means are handed on as sums too.
    const auto batch = static_cast<float>(batch_);
    for (std::size_t c = 0; c < padded_; ++c) {
      gradients[2 * padded_ + c] = c < channels_ ? mean_[c] * batch : 0;
      gradients[3 * padded_ + c] = c < channels_ ? variance_[c] * batch : 0;
    }
  }

  void backward(const Pass&, const float* parameters, const float* in, const float*, float* d_out,
                float* d_in, float* gradients) override {
    if (d_in == nullptr) {  // oneDNN always writes the input's gradient
      unused_.resize(desc_.get_size() / sizeof(float));
      d_in = unused_.data();
    }
    // oneDNN 2.6 counts the shift among the inputs here too, although the arithmetic does not need it.
    backward_.execute(stream_, {{DNNL_ARG_SRC, memory_at(desc_, in)},
                                {DNNL_ARG_DIFF_DST, memory_at(desc_, d_out)},
                                {DNNL_ARG_MEAN, memory_at(statistic_desc_, mean_.data())},
                                {DNNL_ARG_VARIANCE, memory_at(statistic_desc_, variance_.data())},
                                {DNNL_ARG_SCALE, memory_at(statistic_desc_, parameters)},
                                {DNNL_ARG_SHIFT, memory_at(statistic_desc_, parameters + padded_)},
                                {DNNL_ARG_DIFF_SRC, memory_at(desc_, d_in)},
                                {DNNL_ARG_DIFF_SCALE, memory_at(statistic_desc_, gradients)},
                                {DNNL_ARG_DIFF_SHIFT, memory_at(statistic_desc_, gradients + padded_)}});
  }

  void to_plain(std::size_t, const float* own, float* plain) const override {
    std::memcpy(plain, own, channels_ * sizeof(float));
  }
  void from_plain(std::size_t, const float* plain, float* own) const override {
    std::memset(own, 0, padded_ * sizeof(float));
    std::memcpy(own, plain, channels_ * sizeof(float));
  }

 private:
  std::string name_;
  int batch_;
  std::size_t channels_, padded_ = 0;
  dnnl::stream stream_;
  memory::desc desc_, statistic_desc_;
  dnnl::batch_normalization_forward forward_, inference_;
  dnnl::batch_normalization_backward backward_;
  std::vector<float> mean_, variance_, unused_;
};

}  // namespace

std::unique_ptr<Layer> make_batch_norm(const LayerPlace& place) { return std::make_unique<BatchNorm>(place); }

}  // namespace slipway::train
