// Models from names and files: what a run trains, and what it stored.
#include <fmt/format.h>

#include "base/file.h"
#include "train/run/trainer.h"

namespace slipway::train {

Result<ModelSpec> choose_model(const Options& options, const Dataset& data) {
  const std::string& name = options.model;
  if (!name.ends_with(".yaml") && !name.ends_with(".yml"))
    return built_in_model(name, {.input = data.shape(),
                                 .classes = data.classes(),
                                 .hidden = options.hidden,
                                 .dropout = options.dropout ? static_cast<float>(*options.dropout) : -1.0F});
  const auto text = read_file(name);
  if (!text) return fail(text.error());
  auto model = parse_model(*text, name);
  if (!model) return model;
  if (model->input == Shape{}) model->input = data.shape();
  if (model->input != data.shape())
    return fail(ErrorCode::invalid,
                fmt::format("{} expects pictures of {} and the data has {}", name, to_string(model->input),
                            to_string(data.shape())),
                "leave `input` out to take the data's shape");
  return model;
}

Result<StoredModel> load_model(const std::string& path, int batch) {
  auto stored = read_checkpoint(path);
  if (!stored) return fail(stored.error());
  if (stored->info.shards > 1)
    return fail(ErrorCode::invalid,
                fmt::format("{} is one of {} parts that parameter servers keep", path, stored->info.shards),
                "use the model.slipway that the chief stored with --output");
  auto model = parse_model(stored->info.model, path);
  if (!model) return fail(model.error());
  auto network = Network::build(*model, stored->info.classes, {batch, false, 1, false});
  if (!network) return fail(network.error());
  if (network->plain_floats() != stored->values.size())
    return fail(ErrorCode::invalid, fmt::format("{} has {} values and its model {}", path,
                                                stored->values.size(), network->plain_floats()));
  Flat values(network->floats());
  network->from_plain(stored->values, values);
  return StoredModel{stored->info, std::move(*model), std::move(*network), std::move(values),
                     std::move(stored->values)};
}

}  // namespace slipway::train
