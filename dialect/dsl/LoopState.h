// A loop while it is traced, and the operations that it becomes at its end. Internal to dialect/dsl.

#pragma once

#include "dialect/dsl/Tracer.h"

namespace kiln {

/// A traced loop between `range` or `repeat_while` and the end of its range-for.
struct Loop::State {
  Tracer &tracer;
  Loc loc;
  mlir::Value begin, end, step;    // of a range
  std::function<Tile()> condition; // else
  Hints hints;
  mlir::Block *outside = nullptr; // where the loop will stand
  mlir::Block *test = nullptr;    // what the condition has become, with the arguments of a body
  mlir::Value holds = {};         // its value there
  size_t depth = 0;               // of the body among the open ones
  mlir::Value induction = {};     // set when the body has been opened
  int left = 0;                   // how often the body is still to be traced
  int exceptions = 0;             // in flight when the loop began: unwinding is no mistake of the loop
  size_t cellsBefore = 0;         // how many cells there were when the loop began
  bool isOpen = false, isDone = false;

  bool isRange() const { return static_cast<bool>(step); }
};

/// The cells of a loop's frame whose value the body changed.
llvm::SmallVector<FrameCell> carriedCells(Tracer &tracer, Frame &frame, Loc loc);
/// Puts the body of a frame, which carries these cells and may be left as `leaves` says, into a new loop.
void buildLoop(const Loop::State &state, Frame &frame, llvm::ArrayRef<FrameCell> carried, const Leaves &leaves);
/// A loop that changes its cells by a body that is not traced.
void buildWithoutBody(const Loop::State &state, const Outcome &outcome);

} // namespace kiln
