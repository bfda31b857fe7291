// The state of a loop while it is traced, and its operations at its end. Internal to dialect/dsl.

#pragma once

#include "dialect/dsl/Tracer.h"

namespace kiln {

/// A traced loop, from `range` or `repeat_while` to the end of its range-for.
struct Loop::State {
  Tracer &tracer;
  Loc loc;
  mlir::Value begin, end, step;    // of range(), counted up
  mlir::Value flip = {};           // of a range that may count down: 0, or −1 if it does (LoopOps.cpp)
  std::function<Tile()> condition; // of repeat_while()
  Hints hints;
  mlir::Block *outside = nullptr; // the block of the finished loop
  mlir::Block *test = nullptr;    // the traced condition, with the arguments of a body
  mlir::Value holds = {};         // the value of the condition there
  size_t depth = 0;               // of the body in the stack of open bodies
  mlir::Value induction = {};     // set once the body is open
  mlir::Value position = {};      // what it counts for the body
  int left = 0;                   // how many traces of the body remain
  int exceptions = 0;             // in flight when the loop began; stack unwinding is not an error of the loop
  size_t cellsBefore = 0;         // number of cells when the loop began
  bool isOpen = false, isDone = false;

  bool isRange() const { return static_cast<bool>(step); }
};

/// The loop-carried cells: those of the loop's frame that the body changed.
llvm::SmallVector<FrameCell> carriedCells(Tracer &tracer, Frame &frame, Loc loc);
/// Moves the body of a frame into a new loop that carries these cells. `leaves` says how the body may be left.
void buildLoop(const Loop::State &state, Frame &frame, llvm::ArrayRef<FrameCell> carried, const Leaves &leaves);
/// Builds a loop with the given outcome whose body is not traced.
void buildWithoutBody(const Loop::State &state, const Outcome &outcome);

} // namespace kiln
