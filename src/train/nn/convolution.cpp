// Convolutions by oneDNN; Winograd where it has it (algorithm auto).
//
// Filters are padded to a multiple of 16: with any other number of channels oneDNN falls back to its
// reference loop, a hundred times slower. Padded filters and channels have zero weights and, since nothing
// downstream reads them, zero gradients.
#include <fmt/format.h>

#include <cstring>

#include "base/log.h"
#include "train/nn/onednn.h"

namespace slipway::train {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

memory::desc any(const memory::dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

class Conv final : public Layer {
 public:
  Conv(const LayerPlace& place, const LayerSpec& spec)
      : Layer({}),
        name_(place.name),
        spec_(spec),
        channels_(place.input.shape.channels),
        stream_(cpu_engine()) {
    const memory::desc source = place.input.image->desc;
    in_desc_ = source;
    const auto source_dims = source.dims();
    padded_channels_ = static_cast<int>(source_dims[1]);
    padded_filters_ = static_cast<int>(round_up_16(static_cast<std::size_t>(spec.units)));
    const auto places = [&](memory::dim side) {
      return (side + 2 * spec.padding - spec.kernel) / spec.stride + 1;
    };
    const memory::dims out = {place.batch, padded_filters_, places(source_dims[2]), places(source_dims[3])};
    const memory::dims window = {padded_filters_, padded_channels_, spec.kernel, spec.kernel};
    const memory::dims stride = {spec.stride, spec.stride}, pad = {spec.padding, spec.padding};
    bias_desc_ = memory::desc({padded_filters_}, memory::data_type::f32, memory::format_tag::x);

    const dnnl::convolution_forward::desc forward_desc(prop_kind::forward_training,
                                                       algorithm::convolution_auto, source, any(window),
                                                       bias_desc_, any(out), stride, pad, pad);
    const dnnl::convolution_forward::primitive_desc forward(forward_desc, cpu_engine());
    weights_desc_ = forward.weights_desc();
    out_desc_ = forward.dst_desc();
    forward_ = dnnl::convolution_forward(forward);
    log::debug("conv.chosen", {{"layer", name_}, {"forward", forward.impl_info_str()}});

    if (place.training) {
      const dnnl::convolution_backward_weights::desc weights_desc(
          algorithm::convolution_auto, source, any(window), bias_desc_, out_desc_, stride, pad, pad);
      const dnnl::convolution_backward_weights::primitive_desc by_weights(weights_desc, cpu_engine(),
                                                                          forward);
      weights_gradient_desc_ = by_weights.diff_weights_desc();
      by_weights_ = dnnl::convolution_backward_weights(by_weights);
      const dnnl::convolution_backward_data::desc data_desc(algorithm::convolution_auto, source, any(window),
                                                            out_desc_, stride, pad, pad);
      const dnnl::convolution_backward_data::primitive_desc by_data(data_desc, cpu_engine(), forward);
      data_weights_desc_ = by_data.weights_desc();
      by_data_ = dnnl::convolution_backward_data(by_data);
      if (weights_gradient_desc_ != weights_desc_)
        weights_gradient_ = memory(weights_gradient_desc_, cpu_engine());
      if (data_weights_desc_ != weights_desc_) data_weights_ = memory(data_weights_desc_, cpu_engine());
    }
    const Shape shape{spec.units, static_cast<int>(out[2]), static_cast<int>(out[3])};
    set_output({shape, out_desc_.get_size() / sizeof(float) / static_cast<std::size_t>(place.batch),
                std::make_shared<ImageLayout>(ImageLayout{out_desc_})});
  }

  std::vector<Parameter> parameters() const override {
    const int fan_in = channels_ * spec_.kernel * spec_.kernel;
    return {{name_ + ".weight",
             {spec_.units, channels_, spec_.kernel, spec_.kernel},
             weight_floats(),
             Parameter::Kind::weight,
             fan_in},
            {name_ + ".bias",
             {spec_.units},
             static_cast<std::size_t>(padded_filters_),
             Parameter::Kind::bias,
             fan_in}};
  }

  void forward(const Pass&, const float* parameters, const float* in, float* out, float*) override {
    forward_.execute(stream_, {{DNNL_ARG_SRC, memory_at(in_desc_, in)},
                               {DNNL_ARG_WEIGHTS, memory_at(weights_desc_, parameters)},
                               {DNNL_ARG_BIAS, memory_at(bias_desc_, parameters + weight_floats())},
                               {DNNL_ARG_DST, memory_at(out_desc_, out)}});
  }

  void backward(const Pass&, const float* parameters, const float* in, const float*, float* d_out,
                float* d_in, float* gradients) override {
    const bool direct = !weights_gradient_;
    memory weights = direct ? memory_at(weights_desc_, gradients) : weights_gradient_;
    by_weights_.execute(stream_, {{DNNL_ARG_SRC, memory_at(in_desc_, in)},
                                  {DNNL_ARG_DIFF_DST, memory_at(out_desc_, d_out)},
                                  {DNNL_ARG_DIFF_WEIGHTS, weights},
                                  {DNNL_ARG_DIFF_BIAS, memory_at(bias_desc_, gradients + weight_floats())}});
    if (!direct) reorder(weights_gradient_, memory_at(weights_desc_, gradients));
    if (d_in == nullptr) return;
    memory current = memory_at(weights_desc_, parameters);
    if (data_weights_) {
      reorder(current, data_weights_);
      current = data_weights_;
    }
    by_data_.execute(stream_, {{DNNL_ARG_DIFF_DST, memory_at(out_desc_, d_out)},
                               {DNNL_ARG_WEIGHTS, current},
                               {DNNL_ARG_DIFF_SRC, memory_at(in_desc_, d_in)}});
  }

  void to_plain(std::size_t which, const float* own, float* plain) const override {
    if (which == 1) {
      std::memcpy(plain, own, static_cast<std::size_t>(spec_.units) * sizeof(float));
      return;
    }
    std::vector<float> padded(padded_plain_floats());
    translate(memory_at(weights_desc_, own), memory_at(plain_desc(), padded.data()));
    copy_window(padded.data(), plain, false);
  }
  void from_plain(std::size_t which, const float* plain, float* own) const override {
    if (which == 1) {
      std::memset(own, 0, static_cast<std::size_t>(padded_filters_) * sizeof(float));
      std::memcpy(own, plain, static_cast<std::size_t>(spec_.units) * sizeof(float));
      return;
    }
    std::vector<float> padded(padded_plain_floats(), 0.0F);
    copy_window(padded.data(), const_cast<float*>(plain), true);
    translate(memory_at(plain_desc(), padded.data()), memory_at(weights_desc_, own));
  }

 private:
  std::size_t weight_floats() const { return round_up_16(weights_desc_.get_size() / sizeof(float)); }
  std::size_t padded_plain_floats() const {
    return static_cast<std::size_t>(padded_filters_ * padded_channels_ * spec_.kernel * spec_.kernel);
  }
  memory::desc plain_desc() const {
    return {{padded_filters_, padded_channels_, spec_.kernel, spec_.kernel},
            memory::data_type::f32,
            memory::format_tag::oihw};
  }
  // Between filters x channels with padding and without.
  void copy_window(float* padded, float* plain, bool into_padded) const {
    const auto window = static_cast<std::size_t>(spec_.kernel * spec_.kernel);
    const std::size_t row = static_cast<std::size_t>(channels_) * window;
    for (std::size_t f = 0; f < static_cast<std::size_t>(spec_.units); ++f) {
      float* wide = padded + f * static_cast<std::size_t>(padded_channels_) * window;
      float* narrow = plain + f * row;
      std::memcpy(into_padded ? wide : narrow, into_padded ? narrow : wide, row * sizeof(float));
    }
  }
  void reorder(memory from, memory to) { dnnl::reorder(from, to).execute(stream_, from, to); }
  // As reorder, but callable beside training from the checkpoint's thread, on a stream of its own.
  static void translate(memory from, memory to) {
    dnnl::stream stream(cpu_engine());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  std::string name_;
  LayerSpec spec_;
  int channels_, padded_channels_ = 0, padded_filters_ = 0;
  dnnl::stream stream_;
  memory::desc in_desc_, out_desc_, weights_desc_, bias_desc_, weights_gradient_desc_, data_weights_desc_;
  dnnl::convolution_forward forward_;
  dnnl::convolution_backward_weights by_weights_;
  dnnl::convolution_backward_data by_data_;
  memory weights_gradient_, data_weights_;  // only where the backward pass wants another layout
};

}  // namespace

std::unique_ptr<Layer> make_conv(const LayerPlace& place, const LayerSpec& spec) {
  return std::make_unique<Conv>(place, spec);
}

Port picture_port(int batch, const Shape& shape) {
  const auto desc = plain_pictures(batch, shape.channels, shape.height, shape.width);
  return {shape, static_cast<std::size_t>(shape.size()), std::make_shared<ImageLayout>(ImageLayout{desc})};
}

}  // namespace slipway::train
