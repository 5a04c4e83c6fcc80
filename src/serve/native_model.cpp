#include "serve/native_model.h"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

#include "train/nn/network.h"
#include "train/state/checkpoint.h"

namespace slipway::serve {
namespace {

// A batch is run by the smallest network that holds it; beyond 16 rows larger batches gain nothing more. The
// first network is there at once, and single rows go through it until the others are warmed up.
constexpr std::array<int, 4> network_sizes = {1, 1, 8, 32};
constexpr std::size_t quick = 0;

struct Instance {
  train::Network network;
  std::shared_ptr<const train::Flat> values;
};

double work_of(const train::ModelSpec& model, int classes) {
  const auto shapes = train::check_model(model, classes);
  if (!shapes) return 0;
  double work = 0;
  train::Shape in = model.input;
  for (std::size_t i = 0; i < shapes->size(); ++i) {
    const train::LayerSpec& layer = model.layers[i];
    const double out = (*shapes)[i].size();
    if (layer.kind == train::LayerKind::dense)
      work += out * in.size();
    else if (layer.kind == train::LayerKind::conv)
      work += out * layer.kernel * layer.kernel * in.channels;
    else
      work += out;
    in = (*shapes)[i];
  }
  return work;
}

class NativeModel final : public Model {
 public:
  static Answer<std::shared_ptr<const Model>> load(const std::string& path) {
    auto stored = train::read_checkpoint(path);
    if (!stored) return refuse(Code::invalid_argument, stored.error().what);
    if (stored->info.shards > 1)
      return invalid(
          fmt::format("{} is one of {} parts that parameter servers keep; serve the model.slipway that "
                      "the chief stored",
                      path, stored->info.shards));
    auto spec = train::parse_model(stored->info.model, path);
    if (!spec) return invalid(spec.error().what);
    auto model =
        std::make_shared<NativeModel>(std::move(*spec), stored->info.classes, std::move(stored->values));
    if (auto warmed = model->warm(quick); !warmed)
      return invalid(fmt::format("{}: {}", path, warmed.error().message));
    return model;
  }

  NativeModel(train::ModelSpec spec, int classes, std::vector<float> plain)
      : spec_(std::move(spec)),
        classes_(classes),
        row_size_(static_cast<std::size_t>(spec_.input.size())),
        work_(work_of(spec_, classes)),
        plain_(std::move(plain)) {
    make_signatures();
  }

  const std::map<std::string, Signature, std::less<>>& signatures() const override { return signatures_; }
  void warm_up() const override {
    for (std::size_t which = quick + 1; which < network_sizes.size(); ++which)
      if (auto warmed = warm(which); !warmed) return;  // the request that needs it is told why
    const std::lock_guard lock(mutex_);
    plain_ = {};  // every layout has its own copy by now
    idle_[quick].clear();
    is_warm_ = true;
  }
  double work_per_row() const override { return work_; }
  std::string platform() const override { return "slipway_native"; }

  Answer<Tensors> run(const std::string& name, const Tensors& inputs) const override {
    const Tensor& input = inputs.begin()->second;
    if (input.type != DataType::float32) return invalid("the model takes floats");
    if (input.shape.empty()) return invalid("the input is a single value; the model takes a list of rows");
    const auto rows = static_cast<std::size_t>(input.shape[0]);
    if (input.count() != rows * row_size_)
      return invalid(fmt::format("input of shape {} has {} values in each row, and the model takes {} ({})",
                                 format_shape(input.shape), rows == 0 ? 0 : input.count() / rows, row_size_,
                                 train::to_string(spec_.input)));
    const auto classes = static_cast<std::size_t>(classes_);
    Tensor output{DataType::float32, {input.shape[0], classes_}, {}, {}};
    output.bytes.resize(rows * classes * sizeof(float));
    if (auto ran = predict(input.values<float>().data(), rows, output.values<float>().data()); !ran)
      return refuse(ran.error());
    // y = f(x) of numbers: what came as a list of numbers goes as one.
    if (row_size_ == 1 && classes_ == 1 && input.shape.size() == 1) output.shape.pop_back();
    return named(name, std::move(output));
  }

 private:
  void make_signatures() {
    Shape in = {-1, spec_.input.channels};
    if (spec_.input.height * spec_.input.width > 1)
      in.insert(in.end(), {spec_.input.height, spec_.input.width});
    const TensorSpec input{"input:0", DataType::float32, in, false};
    const TensorSpec output{"output:0", DataType::float32, {-1, classes_}, false};
    signatures_[default_signature] = {Method::predict, {{"input", input}}, {{"output", output}}};
    if (spec_.loss == train::Loss::cross_entropy)
      signatures_["classify"] = {
          Method::classify,
          {{"input", input}},
          {{"classes", {"classes:0", DataType::string, {-1, classes_}, false}}, {"scores", output}}};
    else if (classes_ == 1)
      signatures_["regress"] = {Method::regress, {{"input", input}}, {{"outputs", output}}};
  }

  Tensors named(const std::string& signature, Tensor output) const {
    Tensors outputs;
    if (signature == "classify") {
      Tensor labels{DataType::string, output.shape, {}, {}};
      for (std::int64_t row = 0; row < output.shape[0]; ++row)
        for (int i = 0; i < classes_; ++i) labels.strings.push_back(fmt::format("{}", i));
      outputs.emplace("classes", std::move(labels));
      outputs.emplace("scores", std::move(output));
    } else {
      outputs.emplace(signature == "regress" ? "outputs" : "output", std::move(output));
    }
    return outputs;
  }

  Answer<void> predict(const float* samples, std::size_t rows, float* outputs) const {
    std::size_t which = rows == 1 && !is_warm_ ? quick : quick + 1;
    while (which + 1 < network_sizes.size() && rows > static_cast<std::size_t>(network_sizes[which])) ++which;
    auto instance = take(which);
    if (!instance) return refuse(instance.error());
    instance->network.predict(samples, rows, *instance->values, outputs);
    give(which, std::move(*instance));
    return {};
  }

  Answer<void> warm(std::size_t which) const {
    auto instance = take(which);
    if (!instance) return refuse(instance.error());
    const auto rows = static_cast<std::size_t>(network_sizes[which]);
    const std::vector<float> samples(rows * row_size_);
    std::vector<float> outputs(rows * static_cast<std::size_t>(classes_));
    instance->network.predict(samples.data(), rows, *instance->values, outputs.data());
    give(which, std::move(*instance));
    return {};
  }

  // Networks are not thread-safe: each is lent to one thread, and more are built when several run at once.
  Answer<Instance> take(std::size_t which) const {
    {
      const std::lock_guard lock(mutex_);
      auto& idle = idle_[which];
      if (!idle.empty()) {
        Instance instance = std::move(idle.back());
        idle.pop_back();
        return instance;
      }
    }
    return build(which);
  }
  void give(std::size_t which, Instance instance) const {
    const std::lock_guard lock(mutex_);
    idle_[which].push_back(std::move(instance));
  }

  Answer<Instance> build(std::size_t which) const {
    auto network =
        train::Network::build(spec_, classes_, {network_sizes[which], false, 1, false, which == quick});
    if (!network) return refuse(Code::internal, network.error().what);
    const std::lock_guard lock(mutex_);
    if (!values_[which]) {
      if (network->plain_floats() != plain_.size())
        return refuse(Code::invalid_argument, fmt::format("it has {} values and its model {}", plain_.size(),
                                                          network->plain_floats()));
      values_[which] = laid_out(*network);
    }
    return Instance{std::move(*network), values_[which]};
  }

  // Networks of several sizes mostly lay parameters out alike, and then share them.
  std::shared_ptr<const train::Flat> laid_out(const train::Network& network) const {
    train::Flat values(network.floats());
    network.from_plain(plain_, values);
    for (const auto& other : values_)
      if (other && *other == values) return other;
    return std::make_shared<const train::Flat>(std::move(values));
  }

  train::ModelSpec spec_;
  int classes_;
  std::size_t row_size_;
  double work_;
  std::map<std::string, Signature, std::less<>> signatures_;
  mutable std::atomic<bool> is_warm_ = false;
  mutable std::mutex mutex_;
  mutable std::vector<float> plain_;  // guarded by mutex_; empty once every layout is made
  mutable std::array<std::vector<Instance>, network_sizes.size()> idle_;                 // guarded by mutex_
  mutable std::array<std::shared_ptr<const train::Flat>, network_sizes.size()> values_;  // guarded by mutex_
};

}  // namespace

Answer<std::shared_ptr<const Model>> load_native_model(const std::string& path) {
  return NativeModel::load(path);
}

}  // namespace slipway::serve
