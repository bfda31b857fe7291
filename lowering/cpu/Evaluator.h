// Emits the code that computes elements of a tile at an index: one scalar, or one native vector along one dimension.
//
// Loop nests supply positions (`Ix`). The evaluator follows a tile's inlinable operations down to the sources of
// elements: scratch buffers, views and constants. Each operation is emitted at the outermost loop level where its
// operands are defined. It is emitted only once: a second request for a tile at a position returns the first value.

#pragma once

#include "lowering/analysis/TileUses.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

#include <map>
#include <set>

namespace kiln::lowering::cpu {

/// The facts about the CPU that the lowering uses.
struct Machine {
  int64_t vectorBits = 512;
  int64_t registers = 32;
  /// Bits of the widest elements of the vectors, at most 32. Only nests of narrower elements have fewer (Widths.cpp).
  int64_t elementBits = 32;
  /// Lanes of a native vector of such elements: the step of every vector loop.
  int64_t lanes() const { return vectorBits / elementBits; }
  /// Rows of a product that are computed at a time. Their accumulators, two vectors each, leave registers for b and a
  /// scalar of a.
  int64_t rows() const { return registers >= 32 ? 8 : 6; }
  /// The largest stride of lanes in memory that are accessed by whole vectors and shuffles. AVX-512 shuffles elements
  /// of any size across a whole vector by one instruction.
  int64_t widestStride() const { return vectorBits == 512 ? 8 : 4; }
  /// The smallest number of elements of a tile with rows narrower than a vector for which vectors span several rows.
  int64_t fewestOfNarrowRows() const { return 16 * vectorBits / 32; }
  /// This machine with vectors of `lanes` lanes.
  Machine withLanes(int64_t lanes) const { return {vectorBits, registers, vectorBits / lanes}; }
};

/// The distances of lanes from the lane that is first in memory; the smallest is 0.
using Steps = std::vector<int64_t>;

/// A position along one dimension of a tile. `depth` is the loop level where `at` is defined. With `lanes` it is a
/// vector of positions, of which the first `valid` are in the tile. Lane i is at `at` + i, or with `steps` at
/// `at` + steps[i]. Several dimensions of an index may have lanes.
struct Ix {
  mlir::Value at; // index type
  int depth = 0;
  bool lanes = false;
  int64_t valid = 0;
  const Steps *steps = nullptr;

  /// The distance of a valid lane from `at`.
  int64_t stepOf(int64_t lane) const { return !lanes ? 0 : steps ? (*steps)[lane] : lane; }
};
using Index = llvm::SmallVector<Ix, 4>;

/// A loop level: code is added to the end of `block`, or before `before`.
struct Level {
  mlir::Block *block = nullptr;
  mlir::Operation *before = nullptr;
};

/// The cost of an elementwise operation for one element; an addition costs 1.
int64_t costOf(mlir::Operation *op);
/// The cost of a branch.
inline constexpr int64_t branchCost = 3;

class Evaluator {
public:
  /// `buffers` maps the tiles that have scratch memory to it.
  Evaluator(mlir::Location loc, Machine machine, const llvm::DenseMap<mlir::Value, mlir::Value> &buffers)
      : builder(loc.getContext()), loc(loc), machine(machine), buffers(buffers) {}

  llvm::SmallVector<Level> levels;
  /// Pairs (access, dimension) that the code emitted now may assume to be in bounds. The value is the loop level from
  /// which this holds; values read under the assumption are not hoisted out of it.
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, int> inside;
  /// Whether (i1) an access is entirely in bounds; null if it always is.
  mlir::Value liesInside(tile::AccessOp access);
  /// The code emitted from now on assumes that the access is in bounds.
  void takeInside(tile::AccessOp access);
  /// Strides along dimensions of views that the code emitted now may assume.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, int64_t> pitches;
  /// The stride of a view along a dimension (index type).
  mlir::Value strideAlong(mlir::Value view, int64_t axis);
  /// A stored copy of the steps, for the pointer of an index; it lives as long as the evaluator.
  const Steps *kept(Steps wanted) { return &*steps.insert(std::move(wanted)).first; }
  /// The conjunction of two conditions (i1). Null means true.
  mlir::Value both(mlir::Value a, mlir::Value b);
  /// Tiles of i1 that have one value for all elements in the code emitted now, and that value.
  llvm::SmallDenseMap<mlir::Value, bool> assumed;
  int depth() const { return static_cast<int>(levels.size()) - 1; }

  bool isBuffered(mlir::Value tile) const { return buffers.contains(tile); }
  /// Whether the rows of a tile's buffer are contiguous, without padding between them.
  static bool isDense(mlir::Value tile);
  /// Whether computing an element of `tile` costs more than `most`; a load costs 1.
  bool costsMoreThan(int64_t most, mlir::Value tile) const;
  /// The element of `tile` at `index`: a scalar, or a vector if it differs from lane to lane.
  mlir::Value at(mlir::Value tile, const Index &index);
  /// As at(), but a scalar is broadcast to a vector.
  mlir::Value vectorAt(mlir::Value tile, const Index &index) { return asVector(at(tile, index)); }
  /// Records that `tile` at `index` is `value`, which the loop has just computed.
  void remember(mlir::Value tile, const Index &index, mlir::Value value);

  /// Emits a store of `value` at `index` of the store's tile. Elements out of bounds are not written.
  void store(mlir::Value value, tile::AccessOp op, const Index &index);
  /// Emits a prefetch of the memory that the access would read if its block began at `begins`. Positions outside the
  /// view are harmless.
  void prefetch(tile::AccessOp op, mlir::ValueRange begins, const Index &index);
  /// Emits an atomic on one element. Returns its old value: 0 out of bounds, null for an atomic store. No dimension of
  /// the index has lanes.
  mlir::Value atomic(mlir::ValueRange values, tile::AccessOp op, const Index &index);
  /// Writes `value` to scratch memory.
  void storeBuffer(mlir::Value value, mlir::Value buffer, const Index &index);
  /// Writes `value` to the scratch memory of `tile`.
  void place(mlir::Value value, mlir::Value tile, mlir::Value buffer, const Index &index);

  // --- Structure: every nest is opened here --------------------------------------------------------------------------

  /// Emits a loop over [from, to) at the deepest level. The body receives the position and the carried values, and
  /// returns the next ones. Returns their last values.
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>(Ix, mlir::ValueRange)> body);
  /// A loop without carried values.
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(Ix)> body);
  /// A loop with step 1, unrolled by `count`. A second loop executes the remaining iterations.
  llvm::SmallVector<mlir::Value>
  unrolledLoop(mlir::Value from, mlir::Value to, int64_t count, mlir::ValueRange carried,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(Ix, mlir::ValueRange)> body);
  void unrolledLoop(mlir::Value from, mlir::Value to, int64_t count, llvm::function_ref<void(Ix)> body);
  /// Emits a branch at the deepest level; `otherwise` may be null.
  void branch(mlir::Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);

  /// Emits a branch with results at the deepest level: those of `then` if `condition` holds, else of `otherwise`. Their
  /// types are `types`.
  llvm::SmallVector<mlir::Value> choose(mlir::Value condition, mlir::TypeRange types,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> then,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> otherwise);

  mlir::Value asVector(mlir::Value value);
  /// A vector type with the machine's lanes.
  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({machine.lanes()}, element); }
  /// A constant of index type. Equal constants are one SSA value, so at() recognises equal positions.
  mlir::Value constantIndex(int64_t value);
  /// The smaller index; a constant if both are constants.
  mlir::Value least(mlir::Value a, mlir::Value b);
  /// A position that is a constant.
  Ix fixed(int64_t position) { return {constantIndex(position), 0, false, 0}; }
  /// One position; and a vector of consecutive positions, of which `valid` are in the tile.
  Ix along(mlir::Value at) const { return {at, depthOf(at), false, 0}; }
  Ix lanesFrom(mlir::Value at, int64_t valid) const { return {at, depthOf(at), true, valid}; }
  /// A copy of the position at the deepest level, so that code that depends on it is not hoisted to outer levels.
  Ix keptHere(const Ix &position);
  /// A mask (vector of i1) of the first n lanes. n may be negative (no lane) or exceed the number of lanes (all).
  mlir::Value lanesBelow(mlir::Value n);
  /// Whether (i1) a mask is true for all valid lanes.
  mlir::Value allTrue(mlir::Value mask, int64_t valid);
  /// `value` (i64) as an index.
  mlir::Value asIndex(mlir::Value value);
  /// Creates an operation at the outermost level where its operands are defined.
  template <class Op, class... Args> mlir::Value make(Args &&...args) {
    int where = std::max({0, depthOfArgument(args)...});
    moveTo(where);
    return noted(Op::create(builder, loc, std::forward<Args>(args)...)->getResult(0), where);
  }
  mlir::Value noted(mlir::Value value, int depth) {
    if (depth > 0)
      depths[value] = depth;
    return value;
  }
  /// Converts an index of shape `to` into one of shape `from`. The shapes differ only by extents of 1.
  Index acrossUnits(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, const Index &index);
  /// The index that `map` computes from `index`; nothing if the distances of lanes are not constants.
  std::optional<Index> mapped(mlir::AffineMap map, const Index &index);
  /// The extent of a view along `axis`, for comparison with positions.
  mlir::Value extentOf(mlir::Value view, int64_t axis);
  int depthOf(mlir::Value value) const { return depths.lookup(value); }
  void moveTo(int depth);

  mlir::OpBuilder builder;
  const mlir::Location loc;
  /// Its number of lanes may change from one index to the next.
  Machine machine;

private:
  using Key = std::pair<void *, llvm::SmallVector<void *, 6>>;
  /// An element or vector of elements in memory: its position, and its bounds checks.
  struct Access {
    llvm::SmallVector<mlir::Value> indices; // of the element; of lanes, the base
    mlir::Value inside;                     // i1: the dimensions without lanes are in bounds
    mlir::Value mask;                       // vector of i1: lanes in bounds; null if all are
    bool contiguous = true;                 // the lanes are adjacent in memory
    // If not contiguous: the dimensions that have lanes, and whether (i1) all lanes are in bounds; null: always.
    llvm::SmallVector<std::pair<int64_t, Ix>, 2> along;
    mlir::Value whole;
    // Numbers of elements of the line that are in the view: before the base, and from it on. 0 if unknown.
    int64_t before = 0, after = 0;
    int depth = 0;

    int64_t valid() const { return along.front().second.valid; }
  };

  /// Runs `body` one level deeper, in `block` of `op`, an operation at the present deepest level.
  void within(mlir::Operation *op, mlir::Block *block, llvm::function_ref<void()> body);
  /// Forgets the values computed at loop levels deeper than `depth`.
  void forgetBelow(int depth);
  Key keyOf(mlir::Value tile, const Index &index) const;
  mlir::Value compute(mlir::Value tile, const Index &index);
  mlir::Value elementwise(mlir::Operation *op, const Index &index);
  /// Emits a branch for a select whose condition is a scalar computed from the position, so that only one side is
  /// computed. Null if computing both sides is no more expensive than a branch.
  mlir::Value branchOf(mlir::arith::SelectOp op, mlir::Value condition, const Index &index);
  mlir::Value move(tile::MoveOp op, const Index &index);
  /// The position that `expr` computes from `index`; dimensions with lanes count by their base.
  mlir::Value positionOf(mlir::AffineExpr expr, const Index &index);
  std::optional<Ix> mapped(mlir::AffineExpr expr, const Index &index);
  /// Calls `body` with the position of lane number `lane` (index type) of `index`. Values already computed for all
  /// lanes are extracted from their vector. For results of scans this is the only source.
  void forLane(const Index &index, mlir::Value lane, llvm::function_ref<void(const Index &)> body);
  /// The element of a tile at that lane, extracted from the vector already computed for all lanes; null if there is
  /// none.
  mlir::Value knownLane(mlir::Value tile, const Index &index);
  /// The position of `index` in a tile's row-major order.
  Ix inOrder(const Index &index, llvm::ArrayRef<int64_t> shape);
  /// The distances of a position's lanes from its base, as a vector of this element type.
  mlir::Value constantLanes(mlir::Type element, const Ix &position);
  mlir::Value iota(tile::IotaOp op, const Ix &position);
  mlir::Value readBuffer(mlir::Value buffer, mlir::Type element, const Index &index);
  mlir::Value load(tile::AccessOp op, const Index &index);
  /// Reads the elements at `index`; `access` gives their place in memory for such an index.
  mlir::Value readVector(mlir::Value view, mlir::Type element, tile::Padding padding, const Index &index,
                         llvm::function_ref<Access(const Index &)> access);
  /// Writes `value` at `index`, as a vector; and lane by lane.
  void writeVector(mlir::Value value, mlir::Value view, const Index &index,
                   llvm::function_ref<Access(const Index &)> access);
  void writeLanes(mlir::Value value, mlir::Value view, const Index &index,
                  llvm::function_ref<Access(const Index &)> access);
  mlir::Value asElement(mlir::Value stored, mlir::Type element);
  mlir::Value read(mlir::Value view, const Access &access, mlir::Type element, tile::Padding padding, bool lanes);
  void write(mlir::Value value, mlir::Value view, const Access &access, const Index &index);
  /// The element of the view at `index` of the access's tile, with `subscripts` in place of the access's own. Only
  /// dimensions of blocks have lanes.
  Access accessOf(tile::AccessOp op, mlir::ValueRange subscripts, const Index &index);
  Access accessOf(tile::AccessOp op, const Index &index);
  Access accessIn(mlir::Value buffer, const Index &index);
  void boundWhole(Access &access, mlir::Value limit, mlir::Value start, bool canBeNegative, const Ix &position);
  mlir::Value compareLanes(mlir::arith::CmpIPredicate predicate, mlir::Value n, int64_t first = 0);
  mlir::Value asCount(mlir::Value n);
  void boundLanes(Access &access, mlir::Value limit, mlir::Value begins, bool canBeNegative, const Ix &position);
  // --- Gather and scatter: positions given by an index tile (Indexed.cpp) ----------------------------------------

  /// Lanes at arbitrary positions of a view.
  struct Anywhere {
    mlir::Value line;   // the view's memory as a view of rank 1
    mlir::Value places; // vector of index: the lanes' positions in `line`
    mlir::Value whole;  // i1: all valid lanes are in bounds and in the mask; null: always
    bool held = false;  // the index tile is in memory, at known places, so a lane's index can be read again from there
    int64_t valid = 0;
    int depth = 0;
  };
  Anywhere anywhereIn(tile::AccessOp op, const Index &index);
  /// Whether the lanes of an access are along dimensions of its index tiles, not of its blocks.
  bool isAnywhere(tile::AccessOp op, const Index &index);
  /// The positions along a dimension of the view, from the index tile (index type, or a vector of it if lanes differ).
  mlir::Value indexedPosition(tile::AccessOp op, int64_t axis, const Index &index);
  /// An element of memory that holds a position.
  struct Held {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> indices;
  };
  /// The memory from which the first position of one lane can be read; nothing if the position is computed, or its
  /// place is not certain.
  std::optional<Held> heldPosition(tile::AccessOp op, const Index &index, int64_t lane);
  /// The position of one lane in the line (index type), at the deepest level.
  mlir::Value placeOf(tile::AccessOp op, const Index &index, const Anywhere &lanes, int64_t lane);
  mlir::Value loadAnywhere(tile::AccessOp op, const Index &index);
  void storeAnywhere(mlir::Value value, tile::AccessOp op, const Index &index);
  /// Lane by lane: `element` gives the scalar at each valid position of the index's vector dimension.
  mlir::Value laneByLane(const Index &index, mlir::Type element, llvm::function_ref<mlir::Value(const Index &)> scalar);
  mlir::Value paddingOf(mlir::Type element, tile::Padding padding);

  // --- Lanes with strides (Strided.cpp) -----------------------------------------------------------------------------

  /// The memory from the base of an access's lanes on, with stride 1: a view of rank 1, or a scratch buffer.
  struct Line {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> first; // indices of the base
    int depth = 0;
  };
  Line lineOf(mlir::Value view, const Access &access);
  /// The indices of the element at `distance` from the base.
  llvm::SmallVector<mlir::Value> placeIn(const Line &line, mlir::Value distance);
  /// The stride of the view along `axis` if it is a constant, else ShapedType::kDynamic.
  int64_t knownStride(mlir::Value view, int64_t axis) const;
  /// The distance of lane number `lane` from the base (index type). nearDistances() gives those of all lanes, if they
  /// are constants and small.
  mlir::Value distanceOf(mlir::Value view, const Access &access, int64_t lane);
  std::optional<Steps> nearDistances(mlir::Value view, const Access &access) const;
  /// The lanes in order, as runs that are adjacent in memory: the first lane of each run, and its length.
  llvm::SmallVector<std::pair<int64_t, int64_t>> neighbours(mlir::Value view, const Access &access) const;
  /// Reads the valid lanes, which are all in bounds, in the view's element type; the others are 0.
  mlir::Value readApart(mlir::Value view, const Access &access);
  /// Divides the `readable` elements of a line into parts of `width`, and returns those that contain some of
  /// `distances`.
  llvm::SmallVector<int64_t> partsOf(const Steps &distances, int64_t readable, int64_t width) const;
  mlir::Value readWide(mlir::Value view, Access access, Steps distances);
  mlir::Value readRuns(mlir::Value view, const Access &access, const Line &line);
  mlir::Value readPart(const Line &line, int64_t begin, int64_t needed, int64_t width);
  int64_t widthFor(mlir::Type stored, int64_t span, bool within) const;
  /// Writes the valid lanes, which are all in bounds.
  void writeApart(mlir::Value value, mlir::Value view, const Access &access);
  void writeWide(mlir::Value value, const Line &line, const Steps &distances);
  /// Emits `then` if `condition` holds and `otherwise` if not, one level deeper than `where`; `otherwise` receives the
  /// index kept at that level. Without a condition, emits only `then`, at level `where`. Returns their value, of type
  /// `result`, if `result` is set.
  mlir::Value eitherWay(int where, mlir::Value condition, mlir::Type result, const Index &index,
                        llvm::function_ref<mlir::Value()> then,
                        llvm::function_ref<mlir::Value(const Index &)> otherwise);
  void forgetWithin(mlir::Operation *op);

  template <class T> int depthOfArgument(const T &argument) {
    if constexpr (std::is_convertible_v<T, mlir::Value>)
      return depthOf(argument);
    else if constexpr (std::is_convertible_v<T, mlir::ValueRange>) {
      int deepest = 0;
      for (mlir::Value value : mlir::ValueRange(argument))
        deepest = std::max(deepest, depthOf(value));
      return deepest;
    } else
      return 0;
  }

  const llvm::DenseMap<mlir::Value, mlir::Value> &buffers;
  llvm::DenseMap<mlir::Value, int> depths;
  std::map<Key, mlir::Value> known;
  std::map<int64_t, mlir::Value> constants; // at the outermost level
  /// The single lane for which code is emitted now: the index of all lanes, its own index, and its number.
  struct Lane {
    Index all, here;
    mlir::Value number;
  };
  std::optional<Lane> lane;
  std::set<Steps> steps; // owns the steps to which indices point
};

/// Whether the i64 `value` is provably not negative. The proof follows at most `effort` operations.
bool isNonNegative(mlir::Value value, int effort = 6);

// --- Scratch memory of tiles -----------------------------------------------------------------------------------------

/// Scratch memory for a tile: rows padded to whole vectors, and by `skew` elements more. AllocateScratch.cpp assigns
/// each buffer its offset.
mlir::Value allocateBuffer(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type tile, Machine machine,
                           int64_t skew = 0);

/// Scratch memory of rank 1 for a `cpu.dense` tile, whose rows are contiguous.
mlir::Value allocateDense(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType tile, Machine machine);

} // namespace kiln::lowering::cpu
