// A target as the compiler sees it: its passes and its code generation. The device that runs the code is a Device
// (runtime/Device.h); several devices may share a backend. lowering/Driver.h has the parts that all backends share.

#pragma once

#include "lowering/Abi.h"
#include "lowering/Sources.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/TypeRange.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace kiln::lowering {

/// Called after each stage (see Backend::stages) with its text.
using StageSink = std::function<void(const std::string &stage, const std::string &text)>;

/// The facts about a launch's arguments and config that a backend's passes read. Types, ranks, the extents that a
/// kernel reads as constants, and disjoint arguments are always facts. A fact that no pass reads is in no module and no
/// cache key, because it would only compile equal code twice.
struct FactKinds {
  int64_t innerStrides = 1;       // innermost strides from 1 to this one are facts; others are not
  bool alignment = false;         // of the first element
  bool stridesBy16 = false;       // whether 16 divides the other strides
  bool extentBy16 = false;        // whether 16 divides the last extent
  bool fits32 = false;            // whether extents and strides fit 32 bits: see `tile.fits_32` in dialect/README.md
  bool warps = false;             // the config's field `warps`
  bool stages = false;            // the config's field `stages`
  bool problems = false;          // the number of problems of a grouped launch, which the target runs at once
  bool checksAssumptions = false; // kernels check their assumptions, for a device that reports mistakes
};

/// Limits on kernels for a backend.
struct KernelLimits {
  int64_t elements = 1 << 24; // maximum number of elements of a tile
  bool lowered = true;        // accepts modules of which parts are already lowered
};

/// A stage of a compilation: its name, and the pass whose output it is. Stages that a backend prints itself, in emit(),
/// have no pass; nor does the last one, the code.
struct Stage {
  const char *name;
  const char *after = nullptr;
};

/// Immutable and thread-safe.
class Backend {
public:
  virtual ~Backend() = default;

  /// The target as flags spell it, such as "cpu", "cpu:generic" or "cpu:x86-64-v3".
  virtual const std::string &name() const = 0;
  /// Everything that determines the code, except the module and the compiler: a part of the cache key.
  virtual const std::string &key() const = 0;
  virtual FactKinds facts() const = 0;
  virtual KernelLimits limits() const = 0;
  /// Whether the code has line information, and so depends on the source lines, too.
  virtual bool tellsLines() const = 0;
  /// Whether the target has arithmetic of bf16 and f16 with one rounding: add, subtract, multiply, FMA, compare, and
  /// conversion to f16.
  virtual bool hasNarrowArithmetic() const = 0;
  /// How the target multiplies 8-bit floats: widened to bf16; directly, with sums as exact as those of bf16; or
  /// directly, with coarser sums.
  enum class ByteProducts { widened, exact, coarse };
  virtual ByteProducts byteProducts() const { return ByteProducts::widened; }
  /// Its stages in order, after "tile", which all backends have.
  virtual llvm::ArrayRef<Stage> stages() const = 0;

  /// Registers the dialects that its passes create, and their translations to LLVM IR.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;
  /// Registers its passes by their flags; once per process.
  virtual void registerPasses() const = 0;
  /// Adds its passes, from a module of the tile dialect after the shared passes to one that translates to LLVM IR. With
  /// a stage `until`, which has a pass, only the passes up to it.
  virtual void addPasses(mlir::OpPassManager &pm, llvm::StringRef until) const = 0;
  /// Adds explanations of the module after a stage, for the user; also before the passes, stage "tile".
  virtual void explain(llvm::StringRef stage, mlir::ModuleOp module, Explanation &explanation) const = 0;
  /// Generates the code that a device loads; `sink`, if set, gets the stages. Throws BackendError (Crashes.h).
  virtual std::vector<char> emit(llvm::Module &module, const StageSink &sink) const = 0;
  /// A command that does the work of emit() on LLVM IR from standard input.
  virtual std::string emitCommand() const = 0;
};

/// Opens the backend of a target. Throws Error for an unknown name, and for a machine that Kiln does not support.
/// - "cpu" or "native": this machine. "cpu:NAME" or NAME: a CPU by LLVM's name.
/// - ":generic" after one of these: the reference backend. ":amx": matmuls on AMX tiles, emulated without AMX.
/// - "sm_80" or another architecture: a GPU. ":cubin" after it: with a cubin.
/// - ":checked" after the name of a GPU: kernels check their assumptions.
std::shared_ptr<const Backend> openBackend(const std::string &name);

/// One backend of every kind, to fill registries.
std::vector<std::shared_ptr<const Backend>> allBackends();

// --- The last lowering, shared by all targets ------------------------------------------------------------------------

/// Registers the dialects that remain before this lowering, with their conversions.
void registerLlvmConversions(mlir::DialectRegistry &registry);

/// Adds one pass that converts all dialects registered with a conversion, also those of a backend, in one walk.
/// Separate passes would insert and then remove casts between them.
void addConvertToLlvm(mlir::OpPassManager &pm);

// --- Arguments of kernels --------------------------------------------------------------------------------------------

/// The slots after the grid for arguments of these types, scalars and strided views. For each argument in turn: a
/// view's pointer, dynamic extents and dynamic strides, or a scalar. Backends read slots in this order, and the runtime
/// writes them in this order.
std::vector<abi::Slot> slotsOf(mlir::TypeRange arguments);

} // namespace kiln::lowering
