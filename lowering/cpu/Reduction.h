// Reductions and scans on native vectors. Vectors of elements are combined into states (Combiner.h), lane by lane. At
// the end of a reduction, a tree combines the lanes.

#pragma once

#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/LowerTiles.h"
#include "lowering/tile/Combiner.h"

namespace kiln::lowering::cpu {

// --- Reductions ------------------------------------------------------------------------------------------------------

class Reduction {
public:
  Reduction(Evaluator &evaluator, tile::ReduceKind kind, mlir::Type element)
      : e(evaluator), kind(kind), element(element), combiner(kind, element) {}

  using State = Combiner::State;
  bool hasIndex() const { return combiner.hasIndex(); }

  /// The identity state: combined with another state, it gives that state.
  State neutral();
  /// Combines elements, `valid` lanes of a vector, into a state. `position` is the first lane's index along the axis.
  /// With `step`, lanes advance along the axis; otherwise all lanes have that index. A state may have more lanes than
  /// the elements.
  State add(const State &state, mlir::Value elements, mlir::Value position, bool step, int64_t valid);
  /// Combines two states; `later` covers positions that may come before or after.
  State combine(const State &a, const State &b);
  /// The state reduced to `lanes` lanes, if it has more: lane i combines lanes i, i + `lanes`, i + 2 · `lanes`, ….
  State folded(State state, int64_t lanes);
  /// `line` is a sequence of states, read as one line of lanes. Returns a state whose lane i, for i below `period`,
  /// combines lanes i, i + `period`, i + 2 · `period`, … of the line. The line's length is a multiple of `period` and
  /// of a state's lanes.
  State periodic(llvm::ArrayRef<State> line, int64_t period);
  /// The result over all lanes, of the reduction's result type.
  mlir::Value acrossLanes(State state);
  /// A vector of results: lane i is the result over all lanes of states[i]. There are as many states as lanes. Not for
  /// argmax.
  mlir::Value acrossLanesOfAll(llvm::SmallVector<mlir::Value> states);
  /// The result of each lane.
  mlir::Value lanes(const State &state);

private:
  /// Emits `arithmetic` at the outermost level where `inputs` are defined; returns its result.
  State emit(mlir::ValueRange inputs, llvm::function_ref<State(Emit &)> arithmetic);
  State none();
  State held(State state);
  mlir::Value padded(mlir::Value value, int64_t lanes, mlir::Value none);
  mlir::Value slice(mlir::Value value, int64_t first, int64_t lanes);

  Evaluator &e;
  const tile::ReduceKind kind;
  const mlir::Type element;
  const Combiner combiner;
};

// --- Scans -----------------------------------------------------------------------------------------------------------

// Scans on native vectors. Along the lanes, each vector is scanned in log2(lanes) steps, in which the distance doubles,
// and then combined with the result before it. In column scans, a row is combined with the row before.
//
// The *carry* is the combination of all elements so far, a state (Combiner.h) in vectors. A combine function has no
// identity element, so its initial carry is ignored at the first elements.

class Scan {
public:
  Scan(Evaluator &evaluator, tile::ScanOp op) : e(evaluator), op(op), combiner(Combiner::of(op)) {}

  using State = Combiner::State;
  bool isReversed() { return op.getReverse(); }

  /// The carry before the first element.
  State begin();
  /// The results at `index`. `e` evaluates the tiles there. Updates `carry`.
  State step(const Index &index, State &carry);

private:
  State combine(const State &earlier, const State &later);
  State choose(mlir::Value condition, const State &a, const State &b);
  State neutral();
  /// Combines each of the `valid` lanes with all lanes before it.
  State scanLanes(State lanes, int64_t valid);
  State shuffled(const State &state, const State &other, llvm::ArrayRef<int64_t> order);
  /// `carry` combined with `state`; only `state` if `isFirst` (i1; null: false) holds.
  State after(const State &carry, const State &state, mlir::Value isFirst);

  Evaluator &e;
  tile::ScanOp op;
  const Combiner combiner;
};

/// The scans of a nest, and their present carries.
class Scans {
public:
  Scans(Evaluator &evaluator, llvm::ArrayRef<Root> roots);

  bool empty() const { return scans.empty(); }
  bool isBackwards() {
    return llvm::any_of(scans, [](Scan &scan) { return scan.isReversed(); });
  }
  /// Whether the tile depends on the result of one of the scans.
  bool dependsOnScan(mlir::Value tile) const;

  /// Sets the carries to their initial values.
  void begin();
  /// `values`, followed by the values of the carries.
  llvm::SmallVector<mlir::Value> with(llvm::SmallVector<mlir::Value> values) const;
  /// Sets the carries to the last width() of `values`.
  void take(mlir::ValueRange values);
  /// The number of values of all carries.
  size_t width() const { return with({}).size(); }
  /// Emits one step of a scan at `index`.
  void step(const Root &root, const Index &index);
  /// Writes the last elements of the lines at `index`, which are the carries, to the buffers that need them.
  void finish(Index index);

private:
  Evaluator &e;
  const llvm::ArrayRef<Root> roots;
  llvm::SmallVector<Scan> scans;                        // of the roots that are scans, in their order
  llvm::SmallVector<Scan::State> carries;               // of each
  mutable llvm::DenseMap<mlir::Value, bool> dependents; // the answers of dependsOnScan
};

} // namespace kiln::lowering::cpu
