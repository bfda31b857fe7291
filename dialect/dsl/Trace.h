// From a kernel to a module: what the runtime and the driver call to trace. Only this header of the language knows
// MLIR.

#pragma once

#include "dialect/dsl/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>
#include <utility>

namespace kiln {

/// What a specialisation may know of one argument.
struct ArgFacts {
  bool isView = true;
  Type type = Type::f32;
  // Views only. Extents are the real ones: tracing asks for those that the kernel makes static, by View::extent.
  Shape extents;
  int64_t innerStride = 1;  // of the innermost dimension: 0 where it is not part of the specialisation
  int64_t alignment = 1;    // bytes: 1, 16 or 64
  bool stridesBy16 = false; // every other stride is a multiple of 16 elements
  bool extentBy16 = false;  // the last extent is a multiple of 16
  bool fits32 = false;      // as `tile.fits_32` says
};

/// The facts of a launch's arguments.
struct Specialisation {
  std::vector<ArgFacts> args;
  std::set<std::pair<int, int>> disjoint; // pairs (i < j) of view arguments that do not overlap
  bool warps = false, stages = false;     // whether the target reads these fields of the config; with warps, programs
  int problems = 1;                       // that a launch has arguments for
};

/// A traced kernel. The module holds one `func.func` named as the kernel, with the attribute `tile.kernel`. A view
/// becomes `memref<…, strided<[?, …, 1]>>` (or with another innermost stride), a scalar a builtin scalar. Argument
/// attributes: `tile.align` (i64 bytes, when more than 1), `tile.strides_by_16`, `tile.extent_by_16`,
/// `tile.fits_32` (unit); function attributes: `tile.disjoint`, an array of index pairs (i64 arrays), of which the
/// kernel writes at least one, and `tile.warps`, `tile.programs` and `tile.stages` (i64), which are the config's fields
/// of these names, where it has them and the target reads them, and `tile.problems` (i64), when more than 1.
struct Traced {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::set<std::pair<int, int>> asked; // (argument, dimension) made static by View::extent
  std::set<int> written;               // arguments that it may write
};

/// The tile module of `kernel` under `config` (`name=value,…`). Errors go to the context's diagnostics at the user's
/// lines; the module is null then. The context must have the tile, arith, math, scf, func and memref dialects loaded.
/// A trace within a trace is an error. The context is used by one thread at a time.
///
/// Unless it `verifies`, mlir::verify has yet to see the module: who finds code for an equal module, which it has seen,
/// saves a tenth of the time.
Traced trace(mlir::MLIRContext &context, const Kernel &kernel, const Specialisation &facts, const std::string &config,
             bool verifies = true);

} // namespace kiln
