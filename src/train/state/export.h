#pragma once
// A trained model in forms other programs read.
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "train/nn/layer.h"
#include "train/nn/model.h"

namespace slipway::train {

// ONNX (opset 13): input `input` [N, channels, height, width] of floats in 0..1, output `output` [N,
// classes]: probabilities for a cross-entropy model. Dropout is left out, batch_norm uses its running values.
std::string to_onnx(const ModelSpec& model, const std::vector<Parameter>& parameters,
                    std::span<const float> plain);

// NumPy's .npz: one array per parameter under its name, uncompressed, so that np.load can map it.
std::string to_npz(const std::vector<Parameter>& parameters, std::span<const float> plain);

}  // namespace slipway::train
