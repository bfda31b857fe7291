// Kernels out of the user's own C++ file. The system's compiler builds it into a shared object, which finds the
// language in the program that loads it. Loading the object runs its static initialisers, which register the kernels:
//
//     const Kernel addKernel = kernel("add", add, {"x", "y", "out"}, {field("block", &AddConfig::block)});

#pragma once

#include "dialect/dsl/Kernel.h"

#include <memory>
#include <span>

namespace kiln::tools {

/// A user's file as code in this process.
class UserFile {
public:
  /// Compiles `path` (HostCompiler.h) and loads it. It only loads a shared object, `.so`, that buildLibrary() made, and
  /// a file of images, `.kiln` (runtime/KernelImage.h). The language's headers, "dialect/dsl/Kernel.h" or
  /// <kiln/dialect/dsl/Kernel.h>, are in one of `includes`, else above this program or the shared library with this
  /// code, else where it was built. `wanted` is the requested kernel, for the example in the message about a file
  /// without kernels. Throws Error; the compiler's messages go to stderr.
  UserFile(const std::string &path, const std::vector<std::string> &includes, const std::string &wanted);

  /// The kernels that the file registers, in order. They are valid as long as this object.
  std::vector<const Kernel *> kernels() const;

private:
  struct Unload {
    void operator()(void *library) const;
  };
  std::unique_ptr<void, Unload> library;
  std::vector<Kernel> registered; // their code is in the library: it must go after them
};

/// Compiles the kernels of the C++ file `path` to the shared object `output`, for UserFile and libkiln. Throws Error.
void buildLibrary(const std::string &path, const std::vector<std::string> &includes, const std::string &output);

// --- The system's compilers (HostCompiler.cpp) ----------------------------------------------------------------------

/// Compiles the C++ file `path` to the shared object `object` with $CXX, which may contain flags, or c++. `more` are
/// further words of the command. The compiler's messages go to stderr, also if the object is in the cache. Throws Error
/// if it does not compile.
void compileShared(const std::string &path, const std::vector<std::string> &includes, const std::string &object,
                   const std::vector<std::string> &more);

/// Makes the object file `object` out of the C file `path` with $CC, which may name flags too, or cc. Throws Error when
/// it does not compile.
void compileC(const std::string &path, const std::string &object);

// --- Facts about kilnc's build --------------------------------------------------------------------------------------

/// The headers that a user's file sees through dialect/dsl/Kernel.h.
extern const std::span<const char *const> languageHeaders;
/// A hash of their content.
extern const char *const languageIdentity;
/// The folder in the build that holds them as dialect/dsl/Kernel.h and so on.
extern const char *const builtHeaders;

} // namespace kiln::tools
