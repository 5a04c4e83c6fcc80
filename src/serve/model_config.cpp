#include "serve/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "serve/text_proto.h"

namespace slipway::serve {
namespace {

bool is_label(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

Result<VersionPolicy> parse_policy(const TextField& field, const std::string& file) {
  const TextReader reader(field.message, "model_version_policy", file);
  if (auto known = reader.only({"latest", "all", "specific"}); !known) return fail(known.error());
  if (field.message.fields.empty()) return VersionPolicy(LatestPolicy{});
  const TextField& choice = field.message.fields.back();
  const TextReader inner(choice.message, choice.name, file);
  if (choice.name == "all") return VersionPolicy(AllPolicy{});
  if (choice.name == "latest") {
    LatestPolicy latest;
    if (auto known = inner.only({"num_versions"}); !known) return fail(known.error());
    if (auto read = inner.read("num_versions", latest.count); !read) return fail(read.error());
    latest.count = std::max<std::int64_t>(latest.count, 1);
    return VersionPolicy(latest);
  }
  if (auto known = inner.only({"versions"}); !known) return fail(known.error());
  auto versions = inner.integers("versions");
  if (!versions) return fail(versions.error());
  return VersionPolicy(SpecificPolicy{std::move(*versions)});
}

Result<void> read_label(const TextField& field, const std::string& file,
                        std::map<std::string, std::int64_t>& labels) {
  const TextReader reader(field.message, "version_labels", file);
  if (auto known = reader.only({"key", "value"}); !known) return known;
  std::string key;
  std::int64_t value = 0;
  if (auto read = reader.read("key", key); !read) return read;
  if (auto read = reader.read("value", value); !read) return read;
  if (!is_label(key))
    return reader.problem(field, fmt::format("`{}` is no label: letters, digits and _", key));
  labels[key] = value;
  return {};
}

Result<ModelConfig> parse_model(const TextField& field, const std::string& file) {
  const TextReader reader(field.message, "config", file);
  ModelConfig model;
  std::int64_t type = 0;
  // model_type is older than model_platform; logging_config asks for request logs, which there are none of.
  if (auto known = reader.only({"name", "base_path", "model_type", "model_platform", "model_version_policy",
                                "version_labels", "logging_config"});
      !known)
    return fail(known.error());
  if (auto read = reader.read("name", model.name); !read) return fail(read.error());
  if (auto read = reader.read("base_path", model.base_path); !read) return fail(read.error());
  if (auto read = reader.read("model_platform", model.platform); !read) return fail(read.error());
  if (const TextField* old = reader.last("model_type"); old != nullptr && old->scalar != "TENSORFLOW")
    if (auto read = reader.read("model_type", type); !read) return fail(read.error());
  if (const TextField* policy = reader.last("model_version_policy")) {
    auto parsed = parse_policy(*policy, file);
    if (!parsed) return fail(parsed.error());
    model.policy = std::move(*parsed);
  }
  for (const TextField* label : reader.all("version_labels"))
    if (auto read = read_label(*label, file, model.labels); !read) return fail(read.error());
  return model;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte >= 0x7F)
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

Result<ServerConfig> parse_server_config(std::string_view text, const std::string& file) {
  const auto message = parse_text_proto(text, file);
  if (!message) return fail(message.error());
  const TextReader top(*message, "the model config", file);
  if (auto known = top.only({"model_config_list"}); !known) return fail(known.error());
  ServerConfig config;
  for (const TextField* list : top.all("model_config_list")) {
    const TextReader reader(list->message, "model_config_list", file);
    if (auto known = reader.only({"config"}); !known) return fail(known.error());
    for (const TextField* field : reader.all("config")) {
      auto model = parse_model(*field, file);
      if (!model) return fail(model.error());
      config.models.push_back(std::move(*model));
    }
  }
  if (auto checked = check_server_config(config); !checked)
    return fail(checked.error().code, fmt::format("{}: {}", file, checked.error().what),
                checked.error().hint);
  return config;
}

Result<void> check_server_config(const ServerConfig& config) {
  std::set<std::string> names;
  for (const ModelConfig& model : config.models) {
    if (model.name.empty())
      return fail(ErrorCode::invalid, "a model has no name", "each config needs name and base_path");
    if (model.name.find_first_of("/:") != std::string::npos)
      return fail(ErrorCode::invalid, fmt::format("the model name {} has a / or :", model.name),
                  "addresses are made of it; choose a name without");
    if (!names.insert(model.name).second)
      return fail(ErrorCode::invalid, fmt::format("two models are called {}", model.name),
                  "give each a name of its own");
    if (model.base_path.empty())
      return fail(ErrorCode::invalid, fmt::format("the model {} has no base_path", model.name),
                  "name the folder that holds its version folders (1, 2, …)");
  }
  return {};
}

std::string format_server_config(const ServerConfig& config) {
  std::string text = "model_config_list {\n";
  for (const ModelConfig& model : config.models) {
    text += fmt::format("  config {{ name: {} base_path: {}", quoted(model.name), quoted(model.base_path));
    if (!model.platform.empty()) text += fmt::format(" model_platform: {}", quoted(model.platform));
    if (const auto* latest = std::get_if<LatestPolicy>(&model.policy))
      text += fmt::format(" model_version_policy {{ latest {{ num_versions: {} }} }}", latest->count);
    if (std::holds_alternative<AllPolicy>(model.policy)) text += " model_version_policy { all {} }";
    if (const auto* specific = std::get_if<SpecificPolicy>(&model.policy)) {
      text += " model_version_policy { specific {";
      for (const std::int64_t version : specific->versions) text += fmt::format(" versions: {}", version);
      text += " } }";
    }
    for (const auto& [label, version] : model.labels)
      text += fmt::format(" version_labels {{ key: {} value: {} }}", quoted(label), version);
    text += " }\n";
  }
  return text + "}\n";
}

Result<BatchingParameters> parse_batching_parameters(std::string_view text, const std::string& file) {
  const auto message = parse_text_proto(text, file);
  if (!message) return fail(message.error());
  const TextReader reader(*message, "the batching parameters", file);
  BatchingParameters parameters;
  std::int64_t timeout = parameters.timeout.count();
  const std::pair<const char*, std::int64_t*> numbers[] = {
      {"max_batch_size", &parameters.max_batch_size},
      {"batch_timeout_micros", &timeout},
      {"max_enqueued_batches", &parameters.max_enqueued_batches},
      {"num_batch_threads", &parameters.threads},
      {"max_execution_batch_size", &parameters.max_execution_batch_size},
  };
  if (auto known =
          reader.only({"max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads",
                       "max_execution_batch_size", "thread_pool_name", "allowed_batch_sizes",
                       "pad_variable_length_inputs", "enable_large_batch_splitting"});
      !known)
    return fail(known.error());
  for (const auto& [name, to] : numbers)
    if (auto read = reader.read_wrapped(name, *to); !read) return fail(read.error());
  parameters.timeout = Duration(timeout);
  if (auto read = reader.read("pad_variable_length_inputs", parameters.pads_variable_lengths); !read)
    return fail(read.error());
  if (const TextField* split = reader.last("enable_large_batch_splitting")) {
    const TextMessage own{{*split}};
    const TextReader inner(split->is_message ? split->message : own, "enable_large_batch_splitting", file);
    const char* key = split->is_message ? "value" : "enable_large_batch_splitting";
    if (auto read = inner.read(key, parameters.splits_large_batches); !read) return fail(read.error());
  }
  auto sizes = reader.integers("allowed_batch_sizes");
  if (!sizes) return fail(sizes.error());
  parameters.allowed_batch_sizes = std::move(*sizes);
  if (auto checked = check(parameters); !checked)
    return fail(checked.error().code, fmt::format("{}: {}", file, checked.error().what),
                checked.error().hint);
  return parameters;
}

Result<Monitoring> parse_monitoring(std::string_view text, const std::string& file) {
  const auto message = parse_text_proto(text, file);
  if (!message) return fail(message.error());
  const TextReader reader(*message, "the monitoring config", file);
  Monitoring monitoring;
  if (auto known = reader.only({"prometheus_config"}); !known) return fail(known.error());
  const TextField* prometheus = reader.last("prometheus_config");
  if (prometheus == nullptr) return monitoring;
  const TextReader inner(prometheus->message, "prometheus_config", file);
  if (auto known = inner.only({"enable", "path"}); !known) return fail(known.error());
  if (auto read = inner.read("enable", monitoring.is_enabled); !read) return fail(read.error());
  if (auto read = inner.read("path", monitoring.path); !read) return fail(read.error());
  if (!monitoring.path.starts_with('/'))
    return inner.problem(*prometheus, "has a path that does not begin with /");
  return monitoring;
}

}  // namespace slipway::serve
