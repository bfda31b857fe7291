// The C source of an archive: its header, and the launcher that checks arguments and runs the code. The launcher is
// tables of the kernel, which are written here, and the fixed texts in launcher/, which work on them.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "runtime/Signature.h"

namespace kiln::tools {

/// A kernel's code for one target.
struct TargetCode {
  std::string target; // as the command line spells it
  bool isGpu = false;
  Signature signature;
  std::vector<char> code;            // in the form of lowering/Abi.h
  std::vector<std::string> features; // that a CPU must have, by the names of __builtin_cpu_supports
};

/// A kernel in an archive. Its codes for CPUs come first, each kind with the one first that is to be chosen where it
/// runs. All of a kind have one signature.
struct ArchivedKernel {
  std::string name; // of functions and files
  const Kernel &kernel;
  std::string config;
  std::vector<TargetCode> codes;

  /// The symbol of a CPU's code: `axpy_x86_64_v3`.
  std::string symbolOf(const TargetCode &code) const;
  /// The symbols that this code calls: NAME_check_failed, NAME_waits and NAME_print.
  std::string checkFailed() const { return name + "_check_failed"; }
  std::string waits() const { return name + "_waits"; }
  std::string print() const { return name + "_print"; }
};

/// The name of an argument in C.
std::string fieldOf(const Kernel &kernel, size_t index);
/// The header: C99 and C++.
std::string headerOf(const ArchivedKernel &kernel);
/// The source of the launcher, for the system's C compiler.
std::string launcherOf(const ArchivedKernel &kernel);

} // namespace kiln::tools
