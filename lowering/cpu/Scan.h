// Scans on native vectors. Along the lanes a vector is scanned by itself, in steps of twice the distance each, and then
// combined with what comes before it; columns are combined with the row before.
//
// What has been combined so far is the *carry*, a state (Combiner.h) in vectors. Of a function, which has nothing that
// could stand for no element, the first carry is ignored where the first elements come.

#pragma once

#include "lowering/cpu/Loops.h"
#include "lowering/tile/Combiner.h"

namespace kiln::lowering::cpu {

class Scan {
public:
  Scan(Evaluator &evaluator, tile::ScanOp op) : e(evaluator), op(op), combiner(Combiner::of(op)) {}

  using State = Combiner::State;
  bool isReversed() { return op.getReverse(); }

  /// The carry before the first element.
  State begin();
  /// The results at `index`, which `e` evaluates the tiles at, and the carry behind them.
  State step(const Index &index, State &carry);

private:
  State combine(const State &earlier, const State &later);
  State choose(mlir::Value condition, const State &a, const State &b);
  State neutral();
  /// Each lane with all before it, of `valid` ones.
  State scanLanes(State lanes, int64_t valid);
  State shuffled(const State &state, const State &other, llvm::ArrayRef<int64_t> order);
  /// `carry` and then `state`, or `state` alone where `isFirst` (i1, null: never) holds.
  State after(const State &carry, const State &state, mlir::Value isFirst);

  Evaluator &e;
  tile::ScanOp op;
  const Combiner combiner;
};

/// The scans of a nest, and their carries now.
class Scans {
public:
  Scans(Evaluator &evaluator, llvm::ArrayRef<Root> roots);

  bool empty() const { return scans.empty(); }
  bool isBackwards() {
    return llvm::any_of(scans, [](Scan &scan) { return scan.isReversed(); });
  }
  /// Whether the tile follows from what one of them gives.
  bool isBehind(mlir::Value tile) const;

  /// Sets the carries to what they are before the first elements.
  void begin();
  /// The values, and behind them those of the carries.
  llvm::SmallVector<mlir::Value> with(llvm::SmallVector<mlir::Value> values) const;
  /// Sets the carries to the last of the values.
  void take(mlir::ValueRange values);
  /// How many values the carries are.
  size_t width() const { return with({}).size(); }
  /// Does a scan at `index`.
  void step(const Root &root, const Index &index);
  /// Writes what is needed of the last elements, which are the carries now, of the lines at `index`.
  void finish(Index index);

private:
  Evaluator &e;
  const llvm::ArrayRef<Root> roots;
  llvm::SmallVector<Scan> scans;                    // of the roots that are scans, in their order
  llvm::SmallVector<Scan::State> carries;           // of each
  mutable llvm::DenseMap<mlir::Value, bool> behind; // the answers of isBehind
};

} // namespace kiln::lowering::cpu
