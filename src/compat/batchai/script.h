#pragma once
// The bash texts that a job's processes run.
//
// A user's words never become part of a command: the core fills in {placeholders} there, and a literal
// {index} must survive. They travel in a variable, and the command is the same for all: run the value of that
// variable.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compat/batchai/tree.h"
#include "domain/job.h"

namespace slipway::batchai {

inline constexpr std::string_view run_variable = "SLIPWAY_BATCHAI_RUN";
inline constexpr std::string_view prepare_variable = "SLIPWAY_BATCHAI_PREPARE";

// Runs the variable's value; the process itself does not see the variable.
std::string run_command(std::string_view variable);
Command command_for(std::string_view variable);  // the same as a list

// User variables whose values name others that only the node knows ($PATH): set there, in their order.
using Late = std::vector<std::pair<std::string, std::string>>;
// Of variables in their order: what is fully known goes to `environment`, the rest comes back.
Late settle_variables(const Value& owner, Environment& known, Environment& environment);

// What comes before every command: the user's ~/.bashrc, the late variables, the folder.
std::string prologue(const Late& late, std::string_view folder);
// `python script args`, with whichever python the node has where none is named.
std::string python_line(const Value& settings, std::string_view arguments);

}  // namespace slipway::batchai
