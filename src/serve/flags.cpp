#include "serve/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "base/quantity.h"
#include "base/suggest.h"

namespace slipway::serve {
namespace {

struct Flag {
  const char* name;  // with _
  bool is_switch;
  std::function<bool(const std::string&, Flags&)> set;  // false: no such value
  const char* takes;                                    // for the message
};

template <class T>
bool to_number(const std::string& text, T& to, T least, T most) {
  T value{};
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return false;
  if (value < least || value > most) return false;
  to = value;
  return true;
}

bool to_switch(const std::string& text, bool& to) {
  const bool is_on = text == "true" || text == "1" || text == "t" || text == "yes";
  const bool is_off = text == "false" || text == "0" || text == "f" || text == "no";
  if (is_on || is_off) to = is_on;
  return is_on || is_off;
}

Flag text(const char* name, std::string Flags::*field) {
  return {name, false, [=](const std::string& value, Flags& flags) { return flags.*field = value, true; },
          "a text"};
}
Flag number(const char* name, int Flags::*field, int least, int most, const char* takes) {
  return {name, false,
          [=](const std::string& value, Flags& flags) { return to_number(value, flags.*field, least, most); },
          takes};
}
Flag on_off(const char* name, bool Flags::*field) {
  return {name, true, [=](const std::string& value, Flags& flags) { return to_switch(value, flags.*field); },
          "true or false"};
}
// A time in a unit of `unit` microseconds.
Flag time(const char* name, Duration Flags::*field, std::int64_t unit, const char* takes) {
  return {name, false,
          [=](const std::string& value, Flags& flags) {
            double amount = 0;
            if (!to_number(value, amount, 0.0, 1e12 / static_cast<double>(unit))) return false;
            flags.*field = Duration(static_cast<std::int64_t>(amount * static_cast<double>(unit)));
            return true;
          },
          takes};
}

bool add_model(const std::string& value, Flags& flags) {
  const std::size_t equals = value.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == value.size()) return false;
  flags.models.models.push_back({value.substr(0, equals), value.substr(equals + 1), "", LatestPolicy{}, {}});
  return true;
}

bool set_body_max(const std::string& value, Flags& flags) {
  const auto bytes = parse_bytes(value);
  if (!bytes || *bytes == 0 || *bytes > (Bytes{2} << 30)) return false;
  flags.body_max = *bytes;
  return true;
}

const std::vector<Flag>& table() {
  static const std::vector<Flag> flags = {
      {"model", false, add_model, "NAME=FOLDER"},
      text("listen", &Flags::address),
      number("rest_port", &Flags::rest_port, -1, 65535, "a port, or -1 for none"),
      number("grpc_port", &Flags::grpc_port, -1, 65535, "a port, or -1 for none"),
      {"port", false,
       [](const std::string& value, Flags& to) {
         if (!to_number(value, to.grpc_port, 0, 65535)) return false;
         if (to.grpc_port == 0) to.grpc_port = -1;  // as for rest_api_port
         return true;
       },
       "a port"},
      {"rest_api_port", false,
       [](const std::string& value, Flags& to) {
         if (!to_number(value, to.rest_port, 0, 65535)) return false;
         if (to.rest_port == 0) to.rest_port = -1;  // there 0 means off
         return true;
       },
       "a port"},
      time("rest_api_timeout_in_ms", &Flags::rest_timeout, 1000, "milliseconds"),
      on_off("rest_api_enable_cors_support", &Flags::rest_cors),
      number("rest_api_num_threads", &Flags::threads, 0, 1024, "a number of threads"),
      number("threads", &Flags::threads, 0, 1024, "a number of threads"),
      {"body_max", false, set_body_max, "a size up to 2GiB, such as 64MiB"},
      text("model_config_file", &Flags::model_config_file),
      time("model_config_file_poll_wait_seconds", &Flags::model_config_poll, 1'000'000, "seconds"),
      time("file_system_poll_wait_seconds", &Flags::folder_poll, 1'000'000, "seconds"),
      {"max_num_load_retries", false,
       [](const std::string& value, Flags& to) {
         return to_number(value, to.retry.retries_max, 0, 1'000'000);
       },
       "a number"},
      {"load_retry_interval_micros", false,
       [](const std::string& value, Flags& to) {
         std::int64_t micros = 0;
         if (!to_number<std::int64_t>(value, micros, 0, 1'000'000'000'000)) return false;
         to.retry.interval = Duration(micros);
         return true;
       },
       "microseconds"},
      on_off("allow_version_labels_for_unavailable_models", &Flags::allows_labels_for_unavailable),
      on_off("enable_batching", &Flags::is_batching),
      text("batching_parameters_file", &Flags::batching_parameters_file),
      text("monitoring_config_file", &Flags::monitoring_config_file),
      text("ssl_config_file", &Flags::ssl_config_file),
      text("tls_certificate", &Flags::certificate_file),
      text("tls_key", &Flags::key_file),
      on_off("insecure", &Flags::is_insecure),
      on_off("help", &Flags::shows_help),
      on_off("version", &Flags::shows_version),
  };
  return flags;
}

struct Ignored {
  const char* name;
  bool is_switch;
};
// Of TensorFlow's runtime and of what has no counterpart here.
constexpr Ignored without_effect[] = {
    {"grpc_socket_path", false},
    {"grpc_channel_arguments", false},
    {"grpc_max_threads", false},
    {"num_load_threads", false},
    {"num_unload_threads", false},
    {"num_request_iterations_for_warmup", false},
    {"tensorflow_session_parallelism", false},
    {"tensorflow_intra_op_parallelism", false},
    {"tensorflow_inter_op_parallelism", false},
    {"platform_config_file", false},
    {"per_process_gpu_memory_fraction", false},
    {"saved_model_tags", false},
    {"num_tflite_pools", false},
    {"num_tflite_interpreters_per_pool", false},
    {"mixed_precision", false},
    {"thread_pool_factory_config_file", false},
    {"tensorflow_session_config_file", false},
    {"flush_filesystem_caches", true},
    {"use_alts_credentials", true},
    {"enable_model_warmup", true},
    {"enable_per_model_batching_parameters", true},
    {"remove_unused_fields_from_bundle_metagraph", true},
    {"prefer_tflite_model", true},
    {"enable_signature_method_name_check", true},
    {"xla_cpu_compilation_enabled", true},
    {"enable_profiler", true},
    {"enable_grpc_healthcheck_service", true},
    {"skip_initialize_tpu", true},
    {"enable_serialization_as_tensor_content", true},
};

const char* hint() { return "slipway-serve --help shows them all"; }

bool looks_like_switch_value(const std::string& text) { return text == "true" || text == "false"; }

class FlagParser {
 public:
  FlagParser(Flags flags, const std::vector<std::string>& arguments)
      : flags_(std::move(flags)), arguments_(arguments) {}

  Result<Flags> parse() {
    while (at_ < arguments_.size())
      if (auto read = flag(arguments_[at_++]); !read) return fail(read.error());
    return finish();
  }

 private:
  Result<void> flag(const std::string& argument) {
    if (argument == "-h") return flags_.shows_help = true, Result<void>();
    const std::size_t dashes = argument.starts_with("--") ? 2 : argument.starts_with('-') ? 1 : 0;
    if (dashes == 0 || argument.size() == dashes)
      return fail(ErrorCode::invalid, fmt::format("`{}` is no flag", argument),
                  "flags begin with --; a model is given as --model NAME=FOLDER");
    const std::size_t equals = argument.find('=');
    std::string name = argument.substr(dashes, equals == std::string::npos ? equals : equals - dashes);
    std::replace(name.begin(), name.end(), '-', '_');
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    if (name == "model_name") return take(name, false, value, model_name_);
    if (name == "model_base_path") return take(name, false, value, base_path_);
    for (const Flag& known : table())
      if (name == known.name) return set(known, value);
    for (const Ignored& known : without_effect) {
      if (name != known.name) continue;
      std::optional<std::string> ignored;
      if (auto taken = take(name, known.is_switch, value, ignored); !taken) return taken;
      flags_.without_effect.push_back(name);
      return {};
    }
    return fail(ErrorCode::invalid, fmt::format("there is no flag --{}", name), suggestion(name));
  }

  // The flag's value, from behind the = or the next argument; a switch needs none.
  Result<void> take(const std::string& name, bool is_switch, std::optional<std::string>& value,
                    std::optional<std::string>& to) {
    if (!value && is_switch) {
      const bool has_value = at_ < arguments_.size() && looks_like_switch_value(arguments_[at_]);
      value = has_value ? arguments_[at_++] : "true";
    }
    if (!value && at_ < arguments_.size()) value = arguments_[at_++];
    if (!value) return fail(ErrorCode::invalid, fmt::format("--{} has no value", name), hint());
    to = std::move(value);
    return {};
  }

  Result<void> set(const Flag& known, std::optional<std::string>& value) {
    std::optional<std::string> taken;
    if (auto read = take(known.name, known.is_switch, value, taken); !read) return read;
    if (known.set(*taken, flags_)) return {};
    return fail(ErrorCode::invalid, fmt::format("--{} is `{}`", known.name, *taken),
                fmt::format("it takes {}", known.takes));
  }

  static std::string suggestion(const std::string& name) {
    std::vector<std::string> names = {"model_name", "model_base_path"};
    for (const Flag& known : table()) names.emplace_back(known.name);
    const std::string near = nearest(name, names);
    return near.empty() ? hint() : fmt::format("did you mean --{}?", near);
  }

  Result<Flags> finish() {
    if (flags_.shows_help || flags_.shows_version) return flags_;
    if (base_path_)
      flags_.models.models.push_back({model_name_.value_or("default"), *base_path_, "", LatestPolicy{}, {}});
    if (model_name_ && !base_path_)
      return fail(ErrorCode::invalid,
                  fmt::format("--model_name is {} without a --model_base_path", *model_name_),
                  "name the folder that holds its version folders");
    if (flags_.models.models.empty() == flags_.model_config_file.empty())
      return fail(ErrorCode::invalid,
                  flags_.model_config_file.empty() ? "there is nothing to serve"
                                                   : "models are given by a config file and by flags at once",
                  "either --model NAME=FOLDER (several times), --model_name with --model_base_path, or "
                  "--model_config_file");
    for (const ModelConfig& model : flags_.models.models)
      if (model.base_path.starts_with("models:"))
        return fail(
            ErrorCode::invalid,
            fmt::format("{} is in the model registry, which this server cannot reach", model.base_path),
            "fetch the version into a folder and name that");
    if (auto checked = check_server_config(flags_.models); !checked) return fail(checked.error());
    if (!flags_.batching_parameters_file.empty() && !flags_.is_batching)
      return fail(ErrorCode::invalid, "--batching_parameters_file is given without --enable_batching",
                  "add --enable_batching");
    if (flags_.certificate_file.empty() != flags_.key_file.empty())
      return fail(ErrorCode::invalid, "of --tls-certificate and --tls-key one is missing", "give both");
    return flags_;
  }

  Flags flags_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  std::optional<std::string> model_name_, base_path_;
};

}  // namespace

Result<Flags> parse_flags(const std::string& program, const std::vector<std::string>& arguments) {
  Flags flags;
  if (program == "tensorflow_model_server") {
    flags.rest_port = -1;
    flags.grpc_port = 8500;
    flags.address = "0.0.0.0";
    flags.is_insecure = true;
  }
  return FlagParser(std::move(flags), arguments).parse();
}

std::string help_text() {
  return "Serves models to the clients of TensorFlow Serving, the Open Inference Protocol (Triton, KServe), "
         "MLflow\n"
         "and Cloud ML.\n\n"
         "  slipway-serve --model mnist=/models/mnist --rest-port 8501\n"
         "  curl -d '{\"instances\": [[0, 0.5, …]]}' http://127.0.0.1:8501/v1/models/mnist:predict\n\n"
         "/models/mnist holds a folder for each version: 1, 2, …, each with the model.slipway that "
         "slipway-train\n"
         "stores. The newest is served; a new one is loaded before the old one goes. Flags are written with "
         "- or --,\n"
         "_ or -, and their value behind = or a space; those of tensorflow_model_server are taken as they "
         "are.\n\n"
         "Models\n"
         "  --model NAME=FOLDER                     serve FOLDER's versions as NAME; several times for "
         "several\n"
         "  --model_name N --model_base_path DIR    the same for one\n"
         "  --model_config_file FILE                a model_config_list (protobuf text): policies, labels\n"
         "  --model_config_file_poll_wait_seconds S read it again every S seconds (0: never)\n"
         "  --file_system_poll_wait_seconds S       look for versions every S seconds and when a folder "
         "changes\n"
         "                                          (1; 0: once)\n"
         "  --max_num_load_retries N                after a load that failed (5)\n"
         "  --load_retry_interval_micros N          between them (60000000); a file that changed is tried at "
         "once\n"
         "  --allow_version_labels_for_unavailable_models\n\n"
         "Addresses\n"
         "  --listen ADDRESS                        127.0.0.1; beyond loopback TLS or --insecure is needed\n"
         "  --rest-port N, --rest_api_port N        8501\n"
         "  --port N, --grpc-port N                 gRPC of TensorFlow Serving, without TLS (off; 8500 as\n"
         "                                          tensorflow_model_server)\n"
         "  --tls-certificate FILE --tls-key FILE   REST over TLS\n"
         "  --rest_api_timeout_in_ms N              a request that has waited longer is not run (30000)\n"
         "  --rest_api_enable_cors_support\n"
         "  --body-max SIZE                         of a request (64MiB)\n\n"
         "Running\n"
         "  --threads N, --rest_api_num_threads N   for models too large for the network's thread (cores)\n"
         "  --enable_batching                       requests run together\n"
         "  --batching_parameters_file FILE         max_batch_size, batch_timeout_micros, …\n"
         "  --monitoring_config_file FILE           prometheus_config { enable: true path: \"/metrics\" }\n\n"
         "  --help  --version\n";
}

}  // namespace slipway::serve
