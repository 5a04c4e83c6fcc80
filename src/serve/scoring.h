#pragma once
// Bodies of MLflow's scoring protocol: POST /invocations. Pure.
#include <string>

#include "serve/json.h"
#include "serve/model.h"

namespace slipway::serve {

// JSON with one of inputs, instances, dataframe_split, dataframe_records.
Answer<Tensors> parse_scoring_json(std::string_view body, const Signature& signature);
// A header line and rows of numbers, commas between.
Answer<Tensors> parse_scoring_csv(std::string_view body, const Signature& signature);
// {"predictions": …}: one output as a list of rows, several as an object of lists.
std::string format_scoring(const Tensors& outputs);

}  // namespace slipway::serve
