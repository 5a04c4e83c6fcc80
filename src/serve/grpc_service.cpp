#include "serve/grpc_service.h"

#include <fmt/format.h>

#include "serve/grpc_messages.h"
#include "serve/oip.h"

namespace slipway::serve {
namespace {

VersionChoice choice_of(const ModelSpec& spec) {
  if (spec.version) return ExactVersion{*spec.version};
  if (!spec.label.empty()) return LabelledVersion{spec.label};
  return NewestVersion{};
}

}  // namespace

void GrpcService::handle(const GrpcCall& call, const GrpcReply& reply) {
  if (call.method == "/tensorflow.serving.PredictionService/Predict") return predict(call, reply);
  if (call.method == "/tensorflow.serving.PredictionService/Classify")
    return run_examples(Method::classify, call, reply);
  if (call.method == "/tensorflow.serving.PredictionService/Regress")
    return run_examples(Method::regress, call, reply);
  if (call.method == "/tensorflow.serving.PredictionService/GetModelMetadata")
    return reply(metadata(call.message));
  if (call.method == "/tensorflow.serving.ModelService/GetModelStatus") return reply(status(call.message));
  if (call.method == "/grpc.health.v1.Health/Check") {
    const char serving = '\1', not_serving = '\2';
    return reply(std::string({'\x08', models_.is_ready() ? serving : not_serving}));
  }
  reply(refuse(Code::unimplemented, fmt::format("there is no method {}", call.method)));
}

void GrpcService::predict(const GrpcCall& call, const GrpcReply& reply) {
  const TimePoint begun = clock_.now();
  auto request = parse_predict_request(call.message);
  if (!request) return reply(refuse(request.error()));
  ModelSpec spec = request->spec;
  const auto refused = [&](const Failure& failure) {
    metrics_.count_request({spec.name, "Predict", "GRPC", failure.code, 0});
    reply(refuse(failure));
  };
  if (spec.name.empty()) return refused({Code::invalid_argument, "Missing ModelSpec"});
  auto served = models_.find(spec.name, choice_of(spec));
  if (!served) return refused(served.error());
  if (spec.signature.empty()) spec.signature = default_signature;
  const auto signature = served->model->signatures().find(spec.signature);
  if (signature == served->model->signatures().end())
    return refused(
        {Code::failed_precondition, fmt::format("Serving signature key \"{}\" not found.", spec.signature)});
  if (auto checked = check_inputs(request->inputs, signature->second); !checked)
    return refused(checked.error());
  if (auto checked = check_output_filter(request->output_filter, signature->second); !checked)
    return refused(checked.error());
  spec.version = served->version;
  auto done = [this, spec, filter = std::move(request->output_filter), begun,
               reply](Answer<Tensors> outputs) {
    const Code code = outputs ? Code::ok : outputs.error().code;
    metrics_.count_request(
        {spec.name, "Predict", "GRPC", code, static_cast<double>((clock_.now() - begun).count())});
    reply(outputs ? Answer<std::string>(format_predict_response(spec, *outputs, filter))
                  : refuse(outputs.error()));
  };
  const TimePoint deadline = call.timeout ? begun + *call.timeout : TimePoint::max();
  executor_.execute({spec.name, std::move(*served), spec.signature, "Predict", std::move(request->inputs),
                     deadline, std::move(done)});
}

void GrpcService::run_examples(Method method, const GrpcCall& call, const GrpcReply& reply) {
  const TimePoint begun = clock_.now();
  auto request = parse_examples_request(call.message);
  if (!request) return reply(refuse(request.error()));
  ModelSpec spec = request->spec;
  const char* api = method == Method::classify ? "Classify" : "Regress";
  const auto refused = [&](const Failure& failure) {
    metrics_.count_request({spec.name, api, "GRPC", failure.code, 0});
    reply(refuse(failure));
  };
  if (spec.name.empty()) return refused({Code::invalid_argument, "Missing ModelSpec"});
  auto served = models_.find(spec.name, choice_of(spec));
  if (!served) return refused(served.error());
  spec.signature = example_signature(*served->model, method, spec.signature);
  const auto signature = served->model->signatures().find(spec.signature);
  if (signature == served->model->signatures().end())
    return refused(
        {Code::invalid_argument, fmt::format("No signature was found with the name: {}", spec.signature)});
  if (auto checked = check_method(signature->second, method); !checked) return refused(checked.error());
  auto inputs = tensors_of(request->examples, signature->second);
  if (!inputs) return refused(inputs.error());
  spec.version = served->version;
  auto done = [this, spec, method, api, begun, reply](Answer<Tensors> outputs) {
    Answer<std::string> text;
    if (!outputs)
      text = refuse(outputs.error());
    else
      text = method == Method::classify ? format_classify_response(spec, *outputs)
                                        : format_regress_response(spec, *outputs);
    const Code code = text ? Code::ok : text.error().code;
    metrics_.count_request(
        {spec.name, api, "GRPC", code, static_cast<double>((clock_.now() - begun).count())});
    reply(std::move(text));
  };
  const TimePoint deadline = call.timeout ? begun + *call.timeout : TimePoint::max();
  executor_.execute(
      {spec.name, std::move(*served), spec.signature, api, std::move(*inputs), deadline, std::move(done)});
}

Answer<std::string> GrpcService::metadata(std::string_view message) const {
  auto request = parse_metadata_request(message);
  if (!request) return refuse(request.error());
  if (request->fields.empty())
    return invalid("GetModelMetadataRequest must specify at least one metadata_field");
  for (const std::string& field : request->fields)
    if (field != "signature_def") return invalid(fmt::format("Metadata field {} is not supported", field));
  const auto served = models_.find(request->spec.name, choice_of(request->spec));
  if (!served) return refuse(served.error());
  request->spec.version = served->version;
  return format_metadata_response(request->spec, served->model->signatures());
}

Answer<std::string> GrpcService::status(std::string_view message) const {
  const auto spec = parse_status_request(message);
  if (!spec) return refuse(spec.error());
  const auto versions = models_.status(spec->name, spec->version);
  if (!versions) return refuse(versions.error());
  return format_status_response(*versions);
}

}  // namespace slipway::serve
