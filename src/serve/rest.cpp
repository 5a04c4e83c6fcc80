#include "serve/rest.h"

#include <fmt/format.h>

#include <charconv>

#include "serve/inflate.h"
#include "serve/scoring.h"
#include "serve/tf_answer.h"
#include "serve/tf_path.h"
#include "serve/tf_request.h"

namespace slipway::serve {
namespace {

net::Response text_response(std::string body) {
  return {200, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
}

// The signature a request names, or serving_default, with the error of the API that asks.
Answer<std::pair<std::string, const Signature*>> find_signature(const Model& model, std::string name,
                                                                fmt::format_string<std::string&> unknown) {
  if (name.empty()) name = default_signature;
  const auto found = model.signatures().find(name);
  if (found == model.signatures().end()) return invalid(fmt::format(unknown, name));
  return std::pair<std::string, const Signature*>(name, &found->second);
}

VersionChoice parse_choice(const std::string& text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size())
    return ExactVersion{number};
  if (text.empty()) return NewestVersion{};
  return LabelledVersion{text};
}

}  // namespace

net::Response json_response(int status, std::string body) {
  return {status, {{"Content-Type", "application/json"}}, std::move(body)};
}

net::Response failure_response(const Failure& failure) {
  return json_response(http_status(failure.code), format_failure(failure.message));
}

net::Response Rest::failed(const std::string& model, const Failure& failure) const {
  metrics_.count_request({model, "predict", "REST", failure.code, 0});
  return failure_response(failure);
}

void Rest::handle(const net::Request& request, Reply reply) {
  const auto origin = request.header("Origin");
  if (origin && options_.allows_other_origins) {
    reply = [inner = std::move(reply)](net::Response response) {
      response.headers.emplace_back("Access-Control-Allow-Origin", "*");
      inner(std::move(response));
    };
  }
  if (request.method == "OPTIONS") {
    net::Response response{origin ? 200 : 400, {}, {}};
    if (origin && options_.allows_other_origins) {
      response.headers = {{"Access-Control-Allow-Methods", "POST, GET, OPTIONS"},
                          {"Access-Control-Allow-Headers", "Content-Type"}};
    }
    return reply(std::move(response));
  }
  const auto encoding = request.header("Content-Encoding");
  if (!encoding || *encoding == "identity") return route(request, request.body, reply);
  if (*encoding != "gzip" && *encoding != "deflate")
    return reply(failure_response(
        {Code::invalid_argument, fmt::format("Content-Encoding {} is not taken; gzip is", *encoding)}));
  const auto body = inflate_gzip(request.body, options_.body_max);
  if (!body) return reply(failure_response(body.error()));
  route(request, *body, reply);
}

void Rest::route(const net::Request& request, const std::string& body, const Reply& reply) {
  if (options_.monitoring.is_enabled && request.method == "GET" && request.path == options_.monitoring.path)
    return reply(text_response(metrics_.text()));
  const bool found = route_tensorflow(request, body, reply) || route_inference(request, body, reply) ||
                     route_cloud_ml(request, body, reply) || route_scoring(request, body, reply);
  if (found) return;
  const Failure malformed{Code::invalid_argument,
                          fmt::format("Malformed request: {} {}", request.method, request.target)};
  reply(failure_response(malformed));
}

// --- running

void Rest::execute(std::string model, ServedModel served, std::string signature, const char* api,
                   Tensors inputs, TimePoint begun, Format format, const Reply& reply) {
  auto done = [this, model, api, begun, format = std::move(format), reply](Answer<Tensors> outputs) {
    auto response = outputs ? format(*outputs) : Answer<net::Response>(refuse(outputs.error()));
    const Code code = response ? Code::ok : response.error().code;
    const auto latency = static_cast<double>((clock_.now() - begun).count());
    metrics_.count_request({model, api, "REST", code, latency});
    reply(response ? std::move(*response) : failure_response(response.error()));
  };
  executor_.execute({std::move(model), std::move(served), std::move(signature), api, std::move(inputs),
                     begun + options_.timeout, std::move(done)});
}

// --- TensorFlow Serving

bool Rest::route_tensorflow(const net::Request& request, const std::string& body, const Reply& reply) {
  const auto parsed = parse_tf_path(request.method, request.target);
  if (!parsed) return reply(json_response(400, parsed.error().message)), true;
  if (!*parsed) return false;
  const TfPath& path = **parsed;
  switch (path.action) {
    case TfAction::predict: predict(path.model, choice_of(path), body, reply); break;
    case TfAction::classify: run_examples(path.model, choice_of(path), Method::classify, body, reply); break;
    case TfAction::regress: run_examples(path.model, choice_of(path), Method::regress, body, reply); break;
    case TfAction::status: {
      const auto status = models_.status(path.model, path.version);
      reply(status ? json_response(200, format_status(*status)) : failure_response(status.error()));
      break;
    }
    case TfAction::metadata: {
      const auto served = models_.find(path.model, choice_of(path));
      reply(served ? json_response(200,
                                   format_metadata(path.model, served->version, served->model->signatures()))
                   : failure_response(served.error()));
      break;
    }
  }
  return true;
}

void Rest::predict(const std::string& model, const VersionChoice& choice, const std::string& body,
                   const Reply& reply) {
  const TimePoint begun = clock_.now();
  // In this order: JSON, model, signature, tensors. A client sees the same error as from TensorFlow Serving.
  const auto json = parse_body(body);
  if (!json) return reply(failed(model, json.error()));
  const auto named = signature_name(json->root());
  if (!named) return reply(failed(model, named.error()));
  auto served = models_.find(model, choice);
  if (!served) return reply(failed(model, served.error()));
  const auto signature =
      find_signature(*served->model, *named, "Serving signature name: \"{}\" not found in signature def");
  if (!signature) return reply(failed(model, signature.error()));
  auto inputs = parse_predict(json->root(), *signature->second);
  if (!inputs) return reply(failed(model, inputs.error()));
  auto format = [as = inputs->format](const Tensors& outputs) -> Answer<net::Response> {
    auto text = format_predict(outputs, as);
    if (!text) return refuse(text.error());
    return json_response(200, std::move(*text));
  };
  execute(model, std::move(*served), signature->first, "predict", std::move(inputs->tensors), begun,
          std::move(format), reply);
}

void Rest::run_examples(const std::string& model, const VersionChoice& choice, Method method,
                        const std::string& body, const Reply& reply) {
  const TimePoint begun = clock_.now();
  const auto json = parse_body(body);
  if (!json) return reply(failed(model, json.error()));
  const auto named = signature_name(json->root());
  if (!named) return reply(failed(model, named.error()));
  const auto examples = parse_examples(json->root());
  if (!examples) return reply(failed(model, examples.error()));
  auto served = models_.find(model, choice);
  if (!served) return reply(failed(model, served.error()));
  const auto signature = find_signature(*served->model, example_signature(*served->model, method, *named),
                                        "No signature was found with the name: {}");
  if (!signature) return reply(failed(model, signature.error()));
  if (auto checked = check_method(*signature->second, method); !checked)
    return reply(failed(model, checked.error()));
  auto inputs = tensors_of(*examples, *signature->second);
  if (!inputs) return reply(failed(model, inputs.error()));
  auto format = [method](const Tensors& outputs) -> Answer<net::Response> {
    auto text = method == Method::classify ? format_classify(outputs) : format_regress(outputs);
    if (!text) return refuse(text.error());
    return json_response(200, std::move(*text));
  };
  execute(model, std::move(*served), signature->first, method == Method::classify ? "classify" : "regress",
          std::move(*inputs), begun, std::move(format), reply);
}

// --- Cloud ML: the row format under its own paths

bool Rest::route_cloud_ml(const net::Request& request, const std::string& body, const Reply& reply) {
  const std::size_t verb = request.path.rfind(':');
  if (request.method != "POST" || verb == std::string::npos || request.path.substr(verb) != ":predict")
    return false;
  const auto parts = net::split_path(request.path.substr(0, verb));
  const bool fits = parts && (parts->size() == 5 || parts->size() == 7) && (*parts)[0] == "v1" &&
                    (*parts)[1] == "projects" && (*parts)[3] == "models" &&
                    (parts->size() == 5 || (*parts)[5] == "versions");
  if (!fits) return false;
  std::string version = parts->size() == 7 ? (*parts)[6] : "";
  // Versions are named there: v3 is our 3 unless there is a label v3.
  predict((*parts)[4], parse_choice(version), body, reply);
  return true;
}

// --- MLflow

bool Rest::route_scoring(const net::Request& request, const std::string& body, const Reply& reply) {
  if (request.method == "GET" && (request.path == "/ping" || request.path == "/health")) {
    reply(models_.is_ready() ? text_response("\n") : net::Response{503, {}, "no model is ready\n"});
    return true;
  }
  if (request.method == "GET" && request.path == "/version")
    return reply(text_response(SLIPWAY_VERSION)), true;
  if (request.method != "POST" || request.path != "/invocations") return false;
  const auto names = models_.model_names();
  const auto asked = request.parameter("model");
  if (!asked && names.size() != 1)
    reply(failure_response(
        {Code::invalid_argument,
         fmt::format("{} models are served here; say which: /invocations?model=NAME", names.size())}));
  else
    score(asked.value_or(names.empty() ? "" : names.front()), request, body, reply);
  return true;
}

void Rest::score(const std::string& model, const net::Request& request, const std::string& body,
                 const Reply& reply) {
  const TimePoint begun = clock_.now();
  auto served = models_.find(model, NewestVersion{});
  if (!served) return reply(failed(model, served.error()));
  const auto signature = find_signature(*served->model, "", "No signature was found with the name: {}");
  if (!signature) return reply(failed(model, signature.error()));
  const std::string type = request.header("Content-Type").value_or("application/json");
  const bool is_csv = type.starts_with("text/csv");
  auto inputs =
      is_csv ? parse_scoring_csv(body, *signature->second) : parse_scoring_json(body, *signature->second);
  if (!inputs) return reply(failed(model, inputs.error()));
  auto format = [](const Tensors& outputs) -> Answer<net::Response> {
    return json_response(200, format_scoring(outputs));
  };
  execute(model, std::move(*served), signature->first, "invocations", std::move(*inputs), begun,
          std::move(format), reply);
}

// --- Open Inference Protocol

bool Rest::route_inference(const net::Request& request, const std::string& body, const Reply& reply) {
  const auto parts = net::split_path(request.path);
  if (!parts || parts->empty() || (*parts)[0] != "v2") return false;
  const std::vector<std::string> rest(parts->begin() + 1, parts->end());
  const bool gets = request.method == "GET", posts = request.method == "POST";
  if (gets && rest.empty())
    return reply(json_response(200, fmt::format(R"({{"name":"slipway-serve","version":"{}","extensions":)"
                                                R"(["binary_tensor_data","model_repository"]}})",
                                                SLIPWAY_VERSION))),
           true;
  if (gets && rest == std::vector<std::string>{"health", "live"})
    return reply(json_response(200, R"({"live":true})")), true;
  if (gets && rest == std::vector<std::string>{"health", "ready"}) {
    const bool ready = models_.is_ready();
    return reply(json_response(ready ? 200 : 503, fmt::format(R"({{"ready":{}}})", ready))), true;
  }
  if (posts && rest == std::vector<std::string>{"repository", "index"})
    return reply(repository_index()), true;
  if (rest.size() < 2 || rest[0] != "models") return false;
  const bool has_version = rest.size() >= 4 && rest[2] == "versions";
  const std::string& model = rest[1];
  const VersionChoice choice = parse_choice(has_version ? rest[3] : "");
  const std::size_t at = has_version ? 4 : 2;
  const std::string verb = rest.size() > at ? rest[at] : "";
  if (rest.size() > at + 1) return false;
  if (posts && verb == "infer") return infer(model, choice, request, body, reply), true;
  if (!gets || (verb != "" && verb != "ready")) return false;
  const auto served = models_.find(model, choice);
  if (verb == "ready") {
    const bool is_known = served || models_.status(model, std::nullopt).has_value();
    std::string text = R"({"name":)";
    append_json_string(text, model);
    text += fmt::format(R"(,"ready":{}}})", served.has_value());
    return reply(is_known ? json_response(served ? 200 : 503, std::move(text))
                          : failure_response(served.error())),
           true;
  }
  if (!served) return reply(failure_response(served.error())), true;
  const auto signature = find_signature(*served->model, "", "No signature was found with the name: {}");
  if (!signature) return reply(failure_response(signature.error())), true;
  return reply(json_response(200, format_model(model, models_.available_versions(model),
                                               served->model->platform(), *signature->second))),
         true;
}

net::Response Rest::repository_index() const {
  std::string text = "[";
  for (const std::string& name : models_.model_names()) {
    const auto status = models_.status(name, std::nullopt);
    if (!status) continue;
    for (const VersionStatus& version : *status) {
      text += text.size() > 1 ? R"(,{"name":)" : R"({"name":)";
      append_json_string(text, name);
      text += fmt::format(R"(,"version":"{}","state":"{}","reason":)", version.number,
                          version.state == VersionState::available ? "READY" : "UNAVAILABLE");
      append_json_string(text, version.failure.message);
      text += '}';
    }
  }
  return json_response(200, text + "]");
}

void Rest::infer(const std::string& model, const VersionChoice& choice, const net::Request& request,
                 const std::string& body, const Reply& reply) {
  const TimePoint begun = clock_.now();
  std::optional<std::size_t> json_size;
  if (const auto header = request.header("Inference-Header-Content-Length")) {
    std::size_t size = 0;
    const auto read = std::from_chars(header->data(), header->data() + header->size(), size);
    if (read.ec != std::errc() || read.ptr != header->data() + header->size())
      return reply(
          failed(model, {Code::invalid_argument,
                         fmt::format("Inference-Header-Content-Length is {}, not a size", *header)}));
    json_size = size;
  }
  auto served = models_.find(model, choice);
  if (!served) return reply(failed(model, served.error()));
  const auto signature = find_signature(*served->model, "", "No signature was found with the name: {}");
  if (!signature) return reply(failed(model, signature.error()));
  auto parsed = parse_infer(body, json_size, *signature->second);
  if (!parsed) return reply(failed(model, parsed.error()));
  Tensors inputs = std::move(parsed->inputs);
  auto format = [model, version = served->version,
                 asked = std::move(*parsed)](const Tensors& outputs) -> Answer<net::Response> {
    InferBody made = format_infer(model, version, asked, outputs);
    net::Response response = json_response(200, std::move(made.bytes));
    if (made.json_size)
      response.headers = {{"Content-Type", "application/octet-stream"},
                          {"Inference-Header-Content-Length", std::to_string(*made.json_size)}};
    return response;
  };
  execute(model, std::move(*served), signature->first, "infer", std::move(inputs), begun, std::move(format),
          reply);
}

}  // namespace slipway::serve
