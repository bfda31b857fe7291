// The compiler as functions: from a tile module to an object file, with every stage open to inspection.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln::lowering {

/// The CPU that code is generated for.
struct CpuTarget {
  std::string cpu;      // LLVM's name: "sapphirerapids", "x86-64-v3"
  std::string features; // LLVM's feature string: "+avx512f,+fma,…"
  int vectorBits = 256; // width of a native vector
  int registers = 16;   // native vector registers
  int64_t l1Bytes = 32768, l2Bytes = 1 << 20;
  bool bf16Convert = false; // has f32 → bf16 conversion (AVX512-BF16)
};

/// The machine this runs on; throws kiln::Error below x86-64-v3.
CpuTarget hostCpu();
/// A CPU by LLVM's name ("native" is the host); throws kiln::Error for an unknown one or one below x86-64-v3.
CpuTarget cpuNamed(const std::string &name);

struct CpuOptions {
  bool generic = false; // the oracle: plain loops, nothing blocked
};

/// Registers what the pipelines need (dialects, translations, passes) in a registry; call once for each context.
void registerDialects(mlir::DialectRegistry &registry);

/// tile → loops over vectors (fast) or linalg on memrefs and loops (generic), still without the LLVM dialect.
void buildCpuLoopsPipeline(mlir::OpPassManager &pm, const CpuTarget &target, const CpuOptions &options);
/// … → LLVM dialect, ready for translation.
void buildCpuLlvmPipeline(mlir::OpPassManager &pm, const CpuTarget &target);
/// Registers both under the names that kiln-opt knows, `kiln-cpu` and `kiln-cpu-generic`; once for each process.
void registerPipelines();

/// Called after each named stage ("tile", "linalg", "loops", "llvm-dialect", "llvm", "asm") with its text, when set.
using StageSink = std::function<void(const std::string &stage, const std::string &text)>;

/// The text of an operation as stages show it: arguments are called by their names.
std::string stageText(mlir::Operation *op, mlir::OpPrintingFlags flags = {});

/// Runs everything and returns an ELF object (see Abi.h); `module` stays as it is. On failure throws kiln::Error (user or
/// internal) with the diagnostics. LLVM's fatal errors, failed assertions and crashes are turned into such an error too,
/// and the process lives on (Crashes.h says what it does with signals meanwhile). From any thread, a context each.
std::vector<char> compileToObject(mlir::ModuleOp module, const CpuTarget &target, const CpuOptions &options,
                                  const StageSink &sink = {});

} // namespace kiln::lowering
