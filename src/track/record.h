#pragma once
// Entities as bytes, for the journal and for the image of a checkpoint. What is read may be damaged: then
// there is no value.
#include <optional>
#include <string>
#include <string_view>

#include "track/bytes.h"
#include "track/state.h"

namespace slipway::track {

void put(ByteWriter& out, const Experiment& experiment);
void put(ByteWriter& out, const RunInfo& info);
void put(ByteWriter& out, const Model& model);
void put(ByteWriter& out, const ModelVersion& version);
void put(ByteWriter& out, const LoggedModel& model);
void put(ByteWriter& out, const DatasetInput& dataset);
void get(ByteReader& in, Experiment& experiment);
void get(ByteReader& in, RunInfo& info);
void get(ByteReader& in, Model& model);
void get(ByteReader& in, ModelVersion& version);
void get(ByteReader& in, LoggedModel& model);
void get(ByteReader& in, DatasetInput& dataset);

// The row of one entity in the image. nullopt: it is no longer there.
std::optional<std::string> format_entity(const State& state, const EntityName& name);
// Puts what a row says into the state. false: it makes no sense.
bool load_entity(State& state, const EntityName& name, std::string_view body);

}  // namespace slipway::track
