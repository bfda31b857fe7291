// The folder of temporary files.

#pragma once

#include <cstdlib>
#include <string>

namespace kiln {

/// The folder that TMPDIR names; if it is unset or empty, /tmp.
inline std::string temporaryPath() {
  const char *const asked = std::getenv("TMPDIR");
  return asked && *asked ? asked : "/tmp";
}

} // namespace kiln
