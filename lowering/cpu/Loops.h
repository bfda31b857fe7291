// Loop nests for the operations that need them: stores, reductions, scans, and tiles that get scratch memory.
// Neighbouring ones over one shape share a nest, so that what they read is read once.

#pragma once

#include "lowering/cpu/Buffers.h"
#include "lowering/cpu/Lanes.h"

namespace kiln::lowering::cpu {

/// One operation that needs a loop nest.
struct Root {
  enum class Kind { store, reduce, place, check, scan } kind;
  mlir::Operation *op = nullptr; // the store, reduction, scan or check; for `place` where it stands
  mlir::Value value;             // the tile that is evaluated; of a scan the first
  mlir::Value buffer;            // where a placed tile or a reduction's tile goes; null for a reduction to a scalar
  int64_t axis = -1;             // reductions: the axis that disappears; scans: theirs; checks: the last
  // Of each result of a scan, null where nobody needs it in memory: all of it, and its last elements, an extent of 1.
  llvm::SmallVector<mlir::Value, 1> buffers = {}, lasts = {};
  // Of a store of merged rows, whose `value` is the tile before: the elements that those of it become (Lanes.h).
  std::optional<mlir::AffineMap> places = {};
  // Of a store of joined rows, whose `value` is the tile before they are merged: what chooses their elements.
  std::optional<JoinedRows> joined = {};

  llvm::ArrayRef<int64_t> shape() const { return tile::shapeOf(value.getType()); }
  bool isScan() const { return kind == Kind::scan; }
  /// Whether it places a transposed tile: read along its source's rows, and turned block by block.
  bool isTurned() const {
    return kind == Kind::place && llvm::isa<tile::TransposeOp>(op) && op == value.getDefiningOp();
  }
  bool isBackwards() const { return isScan() && llvm::cast<tile::ScanOp>(op).getReverse(); }
  /// Reductions and scans along another axis than the last keep a vector for each column instead of one for each row.
  bool isColumns() const {
    return (kind == Kind::reduce || isScan()) && axis != static_cast<int64_t>(shape().size()) - 1;
  }
};

/// Loads that a nest has read.
using ReadTiles = llvm::SmallPtrSet<mlir::Operation *, 8>;

/// Emits the nest for `roots` before `before`; all have one shape, and are columns of one axis or none is, but for what
/// columns of scans are stored as. Results of
/// reductions to scalars replace their operation's result. `read` gets what the nest reads; null: it reads all anew.
void emitLoops(llvm::ArrayRef<Root> roots, mlir::Operation *before, Machine machine,
               const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, ReadTiles *read = nullptr);

} // namespace kiln::lowering::cpu
