// Which Kiln a program is: what its --version prints.

#pragma once

#include <string>

namespace kiln {

/// The commit of the sources, shortened, with ` and changes` when some were not committed; empty where they were no git
/// checkout. The build writes it: see tools/cmake/Commit.cmake.
extern const char *const commit;

/// `kilnc of Kiln 0.1, commit 0123456789ab, LLVM 22.1.8`. LLVM's version is that of the library that the program runs
/// with.
std::string versionText(const std::string &program);

} // namespace kiln
