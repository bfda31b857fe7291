// Arithmetic of reductions on native vectors: the neutral element, combining, and the tree over the lanes.
//
// Sums of bf16 and f16 are kept in f32. argmax keeps a pair: a key that orders floats as integers, NaN below all, and
// the index; ties keep the lower index.

#pragma once

#include "lowering/cpu/Evaluator.h"

namespace kiln::lowering::cpu {

class Reduction {
public:
  Reduction(Evaluator &evaluator, tile::ReduceKind kind, mlir::Type element)
      : e(evaluator), kind(kind), element(element) {}

  /// One value, or key and index for argmax.
  using State = llvm::SmallVector<mlir::Value, 2>;

  /// Vectors that change nothing when combined.
  State neutral();
  /// Combines elements (a vector, `valid` of its lanes) into a state; `position` is the first lane's index along the
  /// axis, and `step` whether lanes advance along the axis (else all lanes have that index).
  State add(const State &state, mlir::Value elements, mlir::Value position, bool step, int64_t valid);
  /// Combines two states; `later` covers positions that may come before or after.
  State combine(const State &a, const State &b);
  /// The result over all lanes, of the reduction's result type.
  mlir::Value acrossLanes(State state);
  /// The results over all lanes of as many states as there are lanes, one in each lane; not of argmax.
  mlir::Value acrossLanesOfAll(llvm::SmallVector<mlir::Value> states);
  /// The result of every lane by itself.
  mlir::Value lanes(const State &state);

private:
  mlir::Type accumulated() const;
  mlir::Value pick(mlir::Value a, mlir::Value b);
  mlir::Value keyOf(mlir::Value elements);

  Evaluator &e;
  const tile::ReduceKind kind;
  const mlir::Type element;
};

} // namespace kiln::lowering::cpu
