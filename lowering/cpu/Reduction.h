// Reductions on native vectors: elements go into states (Combiner.h), lane by lane, and a tree combines the lanes.

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

  /// Vectors that change nothing when combined.
  State neutral();
  /// Combines elements (a vector, `valid` of its lanes) into a state; `position` is the first lane's index along the
  /// axis, and `step` whether lanes advance along the axis (else all lanes have that index). A state may have more
  /// lanes than the elements.
  State add(const State &state, mlir::Value elements, mlir::Value position, bool step, int64_t valid);
  /// Combines two states; `later` covers positions that may come before or after.
  State combine(const State &a, const State &b);
  /// The same in `lanes` lanes, or as few as the state has: those that are as far apart meet.
  State folded(State state, int64_t lanes);
  /// Of states that follow each other in a line of lanes: a state whose lane i combines lanes i, i + `period`,
  /// i + 2 `period` … of the line, a multiple of `period` and of a state's lanes; for lanes below `period`.
  State periodic(llvm::ArrayRef<State> line, int64_t period);
  /// The result over all lanes, of the reduction's result type.
  mlir::Value acrossLanes(State state);
  /// The results over all lanes of as many states as there are lanes, one in each lane; not of argmax.
  mlir::Value acrossLanesOfAll(llvm::SmallVector<mlir::Value> states);
  /// The result of every lane by itself.
  mlir::Value lanes(const State &state);

private:
  /// What `arithmetic` computes, at the outermost level where `inputs` are known.
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
