// The compiler as functions: from a module of the tile dialect to a backend's code, with every stage open to
// inspection.

#pragma once

#include "lowering/Backend.h"

namespace kiln::lowering {

/// Registers what every backend needs (dialects, translations) in a registry; call once for each context.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers all passes of ours by their flags; once for each process.
void registerPasses();

/// Adds all passes from a kernel as it was traced to a module that translates to LLVM, the shared ones and the
/// backend's; only those that lead to the stage `until` when it is not empty (see Backend::addPasses).
void buildPipeline(mlir::OpPassManager &pm, const Backend &backend, llvm::StringRef until = "");
/// Registers it as `--kiln="target=NAME until=STAGE"` for kiln-opt; once for each process.
void registerPipeline();

/// The text of an operation as stages show it: arguments are called by their names.
std::string stageText(mlir::Operation *op, mlir::OpPrintingFlags flags = {});

/// Runs everything and returns the backend's code (lowering/Abi.h says what it looks like from outside); `module` stays
/// as it is. On failure throws kiln::Error (user or internal) with the diagnostics. LLVM's fatal errors, failed
/// assertions and crashes are turned into such an error too, and the process lives on (Crashes.h says what it does with
/// signals meanwhile). From any thread, a context each.
std::vector<char> compile(mlir::ModuleOp module, const Backend &backend, const StageSink &sink = {});

/// What the backend makes of a kernel, told to people; empty where it has nothing to tell. Throws as compile does.
std::string explain(mlir::ModuleOp module, const Backend &backend);

} // namespace kiln::lowering
