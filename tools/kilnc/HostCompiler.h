// The system's compilers. That of C++ makes a shared object of a user's file. The compile cache keeps the object, so
// that `kilnc` compiles a file again only when it, or a file that it includes, has changed.

#pragma once

#include <string>
#include <vector>

namespace kiln::tools {

/// Makes the shared object `object` out of the C++ file `path` with $CXX, which may name flags too, or c++. `more` are
/// further words of the command. What the compiler says goes to stderr, also when the object comes from the cache.
/// Throws Error when it does not compile.
void compileShared(const std::string &path, const std::vector<std::string> &includes, const std::string &object,
                   const std::vector<std::string> &more);

/// Makes the object file `object` out of the C file `path` with $CC, which may name flags too, or cc. Throws Error when
/// it does not compile.
void compileC(const std::string &path, const std::string &object);

} // namespace kiln::tools
