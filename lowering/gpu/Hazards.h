// Decides whether two accesses of one program conflict, so that a barrier is needed between them.
//
// Two accesses *conflict* if they may access common bytes, one of them writes, and different threads may do so.
// Elements at different positions of one view are assumed not to overlap. In global memory, these facts exclude a
// conflict:
//
//     threads     Both accesses have one layout, at equal offsets or at offsets that differ by multiples of the tile's
//                 extents. An element's thread then depends only on its position, so each thread accesses its own
//                 elements.
//     elements    The offsets differ by the tile's extent or more, as in two iterations of a loop whose step is the
//                 extent.
//
// In shared memory, bytes, strides and layout decide both.

#pragma once

#include "dialect/simt/SimtDialect.h"

#include "lowering/analysis/LoopCarried.h"

#include <optional>
#include <string>

namespace kiln::lowering::gpu {

/// An i64: the sum of an SSA value and a constant; without a value, the constant.
struct Sum {
  mlir::Value value;
  int64_t number = 0;
  bool operator==(const Sum &) const = default;
};

/// The position of a tile along one dimension of its view.
struct Span {
  int64_t extent = 1;
  std::optional<Sum> offset;  // nothing: unknown
  std::optional<Sum> residue; // the offset modulo the extent
  mlir::Value earlier;        // a loop's induction variable: the offset is that of an earlier iteration
  bool operator==(const Span &) const = default;
};

/// One access of memory.
struct Access {
  mlir::Operation *op = nullptr;
  bool writes = false;
  bool isCopy = false;     // by asynchronous copies, which are in flight until the threads wait for them
  bool isProduct = false;  // by asynchronous products (wgmma), which are in flight until the threads wait for them
  int64_t newer = 0;       // of a product: the number of products begun after it
  simt::LayoutAttr layout; // the thread of each element; null: any thread may access any element
  // Of shared memory: the buffer, and the map from positions to bytes.
  simt::BufferOp buffer;
  mlir::Value offset;
  llvm::SmallVector<int64_t, 4> strides;
  simt::SharedLayoutAttr sharedLayout; // in place of strides
  llvm::SmallVector<int64_t, 2> slot;  // n modulo s, as in simt.fetch; empty: any slot
  mlir::Type element;
  // Of global memory: the view (null: all memory), and the tile's position (empty: unknown).
  mlir::Value view;
  llvm::SmallVector<Span, 4> spans;

  bool operator==(const Access &) const = default;

  /// Turns this into an access of an earlier iteration of `loop`, with that iteration's values; without `goesOn`, of a
  /// loop that has ended.
  void leaveIteration(const LoopCarried &loop, bool goesOn);
  /// Whether it is asynchronous: only a wait for copies or for products ends it.
  bool isUnderWay() const { return isCopy || isProduct; }
  /// Whether a wait for all groups of copies except the newest `pending` waits for this one. There is one group for
  /// each slot of a ring, in the order of slots. The group of the slot before the slot that is read next is issued
  /// after the wait.
  bool isAwaited(int64_t pending) const;
};

/// The accesses of `op` itself: one or two places, all of global memory, or none that could conflict.
llvm::SmallVector<Access, 2> accessesOf(mlir::Operation *op);

/// Whether `op` begins an asynchronous product, which is in flight until the threads wait for it.
bool beginsProduct(mlir::Operation *op);

bool conflict(const Access &before, const Access &after);

/// Whether the body runs at least once, and whether it never runs a second time.
bool surelyRuns(const LoopCarried &loop);
bool runsOnceAtMost(const LoopCarried &loop);

/// `shared memory written, then read`.
std::string describe(const Access &before, const Access &after);

} // namespace kiln::lowering::gpu
