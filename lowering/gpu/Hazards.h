// Which two accesses of one program must not overtake each other.
//
// Two accesses *conflict* when they may touch the same bytes, one of them writes, and it is not the same thread each
// time. Elements that one view has at different positions are taken to lie apart. What is known of positions:
//
//     which thread    the same layout at the same offsets, or at offsets that differ by multiples of the tile's
//     extents,
//                     brings each thread back to its own elements: an element's thread follows from its position alone
//     which elements  offsets that differ by the tile's extent or more, such as those of two rounds of a loop that goes
//                     on by it
//
// In shared memory the bytes, strides and layout say both.

#pragma once

#include "dialect/simt/SimtDialect.h"

#include "lowering/analysis/Rounds.h"

#include <optional>
#include <string>

namespace kiln::lowering::gpu {

/// An i64 as a value and a number to be added to it; without a value the number alone.
struct Sum {
  mlir::Value value;
  int64_t number = 0;
  bool operator==(const Sum &) const = default;
};

/// Where a tile lies along one dimension of its view.
struct Span {
  int64_t extent = 1;
  std::optional<Sum> offset;  // nothing: unknown
  std::optional<Sum> residue; // the offset but for a multiple of the extent
  mlir::Value earlier;        // the position of a loop: the offset is that of an earlier round
  bool operator==(const Span &) const = default;
};

/// One access of memory.
struct Access {
  mlir::Operation *op = nullptr;
  bool writes = false;
  bool isCopy = false;     // by copies that are under way until the threads have waited for them
  bool isProduct = false;  // by products that are under way until the threads have waited for them
  int64_t newer = 0;       // of a product: those that the threads have begun since
  simt::LayoutAttr layout; // which thread goes to which element; null: any may go anywhere
  // Of shared memory: the buffer, and how a position becomes a byte.
  simt::BufferOp buffer;
  mlir::Value offset;
  llvm::SmallVector<int64_t, 4> strides;
  simt::ImageAttr image;              // in place of strides
  llvm::SmallVector<int64_t, 2> slot; // as simt.fetch has it, n modulo s; empty: it may be any
  mlir::Type element;
  // Of global memory: the view, null for all of it, and the tile's place, empty when it is unknown.
  mlir::Value view;
  llvm::SmallVector<Span, 4> spans;

  bool operator==(const Access &) const = default;

  /// Makes this an access of an earlier round of `loop`, whose values were others; of one that has ended without
  /// `goesOn`.
  void leaveRound(const Rounds &loop, bool goesOn);
  /// Whether nothing makes it wait, but what waits for copies or products.
  bool isUnderWay() const { return isCopy || isProduct; }
  /// Whether a wait for all groups of copies but the newest `pending` waits for this one. A group is made for each slot
  /// of a ring, in their order, and the one of the slot before that which is read next comes after the wait.
  bool isAwaited(int64_t pending) const;
};

/// What `op` itself accesses: a place or two, all of global memory, or nothing that others may conflict with.
llvm::SmallVector<Access, 2> accessesOf(mlir::Operation *op);

/// Whether `op` begins a product that is under way until the threads have waited for it.
bool beginsProduct(mlir::Operation *op);

bool conflict(const Access &before, const Access &after);

/// Whether the body runs at least once, and whether it never runs a second time.
bool surelyRuns(const Rounds &rounds);
bool runsOnceAtMost(const Rounds &rounds);

/// `shared memory written, then read`.
std::string describe(const Access &before, const Access &after);

} // namespace kiln::lowering::gpu
