// Where temporary files go.

#pragma once

#include <cstdlib>
#include <string>

namespace kiln {

/// The folder that TMPDIR names; an empty one counts as none.
inline std::string temporaryPath() {
  const char *const asked = std::getenv("TMPDIR");
  return asked && *asked ? asked : "/tmp";
}

} // namespace kiln
