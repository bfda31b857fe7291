// The system's compilers. That of C++ makes a shared object of a user's file. The compile cache keeps the object, so
// that `kilnc` compiles a file again only when it, or a file that it includes, has changed.

#pragma once

#include <string>
#include <vector>

namespace kiln::tools {

/// Compiles the C++ file `path` to the shared object `object` with $CXX, which may contain flags, or c++. `more` are
/// further words of the command. The compiler's messages go to stderr, also if the object is in the cache. Throws Error
/// if it does not compile.
void compileShared(const std::string &path, const std::vector<std::string> &includes, const std::string &object,
                   const std::vector<std::string> &more);

/// Makes the object file `object` out of the C file `path` with $CC, which may name flags too, or cc. Throws Error when
/// it does not compile.
void compileC(const std::string &path, const std::string &object);

} // namespace kiln::tools
