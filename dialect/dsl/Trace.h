// Traces a kernel: calls its function and returns the MLIR module that it records. The runtime and the driver call
// this. It is the only public header of the language that includes MLIR.

#pragma once

#include "dialect/dsl/Kernel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <set>
#include <utility>

namespace kiln {

/// Facts about one argument that are part of the specialisation.
struct ArgFacts {
  bool isView = true;
  Type type = Type::f32;
  // Views only. Extents are the real ones; tracing reads those that the kernel makes static by View::extent.
  Shape extents;
  int64_t innerStride = 1;  // of the innermost dimension; 0 if it is not part of the specialisation
  int64_t alignment = 1;    // bytes: 1, 16 or 64
  bool stridesBy16 = false; // every other stride is a multiple of 16 elements
  bool extentBy16 = false;  // the last extent is a multiple of 16
  bool fits32 = false;      // as `tile.fits_32`
};

/// Facts about the arguments of a launch.
struct Specialisation {
  std::vector<ArgFacts> args;
  std::set<std::pair<int, int>> disjoint; // pairs (i < j) of view arguments that do not overlap
  bool warps = false,
       stages = false; // whether the target reads these fields of the config; with `warps` also `programs`
  std::vector<Kernel::NamedExtent> equalExtents; // extents that have one number, of two or more each
  int problems = 1;                              // problems of a grouped launch
  bool checksAssumptions = false;                // whether an assume() is also a device_assert()
};

/// A traced kernel. The module holds one `func.func` with the kernel's name and the attribute `tile.kernel`. A view
/// becomes `memref<…, strided<[?, …, 1]>>` (or has another innermost stride), a scalar a builtin scalar.
///
/// Argument attributes: `tile.align` (i64 bytes, if more than 1), `tile.strides_by_16`, `tile.extent_by_16`,
/// `tile.fits_32` (unit).
///
/// Function attributes:
/// - `tile.disjoint`: an array of index pairs (i64 arrays); the kernel writes at least one of each pair.
/// - `tile.equal_extents`: arrays of arguments and axes, in turn; the extents of each array are equal, not static,
///   and of arguments that the kernel uses.
/// - `tile.warps`, `tile.programs`, `tile.stages` (i64): the config fields `warps`, `min_ctas_per_sm` and `stages`, if
///   the kernel has them and the target reads them.
/// - `tile.problems` (i64): if more than 1.
struct Traced {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::set<std::pair<int, int>> staticExtents;   // (argument, dimension) that View::extent made static
  std::vector<Kernel::NamedExtent> equalExtents; // as the attribute
  std::set<int> used;                            // arguments with operations
  std::set<int> read, written;                   // arguments that the kernel may read, and may write
};

/// Traces `kernel` under `config` (`name=value,…`). Errors go to the context's diagnostics at the user's lines; then
/// the module is null. Warnings go there, too, such as that of a kernel without an effect. The context must have the
/// dialects tile, arith, math, scf, func and memref loaded, and is used by one thread at a time. Nested traces are an
/// error.
///
/// Without `verifies`, mlir::verify does not run. Callers can skip it if they have cached code of an equal module,
/// which was verified. That saves a tenth of the time.
Traced trace(mlir::MLIRContext &context, const Kernel &kernel, const Specialisation &facts, const std::string &config,
             bool verifies = true);

} // namespace kiln
