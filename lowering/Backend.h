// What a target gives the compiler: the compile half of a machine. Its run half is a Device (runtime/Device.h); several
// devices may share a backend. lowering/Driver.h does what all backends share and calls these.

#pragma once

#include "lowering/Explanation.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class Module;
}

namespace kiln::lowering {

/// Called after each stage (see Backend::stages) with its text.
using StageSink = std::function<void(const std::string &stage, const std::string &text)>;

/// Which facts of a launch's arguments and config a backend's passes read, beside types, ranks, the extents that a
/// kernel asks for and which arguments lie apart. Every other fact is in no module and no key, where it would only make
/// the same code twice.
struct FactKinds {
  int64_t innerStrides = 1; // an innermost stride from 1 to this one is known; any other is not
  bool alignment = false;   // of the first element
  bool stridesBy16 = false; // whether 16 divides the other strides
  bool extentBy16 = false;  // whether 16 divides the last extent
  bool fits32 = false;      // whether extents and strides fit 32 bits: see `tile.fits_32` in dialect/README.md
  bool warps = false;       // the config's field `warps`
  bool stages = false;      // the config's field `stages`
  bool problems = false;    // how many problems a launch has: it has all at once
};

/// Which kernels a backend takes.
struct KernelLimits {
  int64_t elements = 1 << 24; // most of a tile
  bool lowered = true;        // parts of a module may be lowered already
};

/// A stage of a compilation: its name, and the pass after which the module is its text. Stages that a backend prints
/// itself, in emit(), have no pass; nor has the last, the code.
struct Stage {
  const char *name;
  const char *after = nullptr;
};

/// Immutable; from any thread.
class Backend {
public:
  virtual ~Backend() = default;

  /// The target as flags spell it, such as "cpu", "cpu:generic" or "cpu:x86-64-v3".
  virtual const std::string &name() const = 0;
  /// All that the code depends on besides the module and the compiler.
  virtual const std::string &key() const = 0;
  virtual FactKinds facts() const = 0;
  virtual KernelLimits limits() const = 0;
  /// Whether the code tells the source line of each instruction, so that it depends on these lines, too.
  virtual bool tellsLines() const = 0;
  /// Whether it adds, subtracts, multiplies, fuses and compares bf16 and f16, and converts to f16, rounding once.
  virtual bool hasNarrowArithmetic() const = 0;
  /// How it multiplies floats of 8 bits: as bf16; as they are, with sums that are as exact as those of bf16; or with
  /// coarser ones.
  enum class ByteProducts { widened, exact, coarse };
  virtual ByteProducts byteProducts() const { return ByteProducts::widened; }
  /// Its stages in the order they come, after "tile", which all have.
  virtual llvm::ArrayRef<Stage> stages() const = 0;

  /// The dialects that its passes make, and their translations to LLVM.
  virtual void registerDialects(mlir::DialectRegistry &registry) const = 0;
  /// Registers its passes by their flags; once for each process.
  virtual void registerPasses() const = 0;
  /// Adds its passes, from a module of the tile dialect as the shared ones leave it to one that translates to LLVM;
  /// only those up to the stage `until`, one of stages() with a pass, when it is not empty.
  virtual void addPasses(mlir::OpPassManager &pm, llvm::StringRef until) const = 0;
  /// Adds what there is to tell people of the module as it is after a stage that passes make.
  virtual void explain(llvm::StringRef stage, mlir::ModuleOp module, Explanation &explanation) const = 0;
  /// The code that a device loads; `sink`, when set, gets the stages on the way. Throws BackendError (FatalErrors.h).
  virtual std::vector<char> emit(llvm::Module &module, const StageSink &sink) const = 0;
  /// The command that does what emit() does, on LLVM's text from standard input.
  virtual std::string emitCommand() const = 0;
};

/// The backend of a target: "cpu" or "native" (this machine), "cpu:NAME" or NAME for a CPU by LLVM's name, each
/// followed by ":generic" for the oracle, or by ":amx" for products on AMX's tiles, which are emulated where the
/// processor has none; "sm_80" or another architecture for a GPU. Throws Error for a name that is
/// none, and for a machine that Kiln does not run on.
std::shared_ptr<const Backend> openBackend(const std::string &name);

/// Every kind of backend there is, one of each: what registries are filled from.
std::vector<std::shared_ptr<const Backend>> allBackends();

} // namespace kiln::lowering
