// A reduction within warps: first a thread's values, by halving, then across lanes, by shuffles.
//
// Values are in vectors with one element for each position of the result. A step across lanes exchanges with the lane
// that differs in one bit, so that both have the same result. Padding along the axis is replaced by the neutral
// element.

#include "lowering/gpu/ThreadCode.h"

#include "lowering/tile/Combiner.h"

using namespace mlir;

namespace kiln::lowering::gpu {

namespace {

/// A state (Combiner.h) in vectors of equal length, with an element for each position of the result.
using State = Combiner::State;

class Reducer {
public:
  Reducer(ThreadCode &code, simt::ReduceOp op)
      : code(code), op(op), combiner(op.getKind(), getElementTypeOrSelf(op.getSources()[0].getType())),
        emit(code.builder, code.loc), attribute(simt::layoutOf(op.getSources()[0])), layout(attribute.getLayout()),
        axis(static_cast<unsigned>(op.getAxis())) {}

  void lower() {
    SmallVector<State> parts = partsOfThread();
    while (parts.size() > 1) { // halving
      SmallVector<State> next;
      for (size_t i = 0; i + 1 < parts.size(); i += 2)
        next.push_back(combiner.combine(emit, parts[i], parts[i + 1]));
      if (parts.size() % 2)
        next.push_back(parts.back());
      parts = std::move(next);
    }
    State result = parts[0];
    for (const simt::AxisBit &bit : layout.axisBits(axis)) {
      if (bit.part != Hw::lane)
        continue;
      State other;
      for (const Value vector : result)
        other.push_back(code.exchanged(vector, int64_t{1} << bit.index));
      result = combiner.combine(emit, result, other);
    }
    for (const auto [tile, vector] : llvm::zip_equal(op.getResults(), result))
      code.set(tile, vector);
  }

private:
  SmallVector<State> partsOfThread();

  ThreadCode &code;
  simt::ReduceOp op;
  const Combiner combiner;
  Emit emit;
  const LayoutAttr attribute;
  const TileLayout layout;
  const unsigned axis;
};

/// The vector of values for each of a thread's positions along the axis, in order.
SmallVector<State> Reducer::partsOfThread() {
  const TileLayout result = simt::layoutOf(op.getResults()[0]).getLayout();
  State all;
  for (const auto [neutral, source] : llvm::zip_equal(combiner.neutral(), op.getSources()))
    all.push_back(code.paddedWith(neutral, code.held(source), attribute, axis));

  SmallVector<int64_t> steps;
  for (int64_t stored = 0; stored < layout.numStored(); ++stored)
    if (const int64_t at = layout.positionOf(stored)[axis]; !llvm::is_contained(steps, at))
      steps.push_back(at);
  llvm::sort(steps);
  SmallVector<State> parts;
  for (const int64_t step : steps) {
    Indices indices;
    for (int64_t stored = 0; stored < result.numStored(); ++stored) {
      SmallVector<int64_t> position = result.positionOf(stored);
      position[axis] = step;
      indices.push_back(*layout.storedAt(position));
    }
    State &part = parts.emplace_back();
    for (const Value vector : all)
      part.push_back(code.pick(vector, indices));
  }
  return parts;
}

} // namespace

void distribute(ThreadCode &code, simt::ReduceOp op) { Reducer(code, op).lower(); }

} // namespace kiln::lowering::gpu
