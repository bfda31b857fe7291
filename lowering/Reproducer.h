// Reproducers: files that repeat a compilation that failed because of a bug in the compiler.
//
// They are written to KILN_DUMP, otherwise to the temporary folder, which other users may share. So a file is always
// created new, and readable by this user alone. Their number is limited: one per distinct error, and a maximum per
// process and per folder. Their size is limited, too.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

inline constexpr int maxReproducersOfAProcess = 8, maxReproducersInAFolder = 32;
inline constexpr int64_t maxReproducerBytes = int64_t(4) << 20;

/// Writes the module `original` and the pipeline of `pm` for a failure with the message `error`, once per message in a
/// process. Returns the command, `run it again with: kiln-opt --run-reproducer FILE`, or the reason why there is none,
/// `no reproducer was written: …`.
std::string writeReproducer(mlir::PassManager &pm, mlir::ModuleOp original, const std::string &kernel,
                            const std::string &error);

} // namespace kiln::lowering
