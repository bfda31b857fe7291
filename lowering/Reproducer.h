// Files that repeat a compilation which failed by a mistake of the compiler's.
//
// They go to KILN_DUMP, else to the temporary folder, which others may share: a file is made, never opened, for this
// user alone. They stay few and small, however often a program runs into a mistake: one for each distinct error, so
// many in a process, so many in a folder.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

inline constexpr int mostReproducersOfAProcess = 8, mostReproducersInAFolder = 32;
inline constexpr int64_t mostReproducerBytes = int64_t(4) << 20;

/// Writes the module `original` and the pipeline of `pm` for the failure that said `error`, unless this process has for
/// the same error. Returns the line that runs it, `run it again with: kiln-opt --run-reproducer FILE`, or why there is
/// none, `no reproducer was written: …`.
std::string writeReproducer(mlir::PassManager &pm, mlir::ModuleOp original, const std::string &kernel,
                            const std::string &error);

} // namespace kiln::lowering
