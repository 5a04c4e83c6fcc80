#pragma once
// oneDNN as the layers use it: one engine, and pictures as its memory descriptions. For nn/*.cpp alone.
#include <oneapi/dnnl/dnnl.hpp>

#include "train/nn/layer.h"

namespace slipway::train {

struct ImageLayout {
  dnnl::memory::desc desc;  // batch x padded channels x height x width
};

inline dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// oneDNN wants mutable handles even for what it only reads.
inline dnnl::memory memory_at(const dnnl::memory::desc& desc, const float* data) {
  return {desc, cpu_engine(), const_cast<float*>(data)};
}

inline dnnl::memory::desc plain_pictures(int batch, int channels, int height, int width) {
  return {{batch, channels, height, width}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nchw};
}

}  // namespace slipway::train
