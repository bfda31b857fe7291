// --emit=archive: a kernel as a C header and a library that link without Kiln and without LLVM.
//
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=x86-64-v3,x86-64-v4,sm_90a --emit=archive -o DIR
//
// DIR/axpy.h declares the kernel's arguments, axpy_run for CPUs and axpy_launch for GPUs. DIR/libaxpy.a has the code of
// every target, which is the code that the runtime would compile, and the launcher (launcherOf).
//
// The launcher is C source: tables of the kernel, written by Launcher.cpp, and the fixed texts in launcher/, which work
// on them.

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
  std::vector<std::string> features; // that a CPU must have: cpuFeatures(target)
  std::string key;                   // of the compile cache
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
/// The files in launcher/, as a part of kilnc.
extern const char *const launcherTables, *const launcherArguments, *const launcherPrint, *const launcherCpu,
                                                                                             *const launcherGpu;

/// The options of an archive.
struct ArchiveOptions {
  std::string name;    // of the functions and files
  std::string args;    // as Trace.h has them
  std::string config;  // `name=value,…`
  std::string targets; // with commas
};

/// Compiles `kernel` for all targets, and writes NAME.h and libNAME.a into `folder`, which is made if it is not there.
/// The system's C compiler, $CC or cc, compiles the launcher. Throws Error.
void writeArchive(const Kernel &kernel, const ArchiveOptions &options, const std::string &folder);

/// --emit=image: compiles `kernel` for all targets into one file, for loadKernels() (runtime/KernelImage.h).
/// `registered` is the kernel before its expansion for the views of --args. Throws Error.
void writeImage(const Kernel &registered, const Kernel &kernel, const ArchiveOptions &options, const std::string &file);

} // namespace kiln::tools
