// The version of Kiln, as --version prints it.

#pragma once

#include <string>

namespace kiln {

/// The short commit of the sources, with ` and changes` if some were not committed; empty without a git checkout. The
/// build writes it (tools/cmake/Commit.cmake).
extern const char *const commit;

/// `kilnc of Kiln 0.1, commit 0123456789ab, LLVM 22.1.8`. The LLVM version is that of the loaded library.
std::string versionText(const std::string &program);

} // namespace kiln
