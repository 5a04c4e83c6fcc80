#include "domain/pool.h"

#include "domain/names.h"

namespace slipway {
namespace {

constexpr Names<Fill, 2> fills{"pack", "spread"};
constexpr Names<Deallocation, 4> deallocations{"requeue", "terminate", "task_completion", "retained_data"};
constexpr Names<ScaleBy, 4> scale_bys{"hand", "demand", "formula", "scenario"};
constexpr Names<ResizeState, 2> resize_states{"steady", "resizing"};

}  // namespace

std::string_view to_string(Fill fill) { return fills.of(fill); }
std::optional<Fill> parse_fill(std::string_view text) { return fills.find(text); }
std::string_view to_string(Deallocation rule) { return deallocations.of(rule); }
std::optional<Deallocation> parse_deallocation(std::string_view text) { return deallocations.find(text); }
std::string_view to_string(ScaleBy by) { return scale_bys.of(by); }
std::optional<ScaleBy> parse_scale_by(std::string_view text) { return scale_bys.find(text); }
std::string_view to_string(ResizeState state) { return resize_states.of(state); }
std::optional<ResizeState> parse_resize_state(std::string_view text) { return resize_states.find(text); }

}  // namespace slipway
