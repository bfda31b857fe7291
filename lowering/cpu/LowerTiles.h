// The parts of cpu-lower-tiles. Stores, reductions, scans, checks and tiles in scratch memory become loop nests.
// Neighbouring operations over one shape share a nest (loop fusion), so that common operands are read once. Products,
// sorts, gathers within a tile and histograms have their own nests.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/Lanes.h"

namespace kiln::lowering::cpu {

/// One operation that needs a loop nest.
struct Root {
  enum class Kind { store, reduce, place, check, scan } kind;
  mlir::Operation *op = nullptr; // the store, reduction, scan or check; for `place`, the operation at its position
  mlir::Value value;             // the tile that is evaluated; of a scan, the first one
  mlir::Value buffer;            // scratch memory of a tile or of a reduction's result; null for a scalar result
  int64_t axis = -1;             // of reductions and scans; of checks, the last axis
  // For each result of a scan: the buffer of the whole result, and that of its last elements (extent 1). Null if not
  // needed.
  llvm::SmallVector<mlir::Value, 1> buffers = {}, lasts = {};
  // For a store of merged rows: the map from elements of `value`, the tile before merging, to the stored tile
  // (Lanes.h).
  std::optional<mlir::AffineMap> places = {};
  // For a store of joined rows: the choices of the elements. `value` is the tile before merging.
  std::optional<JoinedRows> joined = {};

  llvm::ArrayRef<int64_t> shape() const { return tile::shapeOf(value.getType()); }
  bool isScan() const { return kind == Kind::scan; }
  /// Whether it stores a transposed tile to scratch memory, which is read along its source's rows and transposed block
  /// by block.
  bool isTransposed() const {
    return kind == Kind::place && llvm::isa<tile::TransposeOp>(op) && op == value.getDefiningOp();
  }
  bool isBackwards() const { return isScan() && llvm::cast<tile::ScanOp>(op).getReverse(); }
  /// Whether it is a reduction or scan along an axis other than the last. It has one state for each vector of columns,
  /// instead of one for each row.
  bool isColumns() const {
    return (kind == Kind::reduce || isScan()) && axis != static_cast<int64_t>(shape().size()) - 1;
  }
};

/// Loads that a nest has read.
using ReadTiles = llvm::SmallPtrSet<mlir::Operation *, 8>;

/// Emits the nest for `roots` before `before`. All roots have one shape. Either all are columns of one axis or none is;
/// stores of the results of column scans are an exception. A reduction to a scalar replaces its operation's result.
/// `read` receives the loads of the nest; null: no earlier nest has read them.
void emitLoops(llvm::ArrayRef<Root> roots, mlir::Operation *before, Machine machine,
               const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, ReadTiles *read = nullptr);

// --- Products --------------------------------------------------------------------------------------------------------

/// The destination of a product's accumulators.
struct Destination {
  mlir::Value buffer;            // scratch memory; null if all accumulators go directly to the stores
  bool holdsAccumulator = false; // `buffer` has the old accumulator

  /// Fused stores (an epilogue) of `tile`: the product, or the result of the loop that carries it. In a loop, `first`
  /// (i1) means that the accumulator is zero and not yet in the buffer. `last` (i1) means that the stores receive the
  /// accumulators instead of the buffer. Only the product reads this buffer; its shape is panelType(tile). Without a
  /// loop both are null, and the stores receive all accumulators.
  llvm::SmallVector<tile::StoreOp, 2> stores;
  mlir::Value tile, first, last;
};

/// The shape of a product's accumulators in panels of columns, [panel][row][column], the order of their computation.
mlir::RankedTensorType panelType(mlir::Type tile, Machine machine);

/// Emits `dot` before itself.
void lowerDot(tile::DotOp dot, const Destination &to, Machine machine,
              const llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

// --- Sorts, gathers within a tile, and histograms --------------------------------------------------------------------

/// If `op` is an operation of dialect/tile/SortOps.td, emits its code before it and records the buffers of its results.
/// Returns whether it is one.
bool lowerSorts(mlir::Operation *op, Machine machine, llvm::DenseMap<mlir::Value, mlir::Value> &buffers);

} // namespace kiln::lowering::cpu
