#pragma once
// A network ready to run on batches of one size: forward, loss, backward, over flat arrays of floats.
//
// Not thread-safe; each worker thread has its own. Everything is allocated when it is built. One Network for
// training and one for evaluation may differ in their inner layouts: exchange parameters through
// to_plain/from_plain.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "train/data/dataset.h"
#include "train/nn/aligned.h"
#include "train/nn/layer.h"
#include "train/nn/model.h"
#include "train/nn/sparse_store.h"

namespace slipway::train {

struct NetworkOptions {
  int batch = 100;
  bool training = true;
  int threads = 1;
  bool augment = false;  // flip and shift pictures of three channels at random while training
  // Nothing that makes oneDNN write code first, tens of milliseconds long, where our own product can do it.
  bool starts_quickly = false;
};

struct BatchResult {
  double loss = 0;  // summed over the batch
  std::size_t correct = 0;
};

class Network {
 public:
  static Result<Network> build(const ModelSpec& model, int classes, NetworkOptions options);
  Network(Network&&) noexcept;
  Network& operator=(Network&&) noexcept;
  ~Network();

  int batch() const;
  const ModelSpec& model() const;
  // In the order they have in the flat array.
  const std::vector<Parameter>& parameters() const;
  std::size_t floats() const;        // of the flat array, padding included, a multiple of 16
  std::size_t plain_floats() const;  // what a user would count
  // Equal where flat arrays mean the same: model, padding and inner layouts.
  std::uint64_t layout_fingerprint() const;

  // Starting values, the same for a seed on every machine.
  void initialise(std::uint64_t seed, std::span<float> values) const;

  // Forward and backward over the samples `indices` of `data` (exactly batch() of them); `gradients` gets the
  // sum over the batch of every parameter's gradient. `key` must differ per step and worker. Both arrays
  // begin on a cache line (see aligned.h).
  BatchResult train(const Dataset& data, std::span<const std::uint32_t> indices, std::uint64_t key,
                    std::span<const float> values, std::span<float> gradients);
  // Does ahead what the next train() of these samples needs besides values; of others it is done again.
  void prepare(const Dataset& data, std::span<const std::uint32_t> indices);
  // Forward and loss only, over samples first, first+1, … (at most batch(); fewer at the end of the data).
  BatchResult evaluate(const Dataset& data, std::size_t first, std::size_t count,
                       std::span<const float> values);
  // The outputs (logits, or softmax of them for cross entropy) for `count` samples of floats in 0..1.
  void predict(const float* samples, std::size_t count, std::span<const float> values, float* outputs);

  // All parameters one after another without padding: what files hold.
  void to_plain(std::span<const float> own, std::span<float> plain) const;
  void from_plain(std::span<const float> plain, std::span<float> own) const;

 private:
  struct State;
  explicit Network(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Accuracy and mean loss over a whole set, with a network built for evaluation.
struct Evaluation {
  double accuracy = 0;
  double loss = 0;
};
Evaluation evaluate(Network& network, const Dataset& data, std::span<const float> values);

}  // namespace slipway::train
