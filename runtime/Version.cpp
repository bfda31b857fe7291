// The line of --version.

#include "runtime/Version.h"

#include "llvm-c/Core.h"

#include <fmt/format.h>

namespace kiln {

std::string versionText(const std::string &program) {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return fmt::format("{} of Kiln " KILN_VERSION "{}{}, LLVM {}.{}.{}", program, *commit ? ", commit " : "", commit,
                     major, minor, patch);
}

} // namespace kiln
