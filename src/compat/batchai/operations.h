#pragma once
// Long-running operations: what a 202 names, kept as folders for a day so that late questions are answered
// also after a restart.
#include <string>

#include "compat/batchai/registry.h"

namespace slipway::batchai {

struct Operation {
  std::string id;
  enum class Kind { create, remove, terminate } kind = Kind::create;
  Noun noun = Noun::job;
  ResourceId resource;
  bool is_slow = false;  // for tests: the first question is answered with InProgress
};

// Whether it has ended.
bool is_done(const Registry& registry, Operation::Kind kind, Noun noun, const ResourceId& resource);

void begin_operation(Registry& registry, const Operation& operation, TimePoint now);
// What a question for it is answered with; `url` is its own, without query.
Answer<Value> poll_operation(Registry& registry, const std::string& id, const std::string& url,
                             TimePoint now);

}  // namespace slipway::batchai
