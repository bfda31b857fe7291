// Kernels out of the user's own C++ file. The system's compiler builds it into a shared object, which finds the
// language in kilnc itself. A kernel is found by the line that registers it:
//
//     const Kernel addKernel = kernel("add", add, {field("block", &AddConfig::block)});

#pragma once

#include "dialect/dsl/Kernel.h"

#include <memory>

namespace kiln::tools {

/// A registration line: the kernel's name and the C++ name of the object, with its namespaces.
struct Registration {
  std::string kernel, variable;
};

/// The registration lines of a C++ text, comments and strings apart.
std::vector<Registration> findRegistrations(const std::string &text);

/// A user's file as code in this process.
class UserFile {
public:
  /// Compiles `path` with $CXX or c++ and loads it. The first of `includes` is where the language's headers are;
  /// without any it is looked for above this program and where it was built. `wanted` is the kernel asked for, for the
  /// example in the message about a file without kernels. Throws Error; what the compiler says goes to stderr.
  UserFile(const std::string &path, const std::vector<std::string> &includes, const std::string &wanted);
  ~UserFile();
  UserFile(const UserFile &) = delete;

  const std::vector<const Kernel *> &kernels() const { return found; }

private:
  void *library = nullptr;
  std::vector<const Kernel *> found;
};

} // namespace kiln::tools
