// The work of a launch as JSON: the input of the pipe model, so that its predictions can be repeated without the
// kernel.

#pragma once

#include "tools/kiln-bench/pipe_model.h"

#include <nlohmann/json_fwd.hpp>

namespace kiln::bench {

nlohmann::ordered_json jsonOf(const LaunchWork &launch);
/// Reads what jsonOf() wrote. Throws nlohmann::json::exception if a field is missing or has another type.
LaunchWork launchWorkOf(const nlohmann::json &json);

} // namespace kiln::bench
