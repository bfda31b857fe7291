// Decides which operations share a loop nest (loop fusion). They are neighbours over one shape, and common operands are
// then read once. No operation may write memory that another reads at another element.

#pragma once

#include "lowering/cpu/LowerTiles.h"

namespace kiln::lowering::cpu {

/// The cost of a nest, above which no operation joins it: LLVM's time is quadratic in the length of a loop's body.
inline constexpr int64_t longestNest = 256;
/// Costs of an access with index tiles, and of a scan.
inline constexpr int64_t addressed = 16, scanned = 16;

/// The tiles that a nest reads: loads that are read directly from views, and tiles in scratch memory. The bool states
/// whether element i of the result depends only on element i of the tile.
struct Reads {
  llvm::SmallVector<std::pair<tile::AccessOp, bool>> loads;
  llvm::SmallVector<std::pair<mlir::Value, bool>> buffered;
  llvm::SmallVector<mlir::Value> scalars;
};

/// The loads and stores of a nest; `e` has the tiles in scratch memory.
llvm::SetVector<tile::AccessOp> accessesOf(llvm::ArrayRef<Root> roots, const Evaluator &e);

class Group {
public:
  /// `buffers` has the tiles that are in scratch memory so far.
  explicit Group(const llvm::DenseMap<mlir::Value, mlir::Value> &buffers) : buffers(buffers) {}

  bool empty() const { return roots.empty(); }
  void add(Root root);
  void clear() {
    roots.clear();
    reads.clear();
    results.clear();
    computed.clear();
    cost = 0;
  }
  /// Whether `root` may be in the nest of the group. It needs the group's shape and form, its operands must be defined
  /// before the nest, and the body must not become too long. No root may write memory that another reads or writes at
  /// another element.
  bool canJoin(const Root &root) const;
  /// The tiles that are read to compute `tile`.
  Reads collectReads(mlir::Value tile) const;
  /// Whether the result of a scan of the group has users outside of the group that read it element by element.
  bool isReadAfter(mlir::Value result) const;
  /// The operations that extract the last elements along a scan's axis from its result, if these are its only users.
  static llvm::SmallVector<tile::ExtractOp> lastElements(mlir::OpResult result);

  llvm::SmallVector<Root> roots;

private:
  void collect(mlir::Value value, bool same, Reads &reads, llvm::DenseSet<std::pair<mlir::Value, int>> &seen) const;
  Reads collectReads(const Root &root) const;
  /// Whether `root` may be computed in the order of the group's nest: along rows, or along columns of one axis. Results
  /// of column scans may be stored there. The nest may iterate forwards, or backwards if there is no sum.
  bool hasForm(const Root &root) const;
  /// Whether a store may overwrite an element that a member of its nest has read before. Not for a check, which may
  /// read the element again.
  bool mayWriteAfter(const Root &member, const Reads &reads, const Root &root) const;
  /// The cost of the values that `root` computes and no other root does; `seen` gets them.
  int64_t costOf(const Root &root, llvm::DenseSet<mlir::Value> &seen) const;

  const llvm::DenseMap<mlir::Value, mlir::Value> &buffers;
  llvm::SmallVector<Reads> reads;       // of each root
  llvm::SetVector<mlir::Value> results; // tiles that the group computes
  llvm::DenseSet<mlir::Value> computed; // all values of its roots' computations
  int64_t cost = 0;                     // of these
};

} // namespace kiln::lowering::cpu
