// --emit=archive: a kernel as a C header and a library that link without Kiln and without LLVM.
//
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=x86-64-v3,x86-64-v4,sm_90a --emit=archive -o DIR
//
// DIR/axpy.h declares the kernel's arguments, axpy_run for CPUs and axpy_launch for GPUs. DIR/libaxpy.a has the code of
// every target, which is the code that the runtime would compile, and the launcher (Launcher.h).

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln::tools {

/// The options of an archive.
struct ArchiveOptions {
  std::string name;    // of the functions and files
  std::string args;    // as ArgumentList has them
  std::string config;  // `name=value,…`
  std::string targets; // with commas
};

/// Compiles `kernel` for all targets, and writes NAME.h and libNAME.a into `folder`, which is made if it is not there.
/// The system's C compiler, $CC or cc, compiles the launcher. Throws Error.
void writeArchive(const Kernel &kernel, const ArchiveOptions &options, const std::string &folder);

} // namespace kiln::tools
