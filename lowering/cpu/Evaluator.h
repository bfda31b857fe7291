// Elements of a tile at an index: the code that computes one scalar, or one native vector along one dimension.
//
// Loop nests give positions (`Ix`); the evaluator walks from a tile down through inlinable operations to what holds
// elements: scratch buffers, views and constants. Each piece of code is emitted at the outermost loop level where its
// inputs are known, and once: asking again for the same tile at the same position gives the same value.

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

/// What the lowering knows of the CPU.
struct Machine {
  int64_t vectorBits = 512;
  int64_t registers = 32;
  /// Of the widest elements that vectors are of, up to 32: only nests of narrow ones have less (Widths.h).
  int64_t elementBits = 32;
  /// Lanes of a native vector of such elements: the step of every vector loop.
  int64_t lanes() const { return vectorBits / elementBits; }
  /// Rows of a product that are computed at a time: their sums, two vectors each, leave room for b and a scalar.
  int64_t rows() const { return registers >= 32 ? 8 : 6; }
  /// Lanes of memory up to so far apart are read and written by whole vectors and shuffles. AVX-512 shuffles elements
  /// of any size across a whole vector by one instruction.
  int64_t widestStride() const { return vectorBits == 512 ? 8 : 4; }
  /// Of how many elements a tile of rows narrower than a vector pays for loops that go on from row to row.
  int64_t fewestOfNarrowRows() const { return 16 * vectorBits / 32; }
  /// The same machine, whose vectors have so many lanes.
  Machine withLanes(int64_t lanes) const { return {vectorBits, registers, vectorBits / lanes}; }
};

/// How far the positions of lanes lie from the first one in memory; the least is 0.
using Steps = std::vector<int64_t>;

/// A position along one dimension of a tile. `depth` is the loop level where `at` is defined. With `lanes` it stands
/// for a vector of positions, of which the first `valid` lie in the tile: consecutive ones that begin at `at`, or, with
/// `steps`, as many as are valid, so far from it. Several dimensions of an index may have lanes.
struct Ix {
  mlir::Value at; // index type
  int depth = 0;
  bool lanes = false;
  int64_t valid = 0;
  const Steps *steps = nullptr;

  /// How far a lane lies from `at`, one that lies in the tile.
  int64_t stepOf(int64_t lane) const { return !lanes ? 0 : steps ? (*steps)[lane] : lane; }
};
using Index = llvm::SmallVector<Ix, 4>;

/// A loop level: code is added to the end of `block`, or before `before`.
struct Level {
  mlir::Block *block = nullptr;
  mlir::Operation *before = nullptr;
};

/// What computing an element by an elementwise operation costs, an addition 1.
int64_t costOf(mlir::Operation *op);

class Evaluator {
public:
  /// `buffers` maps the tiles that have scratch memory to it.
  Evaluator(mlir::Location loc, Machine machine, const llvm::DenseMap<mlir::Value, mlir::Value> &buffers)
      : builder(loc.getContext()), loc(loc), machine(machine), buffers(buffers) {}

  llvm::SmallVector<Level> levels;
  /// Accesses and their dimensions that the code now emitted may take to lie inside their views, each with the level
  /// from which on that holds: what is read stays there.
  llvm::DenseMap<std::pair<mlir::Operation *, int64_t>, int> inside;
  /// Whether (i1) an access lies inside its view; null when it always does.
  mlir::Value liesInside(tile::AccessOp access);
  /// Lets the code now emitted take it to do so.
  void takeInside(tile::AccessOp access);
  /// Distances of elements along dimensions of views that the code now emitted may take as given.
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, int64_t> pitches;
  /// The distance along a dimension of a view's elements (index type).
  mlir::Value strideAlong(mlir::Value view, int64_t axis);
  /// Steps that indices may point to.
  const Steps *kept(Steps wanted) { return &*steps.insert(std::move(wanted)).first; }
  /// The conjunction of two conditions (i1), either of which may be null: what always holds.
  mlir::Value both(mlir::Value a, mlir::Value b);
  /// Tiles of i1 that are the same everywhere in the code now emitted, and what they are.
  llvm::SmallDenseMap<mlir::Value, bool> assumed;
  int depth() const { return static_cast<int>(levels.size()) - 1; }

  bool isBuffered(mlir::Value tile) const { return buffers.contains(tile); }
  /// Whether a tile's elements lie in its buffer one behind the other, without gaps between rows.
  static bool isDense(mlir::Value tile);
  /// Whether computing an element of `tile` costs more than `most`, a load 1.
  bool costsMoreThan(int64_t most, mlir::Value tile) const;
  /// The element of `tile` at `index`: a scalar, or a vector when it differs from lane to lane.
  mlir::Value at(mlir::Value tile, const Index &index);
  /// The same, repeated over the lanes when it is a scalar.
  mlir::Value vectorAt(mlir::Value tile, const Index &index) { return asVector(at(tile, index)); }
  /// From now on `tile` at `index` is `value`, which the loop has just computed.
  void remember(mlir::Value tile, const Index &index, mlir::Value value);

  /// Writes `value` where the store says; what lies outside the view is dropped.
  void store(mlir::Value value, tile::AccessOp op, const Index &index);
  /// Asks for the memory that the access will touch when its tile begins there. Harmless outside the view.
  void prefetch(tile::AccessOp op, mlir::ValueRange begins, const Index &index);
  /// What an atomic does with one element and these values; the element as it was, 0 outside the view, and null of a
  /// store. No index has lanes.
  mlir::Value atomic(mlir::ValueRange values, tile::AccessOp op, const Index &index);
  /// Writes `value` to scratch memory.
  void storeBuffer(mlir::Value value, mlir::Value buffer, const Index &index);
  /// The same to the buffer of a placed tile.
  void place(mlir::Value value, mlir::Value tile, mlir::Value buffer, const Index &index);

  // --- Structure: every nest is opened here --------------------------------------------------------------------------

  /// Opens a loop over [from, to) at the deepest level; the body gets the position and the carried values and gives the
  /// next ones. Their last values.
  llvm::SmallVector<mlir::Value> loop(mlir::Value from, mlir::Value to, int64_t step, mlir::ValueRange carried,
                                      llvm::function_ref<llvm::SmallVector<mlir::Value>(Ix, mlir::ValueRange)> body);
  /// The same without carried values.
  void loop(mlir::Value from, mlir::Value to, int64_t step, llvm::function_ref<void(Ix)> body);
  /// The same with a step of 1, `count` positions in one body; what is left over takes single steps.
  llvm::SmallVector<mlir::Value>
  unrolledLoop(mlir::Value from, mlir::Value to, int64_t count, mlir::ValueRange carried,
               llvm::function_ref<llvm::SmallVector<mlir::Value>(Ix, mlir::ValueRange)> body);
  void unrolledLoop(mlir::Value from, mlir::Value to, int64_t count, llvm::function_ref<void(Ix)> body);
  /// Emits a branch at the deepest level; `otherwise` may be null.
  void branch(mlir::Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise);

  /// What `then` gives where `condition` holds, else what `otherwise` does, values of `types`, at the deepest level.
  llvm::SmallVector<mlir::Value> choose(mlir::Value condition, mlir::TypeRange types,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> then,
                                        llvm::function_ref<llvm::SmallVector<mlir::Value>()> otherwise);

  mlir::Value asVector(mlir::Value value);
  /// A vector type with the machine's lanes.
  mlir::VectorType vectorOf(mlir::Type element) const { return mlir::VectorType::get({machine.lanes()}, element); }
  /// The same value each time, so that positions that are equal are one to `at`.
  mlir::Value constantIndex(int64_t value);
  /// The smaller index; a constant when both are.
  mlir::Value least(mlir::Value a, mlir::Value b);
  /// A position known while compiling.
  Ix fixed(int64_t position) { return {constantIndex(position), 0, false, 0}; }
  /// One position, and a vector of them of which `valid` lie in the tile.
  Ix along(mlir::Value at) const { return {at, depthOf(at), false, 0}; }
  Ix lanesFrom(mlir::Value at, int64_t valid) const { return {at, depthOf(at), true, valid}; }
  /// The same position, but known from the deepest level on only: what is computed there stays there.
  Ix keptHere(const Ix &position);
  /// A vector of i1: the first n lanes, none below 0, all from their number on.
  mlir::Value lanesBelow(mlir::Value n);
  /// All valid lanes of a mask (i1).
  mlir::Value allOf(mlir::Value mask, int64_t valid);
  /// `value` (i64) as an index.
  mlir::Value asIndex(mlir::Value value);
  /// Makes an operation at the outermost level where its operands are known.
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
  /// The index in shape `from` of what lies at `index` in shape `to`, which differs from it by extents of 1.
  Index acrossUnits(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to, const Index &index);
  /// The index that `map` gives; nothing where lanes have no steps that are known while compiling.
  std::optional<Index> mapped(mlir::AffineMap map, const Index &index);
  int depthOf(mlir::Value value) const { return depths.lookup(value); }
  void moveTo(int depth);

  mlir::OpBuilder builder;
  const mlir::Location loc;
  /// How many lanes it has may change from one index to the next.
  Machine machine;

private:
  using Key = std::pair<void *, llvm::SmallVector<void *, 6>>;
  /// An element of memory: its position, and where it counts as outside.
  struct Access {
    llvm::SmallVector<mlir::Value> indices; // of lanes their base
    mlir::Value inside;                     // i1: the position lies in the view as far as the scalar dimensions go
    mlir::Value mask;                       // vector of i1, when lanes can lie outside
    bool contiguous = true;                 // the lanes are neighbours in memory
    // Where they are not: the dimensions that they run along, and i1 whether all lie in the view, null if they must.
    llvm::SmallVector<std::pair<int64_t, Ix>, 2> along;
    mlir::Value whole;
    // Elements of the line that lie in the view as well: before the base, and from it on. 0 where that is not known.
    int64_t before = 0, behind = 0;
    int depth = 0;

    int64_t valid() const { return along.front().second.valid; }
  };

  /// Runs `body` one level deeper, in `block` of `op`, which stands at the deepest level now.
  void within(mlir::Operation *op, mlir::Block *block, llvm::function_ref<void()> body);
  /// Forgets what was computed at loop levels deeper than `depth`.
  void forgetBelow(int depth);
  Key keyOf(mlir::Value tile, const Index &index) const;
  mlir::Value compute(mlir::Value tile, const Index &index);
  mlir::Value elementwise(mlir::Operation *op, const Index &index);
  /// Of a select whose condition, a scalar, follows from where the element lies: a branch, so that only one side is
  /// computed. Null where both are as little as a branch is.
  mlir::Value branchOf(mlir::arith::SelectOp op, mlir::Value condition, const Index &index);
  mlir::Value move(tile::MoveOp op, const Index &index);
  /// A position that a map computes from others, of lanes from their base.
  mlir::Value positionOf(mlir::AffineExpr expr, const Index &index);
  std::optional<Ix> mapped(mlir::AffineExpr expr, const Index &index);
  /// Emits code for lane number `lane` (index type) of `index` alone, at whose position `body` is called. What has been
  /// computed for all lanes, as the results of scans, which nothing else gives, is taken from there.
  void forLane(const Index &index, mlir::Value lane, llvm::function_ref<void(const Index &)> body);
  /// What is known of a tile at the position of that lane from what is known at the positions of all; null if nothing.
  mlir::Value knownLane(mlir::Value tile, const Index &index);
  /// The position of `index` in a tile's row-major order.
  Ix inOrder(const Index &index, llvm::ArrayRef<int64_t> shape);
  /// How far the lanes of a position lie from its base, as numbers of that type.
  mlir::Value constantLanes(mlir::Type element, const Ix &position);
  mlir::Value iota(tile::IotaOp op, const Ix &position);
  mlir::Value readBuffer(mlir::Value buffer, mlir::Type element, const Index &index);
  mlir::Value load(tile::AccessOp op, const Index &index);
  /// What an access reads there, whose `access` gives where that is at an index like this one.
  mlir::Value readVector(mlir::Value view, mlir::Type element, tile::Padding padding, const Index &index,
                         llvm::function_ref<Access(const Index &)> access);
  /// Writes it there; lane by lane, the second.
  void writeVector(mlir::Value value, mlir::Value view, const Index &index,
                   llvm::function_ref<Access(const Index &)> access);
  void writeLanes(mlir::Value value, mlir::Value view, const Index &index,
                  llvm::function_ref<Access(const Index &)> access);
  mlir::Value asElement(mlir::Value stored, mlir::Type element);
  mlir::Value read(mlir::Value view, const Access &access, mlir::Type element, tile::Padding padding, bool lanes);
  void write(mlir::Value value, mlir::Value view, const Access &access, const Index &index);
  /// The element of the view at `index` of the access's tile, by `subscripts` in place of its own. Lanes run along
  /// blocks only.
  Access accessOf(tile::AccessOp op, mlir::ValueRange subscripts, const Index &index);
  Access accessOf(tile::AccessOp op, const Index &index);
  Access accessIn(mlir::Value buffer, const Index &index);
  void boundWhole(Access &access, mlir::Value limit, mlir::Value start, bool canBeNegative, const Ix &position);
  mlir::Value compareLanes(mlir::arith::CmpIPredicate predicate, mlir::Value n, int64_t first = 0);
  mlir::Value asCount(mlir::Value n);
  void boundLanes(Access &access, mlir::Value limit, mlir::Value begins, bool canBeNegative, const Ix &position);
  // --- Lanes whose positions are named (Named.cpp) -----------------------------------------------------------------

  /// Lanes that lie anywhere in a view.
  struct Anywhere {
    mlir::Value line;   // its memory as a view of rank 1
    mlir::Value places; // a vector of index: where in it
    mlir::Value whole;  // i1: all valid lanes lie in the view and the mask; null if they must
    bool held = false;  // positions that are places, but for a stride, lie in memory, at places that are not in doubt
    int64_t valid = 0;
    int depth = 0;
  };
  Anywhere anywhereIn(tile::AccessOp op, const Index &index);
  /// Whether what an access does to lanes is no matter of blocks: their positions differ by name, or all are one.
  bool isAnywhere(tile::AccessOp op, const Index &index);
  /// Where lanes of a tile of positions lie in a dimension of a view (index type, a vector of it where they differ).
  mlir::Value namedPosition(tile::AccessOp op, int64_t axis, const Index &index);
  /// An element of memory that holds a position.
  struct Held {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> indices;
  };
  /// Where the first position of one lane is to be read; nothing where it is computed, or its place is in doubt.
  std::optional<Held> heldPosition(tile::AccessOp op, const Index &index, int64_t lane);
  /// Where in the line one of the lanes is (index type), at the deepest level.
  mlir::Value placeOf(tile::AccessOp op, const Index &index, const Anywhere &lanes, int64_t lane);
  mlir::Value loadAnywhere(tile::AccessOp op, const Index &index);
  void storeAnywhere(mlir::Value value, tile::AccessOp op, const Index &index);
  /// Lane by lane: `element` gives the scalar at each valid position of the index's vector dimension.
  mlir::Value laneByLane(const Index &index, mlir::Type element, llvm::function_ref<mlir::Value(const Index &)> scalar);
  mlir::Value paddingOf(mlir::Type element, tile::Padding padding);

  // --- Lanes that lie apart (Strided.cpp) ---------------------------------------------------------------------------

  /// Memory from the base of an access's lanes on, where it has stride 1: a view of rank 1, or a scratch buffer.
  struct Line {
    mlir::Value memory;
    llvm::SmallVector<mlir::Value> first; // indices of the base
    int depth = 0;
  };
  Line lineOf(mlir::Value view, const Access &access);
  /// The indices of what lies so far from the base.
  llvm::SmallVector<mlir::Value> placeIn(const Line &line, mlir::Value distance);
  /// The same where it is known, else ShapedType::kDynamic.
  int64_t knownStride(mlir::Value view, int64_t axis) const;
  /// How far lane number `lane` lies from the base (index type); all of them where that is known and not far.
  mlir::Value distanceOf(mlir::Value view, const Access &access, int64_t lane);
  std::optional<Steps> nearDistances(mlir::Value view, const Access &access) const;
  /// The lanes in order, as runs of neighbours in memory: the first lane of each, and how many.
  llvm::SmallVector<std::pair<int64_t, int64_t>> neighbours(mlir::Value view, const Access &access) const;
  /// The valid lanes, which all lie in the view, as the view's elements; the others are 0.
  mlir::Value readApart(mlir::Value view, const Access &access);
  /// The parts of the `readable` elements of a line, so many each, that have elements at `distances` in them.
  llvm::SmallVector<int64_t> partsOf(const Steps &distances, int64_t readable, int64_t width) const;
  mlir::Value readWide(mlir::Value view, Access access, Steps distances);
  mlir::Value readRuns(mlir::Value view, const Access &access, const Line &line);
  mlir::Value readPart(const Line &line, int64_t begin, int64_t needed, int64_t width);
  int64_t widthFor(mlir::Type stored, int64_t span, bool within) const;
  /// Writes them.
  void writeApart(mlir::Value value, mlir::Value view, const Access &access);
  void writeWide(mlir::Value value, const Line &line, const Steps &distances);
  /// `then` where `condition` holds and else `otherwise`, one level deeper than `where`, to which the index that it
  /// gets belongs; without a condition `then` alone, at that level. What they give, of type `result`, if it is set.
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
  /// The lane that code is emitted for by itself: where all of them lie, where it does, and its number.
  struct Lane {
    Index all, here;
    mlir::Value number;
  };
  std::optional<Lane> lane;
  std::set<Steps> steps; // what the indices point to
};

/// Whether the i64 `value` is never negative, as far as simple reasoning goes.
bool isNonNegative(mlir::Value value, int effort = 6);

} // namespace kiln::lowering::cpu
