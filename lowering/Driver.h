// The compiler as functions: from a module of the tile dialect to a backend's code. Every stage can be inspected.

#pragma once

#include "lowering/Backend.h"
#include "lowering/Sources.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace kiln::lowering {

/// Registers the dialects and translations of every backend; once per context.
void registerDialects(mlir::DialectRegistry &registry);

/// Registers all passes of Kiln by their flags; once per process.
void registerPasses();

/// Adds all passes, from a traced kernel to a module that translates to LLVM IR: the shared ones and the backend's.
/// With a stage `until`, only those up to it (see Backend::addPasses).
void buildPipeline(mlir::OpPassManager &pm, const Backend &backend, llvm::StringRef until = "");
/// Registers the pipeline as `--kiln="target=NAME until=STAGE"` for kiln-opt; once per process.
void registerPipeline();

/// The text of an operation in stages: arguments have their names.
std::string stageText(mlir::Operation *op, mlir::OpPrintingFlags flags = {});

/// Compiles `module`, which stays unchanged, to the backend's code (its form is in lowering/Abi.h). On failure it
/// throws kiln::Error (user or internal) with the diagnostics. Fatal errors, failed assertions and crashes of LLVM also
/// become such an error, and the process continues; Crashes.h describes the signal handlers. Thread-safe with one
/// context per thread. `explanation`, if set, gets what explain() would return.
std::vector<char> compile(mlir::ModuleOp module, const Backend &backend, const StageSink &sink = {},
                          Explanation *explanation = nullptr);

/// An explanation of the backend's choices for a kernel, for the user; may be empty. Throws as compile() does.
std::string explain(mlir::ModuleOp module, const Backend &backend);

/// A compilation as a reader sees it: each stage that is text, from "tile" on, and the explanation, which may be empty.
struct CompilationRecord {
  struct StageText {
    std::string name;
    SourcedText text;
  };
  std::vector<StageText> stages;
  Explanation explanation;
};

/// Compiles `module` and records its stages. A target whose code has no lines gets them here, so that a listing leads
/// back to the kernel, too. Throws as compile() does.
CompilationRecord record(mlir::ModuleOp module, const Backend &backend);

// --- Modules as text -------------------------------------------------------------------------------------------------

/// Maximum size of a module in bytes.
inline constexpr int64_t maxModuleBytes = int64_t(64) << 20;
/// Maximum nesting of brackets: loops, lists and types together.
inline constexpr int maxNesting = 256;
/// Maximum number of words and signs between two commas or brackets, outside of the body of a loop or function.
inline constexpr int maxWords = 1024;

/// Throws Error (user), `path:line: error: …`, if `text` is not UTF-8 or is a module that the parser must not see. A
/// text that passes may still be invalid.
void checkModuleText(llvm::StringRef text, const std::string &path);

} // namespace kiln::lowering
