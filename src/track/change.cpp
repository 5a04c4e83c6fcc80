#include "track/change.h"

namespace slipway::track {

enum class Change::Fact : std::uint8_t {
  experiment = 1,
  run = 2,
  param = 3,
  tag = 4,
  tag_erased = 5,
  points = 6,
  links = 7,
  model = 8,
  model_erased = 9,
  version = 10,
  version_erased = 11,
  logged_model = 12,
  run_erased = 13,
  experiment_erased = 14,
};

namespace {

void get_links(ByteReader& in, std::vector<DatasetInput>& datasets, std::vector<std::string>& inputs,
               std::vector<ModelOutput>& outputs) {
  for (std::size_t left = in.items(); left > 0 && !in.failed(); --left) get(in, datasets.emplace_back());
  for (std::size_t left = in.items(); left > 0 && !in.failed(); --left) inputs.push_back(in.text());
  for (std::size_t left = in.items(); left > 0 && !in.failed(); --left) {
    ModelOutput& output = outputs.emplace_back();
    output.model = in.text();
    output.step = in.integer();
  }
}

}  // namespace

const Workspace& Change::workspace() const {
  static const Workspace empty;
  const Workspace* found = state_.workspace(caller_.workspace);
  return found ? *found : empty;
}

void Change::begin(Fact fact) { record_.byte(static_cast<std::uint8_t>(fact)); }

void Change::put_experiment(Experiment experiment) {
  begin(Fact::experiment);
  record_.text(caller_.workspace);
  put(record_, experiment);
  state_.put_experiment(caller_.workspace, std::move(experiment));
}

void Change::put_run(RunInfo info) {
  begin(Fact::run);
  record_.text(caller_.workspace);
  put(record_, info);
  state_.put_run(caller_.workspace, std::move(info));
}

void Change::set_param(Run& run, std::string_view key, std::string_view value) {
  begin(Fact::param);
  for (const std::string_view text : {std::string_view(run.info.id), key, value}) record_.text(text);
  state_.set_param(run, key, std::string(value));
}

void Change::set_tag(Run& run, std::string_view key, std::string_view value) {
  begin(Fact::tag);
  for (const std::string_view text : {std::string_view(run.info.id), key, value}) record_.text(text);
  state_.set_tag(run, key, std::string(value));
}

void Change::erase_tag(Run& run, std::string_view key) {
  begin(Fact::tag_erased);
  for (const std::string_view text : {std::string_view(run.info.id), key}) record_.text(text);
  state_.erase_tag(run, key);
}

void Change::add_points(Run& run, std::string_view key, const std::vector<Point>& points) {
  if (points.empty()) return;
  begin(Fact::points);
  record_.text(run.info.id);
  record_.text(key);
  record_.count(points.size());
  for (const Point& point : points) {
    put_point(record_, point);
    state_.add_point(run, key, point);
  }
}

void Change::put_links(Run& run, std::vector<DatasetInput> datasets, std::vector<std::string> model_inputs,
                       std::vector<ModelOutput> model_outputs) {
  begin(Fact::links);
  record_.text(run.info.id);
  record_.count(datasets.size());
  for (const DatasetInput& dataset : datasets) put(record_, dataset);
  record_.count(model_inputs.size());
  for (const std::string& model : model_inputs) record_.text(model);
  record_.count(model_outputs.size());
  for (const ModelOutput& output : model_outputs) {
    record_.text(output.model);
    record_.integer(output.step);
  }
  state_.put_links(run, std::move(datasets), std::move(model_inputs), std::move(model_outputs));
}

void Change::put_model(Model model) {
  begin(Fact::model);
  record_.text(caller_.workspace);
  put(record_, model);
  state_.put_model(caller_.workspace, std::move(model));
}

void Change::erase_model(const std::string& name) {
  begin(Fact::model_erased);
  record_.text(caller_.workspace);
  record_.text(name);
  state_.erase_model(caller_.workspace, std::string(name));
}

void Change::put_version(ModelVersion version) {
  begin(Fact::version);
  record_.text(caller_.workspace);
  put(record_, version);
  state_.put_version(caller_.workspace, std::move(version));
}

void Change::erase_version(const std::string& model, std::uint32_t number) {
  begin(Fact::version_erased);
  record_.text(caller_.workspace);
  record_.text(model);
  record_.count(number);
  state_.erase_version(caller_.workspace, model, number);
}

void Change::put_logged_model(LoggedModel model) {
  begin(Fact::logged_model);
  record_.text(caller_.workspace);
  put(record_, model);
  state_.put_logged_model(caller_.workspace, std::move(model));
}

void Change::erase_run(const std::string& id) {
  begin(Fact::run_erased);
  record_.text(id);
  state_.erase_run(std::string(id));
}

void Change::erase_experiment(const std::string& id) {
  begin(Fact::experiment_erased);
  record_.text(caller_.workspace);
  record_.text(id);
  state_.erase_experiment(caller_.workspace, std::string(id));
}

bool apply_record(State& state, std::string_view record) {
  using Fact = Change::Fact;
  ByteReader in(record);
  // A fact of a run that is gone was erased by a later record, or by an earlier one that was applied already.
  const auto with_run = [&](const std::string& id, const auto& use) {
    if (in.failed()) return;
    if (Run* run = state.run(id)) use(*run);
  };
  const auto with_entity = [&](auto entity, const auto& use) {
    const std::string workspace = in.text();
    get(in, entity);
    if (!in.failed()) use(workspace, std::move(entity));
  };
  while (!in.at_end() && !in.failed()) {
    switch (static_cast<Fact>(in.byte())) {
      case Fact::experiment:
        with_entity(Experiment(), [&](const auto& in_workspace, Experiment one) {
          state.put_experiment(in_workspace, std::move(one));
        });
        break;
      case Fact::run:
        with_entity(RunInfo(), [&](const auto& in_workspace, RunInfo one) {
          state.put_run(in_workspace, std::move(one));
        });
        break;
      case Fact::param:
      case Fact::tag: {
        const bool is_param = record[record.size() - in.rest().size() - 1] == static_cast<char>(Fact::param);
        const std::string id = in.text();
        const std::string_view key = in.view();
        const std::string value = in.text();
        with_run(id, [&](Run& run) {
          is_param ? state.set_param(run, key, value) : state.set_tag(run, key, value);
        });
        break;
      }
      case Fact::tag_erased: {
        const std::string id = in.text();
        const std::string_view key = in.view();
        with_run(id, [&](Run& run) { state.erase_tag(run, key); });
        break;
      }
      case Fact::points: {
        const std::string id = in.text();
        const std::string_view key = in.view();
        Run* run = state.run(id);
        for (std::size_t left = in.items(); left > 0; --left) {
          const Point point = get_point(in);
          if (in.failed()) break;
          if (run) state.add_point(*run, key, point);
        }
        break;
      }
      case Fact::links: {
        const std::string id = in.text();
        std::vector<DatasetInput> datasets;
        std::vector<std::string> inputs;
        std::vector<ModelOutput> outputs;
        get_links(in, datasets, inputs, outputs);
        with_run(id, [&](Run& run) {
          state.put_links(run, std::move(datasets), std::move(inputs), std::move(outputs));
        });
        break;
      }
      case Fact::model:
        with_entity(Model(), [&](const auto& in_workspace, Model one) {
          state.put_model(in_workspace, std::move(one));
        });
        break;
      case Fact::model_erased: {
        const std::string workspace = in.text();
        const std::string name = in.text();
        if (!in.failed()) state.erase_model(workspace, name);
        break;
      }
      case Fact::version:
        with_entity(ModelVersion(), [&](const auto& in_workspace, ModelVersion one) {
          state.put_version(in_workspace, std::move(one));
        });
        break;
      case Fact::version_erased: {
        const std::string workspace = in.text();
        const std::string model = in.text();
        const auto number = static_cast<std::uint32_t>(in.count());
        if (!in.failed()) state.erase_version(workspace, model, number);
        break;
      }
      case Fact::logged_model:
        with_entity(LoggedModel(), [&](const auto& in_workspace, LoggedModel one) {
          state.put_logged_model(in_workspace, std::move(one));
        });
        break;
      case Fact::run_erased: {
        const std::string id = in.text();
        if (!in.failed()) state.erase_run(id);
        break;
      }
      case Fact::experiment_erased: {
        const std::string workspace = in.text();
        const std::string id = in.text();
        if (!in.failed()) state.erase_experiment(workspace, id);
        break;
      }
      default: return false;
    }
  }
  return !in.failed();
}

}  // namespace slipway::track
