// Which operations share a loop nest: neighbours over one shape, so that what they read is read once, as long as
// nothing that one writes is read by another at another element.

#pragma once

#include "lowering/cpu/Loops.h"

namespace kiln::lowering::cpu {

/// The cost of a nest, above which no operation joins it: LLVM's time is quadratic in the length of a loop's body.
inline constexpr int64_t longestNest = 256;
/// Costs of an access with a position for each element, and of a scan.
inline constexpr int64_t addressed = 16, scanned = 16;

/// What is read by a nest: loads that stay views, and tiles in scratch memory.
struct Reads {
  llvm::SmallVector<std::pair<tile::AccessOp, bool>> loads; // and whether element i feeds element i
  llvm::SmallVector<std::pair<mlir::Value, bool>> buffered; // the same
  llvm::SmallVector<mlir::Value> scalars;
};

/// The loads and stores of a nest, whose tiles in scratch memory `e` knows.
llvm::SetVector<tile::AccessOp> accessesOf(llvm::ArrayRef<Root> roots, const Evaluator &e);

class Group {
public:
  /// `buffers` has the tiles that are in scratch memory by now.
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
  /// Whether `root` may run in the nest of the group: same shape and form, everything it needs known before the nest,
  /// a body that is not too long, and no memory that one writes and another reads or writes at another element.
  bool canJoin(const Root &root) const;
  /// What computing a tile reads.
  Reads readsOf(mlir::Value tile) const;
  /// Whether what a scan of the group gives is read by others than the group, each at the same element.
  bool isReadBehind(mlir::Value result) const;
  /// The operations that take the last elements along a scan's axis of what it gives, if nothing else is read of it.
  static llvm::SmallVector<tile::ExtractOp> lastsOf(mlir::OpResult result);

  llvm::SmallVector<Root> roots;

private:
  void collect(mlir::Value value, bool same, Reads &reads, llvm::DenseSet<std::pair<mlir::Value, int>> &seen) const;
  Reads readsOf(const Root &root) const;
  /// Whether `root` may be computed in the order of the group's nest: along rows, or along columns of one axis, which
  /// may be stored where they are scanned; forwards, or backwards, as no sum is added.
  bool hasForm(const Root &root) const;
  /// Whether a store may overwrite what a member of its nest has read at the same element. A check may read it again.
  bool mayWriteBehind(const Root &member, const Reads &reads, const Root &root) const;
  /// The cost of the values that `root` computes and no other root does; `seen` gets them.
  int64_t costOf(const Root &root, llvm::DenseSet<mlir::Value> &seen) const;

  const llvm::DenseMap<mlir::Value, mlir::Value> &buffers;
  llvm::SmallVector<Reads> reads;       // of each root
  llvm::SetVector<mlir::Value> results; // tiles that the group computes
  llvm::DenseSet<mlir::Value> computed; // all values of its roots' computations
  int64_t cost = 0;                     // of these
};

} // namespace kiln::lowering::cpu
