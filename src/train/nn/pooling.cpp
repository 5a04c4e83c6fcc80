// Pooling and the way from pictures to rows, by oneDNN.
#include "train/nn/onednn.h"

namespace slipway::train {
namespace {

using dnnl::memory;
using dnnl::prop_kind;

class Pool final : public Layer {
 public:
  Pool(const LayerPlace& place, const LayerSpec& spec)
      : Layer({}), is_max_(spec.kind == LayerKind::max_pool), stream_(cpu_engine()) {
    in_desc_ = place.input.image->desc;
    const memory::dims in = in_desc_.dims();
    const auto places = [&](memory::dim side) { return (side - spec.kernel) / spec.stride + 1; };
    const memory::dims out = {in[0], in[1], places(in[2]), places(in[3])};
    const memory::dims window = {spec.kernel, spec.kernel}, stride = {spec.stride, spec.stride},
                       none = {0, 0};
    const auto algorithm =
        is_max_ ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
    const memory::desc any(out, memory::data_type::f32, memory::format_tag::any);
    const dnnl::pooling_forward::desc desc(
        place.training ? prop_kind::forward_training : prop_kind::forward_inference, algorithm, in_desc_, any,
        stride, window, none, none);
    const dnnl::pooling_forward::primitive_desc forward(desc, cpu_engine());
    out_desc_ = forward.dst_desc();
    forward_ = dnnl::pooling_forward(forward);
    if (place.training) {
      if (is_max_) workspace_ = memory(forward.workspace_desc(), cpu_engine());
      const dnnl::pooling_backward::desc back(algorithm, in_desc_, out_desc_, stride, window, none, none);
      backward_ = dnnl::pooling_backward(dnnl::pooling_backward::primitive_desc(back, cpu_engine(), forward));
    }
    const Shape shape{place.input.shape.channels, static_cast<int>(out[2]), static_cast<int>(out[3])};
    set_output({shape, out_desc_.get_size() / sizeof(float) / static_cast<std::size_t>(place.batch),
                std::make_shared<ImageLayout>(ImageLayout{out_desc_})});
  }

  void forward(const Pass&, const float*, const float* in, float* out, float*) override {
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, memory_at(in_desc_, in)},
                                                 {DNNL_ARG_DST, memory_at(out_desc_, out)}};
    if (workspace_) arguments.emplace(DNNL_ARG_WORKSPACE, workspace_);
    forward_.execute(stream_, arguments);
  }
  void backward(const Pass&, const float*, const float*, const float*, float* d_out, float* d_in,
                float*) override {
    if (d_in == nullptr) return;
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_DIFF_DST, memory_at(out_desc_, d_out)},
                                                 {DNNL_ARG_DIFF_SRC, memory_at(in_desc_, d_in)}};
    if (workspace_) arguments.emplace(DNNL_ARG_WORKSPACE, workspace_);
    backward_.execute(stream_, arguments);
  }

 private:
  bool is_max_;
  dnnl::stream stream_;
  memory::desc in_desc_, out_desc_;
  dnnl::pooling_forward forward_;
  dnnl::pooling_backward backward_;
  memory workspace_;  // where each maximum stood
};

// Plain rows keep the padded channels behind the real ones: a dense layer reads the first shape.size() floats
// of each row and never sees them.
class Flatten final : public Layer {
 public:
  explicit Flatten(const LayerPlace& place) : Layer({}), stream_(cpu_engine()) {
    in_desc_ = place.input.image->desc;
    const memory::dims in = in_desc_.dims();
    out_desc_ = plain_pictures(static_cast<int>(in[0]), static_cast<int>(in[1]), static_cast<int>(in[2]),
                               static_cast<int>(in[3]));
    there_ = dnnl::reorder({cpu_engine(), in_desc_, cpu_engine(), out_desc_});
    back_ = dnnl::reorder({cpu_engine(), out_desc_, cpu_engine(), in_desc_});
    set_output({place.input.shape, static_cast<std::size_t>(in[1] * in[2] * in[3]), nullptr});
  }

  void forward(const Pass&, const float*, const float* in, float* out, float*) override {
    memory from = memory_at(in_desc_, in), to = memory_at(out_desc_, out);
    there_.execute(stream_, from, to);
  }
  void backward(const Pass&, const float*, const float*, const float*, float* d_out, float* d_in,
                float*) override {
    if (d_in == nullptr) return;
    memory from = memory_at(out_desc_, d_out), to = memory_at(in_desc_, d_in);
    back_.execute(stream_, from, to);
  }

 private:
  dnnl::stream stream_;
  memory::desc in_desc_, out_desc_;
  dnnl::reorder there_, back_;
};

}  // namespace

std::unique_ptr<Layer> make_pool(const LayerPlace& place, const LayerSpec& spec) {
  return std::make_unique<Pool>(place, spec);
}
std::unique_ptr<Layer> make_flatten(const LayerPlace& place) { return std::make_unique<Flatten>(place); }

}  // namespace slipway::train
