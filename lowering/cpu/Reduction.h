// Reductions on native vectors. Vectors of elements are combined into states (Combiner.h), lane by lane. At the end, a
// tree combines the lanes.

#pragma once

#include "lowering/cpu/Evaluator.h"
#include "lowering/tile/Combiner.h"

namespace kiln::lowering::cpu {

class Reduction {
public:
  Reduction(Evaluator &evaluator, tile::ReduceKind kind, mlir::Type element)
      : e(evaluator), kind(kind), element(element), combiner(kind, element) {}

  using State = Combiner::State;
  bool hasIndex() const { return combiner.hasIndex(); }

  /// The identity state: combined with another state, it gives that state.
  State neutral();
  /// Combines elements (a vector, `valid` of its lanes) into a state; `position` is the first lane's index along the
  /// axis, and `step` whether lanes advance along the axis (else all lanes have that index). A state may have more
  /// lanes than the elements.
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

} // namespace kiln::lowering::cpu
