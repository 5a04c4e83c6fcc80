#pragma once
// The same arithmetic as plain loops in double precision: what the fast versions are compared with.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/nn/model.h"
#include "train/nn/optimizer.h"

namespace slipway::train {

using Doubles = std::vector<double>;

// A whole model, forward, on one batch of plain samples; `parameters` as files hold them (Network::to_plain).
// Dropout is left out; batch_norm uses the batch when `training`, else the running values.
Doubles forward_reference(const ModelSpec& model, const Doubles& parameters, const Doubles& samples,
                          int batch, bool training);
// Summed loss of outputs (logits) against labels.
double loss_reference(Loss loss, const Doubles& outputs, const std::vector<int>& labels);

Doubles dense_reference(const Doubles& x, const double* weight, const double* bias, int batch, int inputs,
                        int units);
Doubles conv_reference(const Doubles& x, const double* weight, const double* bias, int batch, const Shape& in,
                       const LayerSpec& spec);
Doubles pool_reference(const Doubles& x, int batch, const Shape& in, const LayerSpec& spec);
Doubles batch_norm_reference(const Doubles& x, const double* parameters, int batch, const Shape& in,
                             bool training);

// One step of an optimizer over plain arrays; `state` as Optimizer keeps it.
void optimizer_reference(const OptimizerSpec& spec, std::uint64_t step, double scale, Doubles& values,
                         const Doubles& gradients, Doubles& state);

}  // namespace slipway::train
