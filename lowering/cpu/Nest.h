// A loop nest while it is emitted: the state shared by all forms of nests. Loops.cpp has nests over rows, Columns.cpp
// over columns, and ManyRows.cpp over several rows at a time, also transposed ones. NarrowRows.cpp has rows narrower
// than a vector, and Joined.cpp joined rows. MaskVersions.cpp has versions for masks.

#pragma once

#include "lowering/analysis/Masks.h"
#include "lowering/cpu/Evaluator.h"
#include "lowering/cpu/LowerTiles.h"
#include "lowering/cpu/Prefetch.h"
#include "lowering/cpu/Reduction.h"

namespace kiln::lowering::cpu {

/// The interleaving factor. A row's reduction has this many states, each of every fourth vector; a gather reads this
/// many rows in turn.
inline constexpr int64_t sideBySide = 4;

// --- Vectors of a nest -----------------------------------------------------------------------------------------------

/// The bits of the widest elements that a nest for `roots` computes, from 8 to 32. They determine the lanes of its
/// vectors.
int64_t elementBitsOf(llvm::ArrayRef<Root> roots, const Evaluator &e);

/// A vector of a row: `valid` elements from `first` on.
struct Piece {
  int64_t first = 0, lanes = 0, valid = 0;
};

/// Divides the elements [from, to) of a row into vectors. The first ones have `lanes` lanes, the next half as many, and
/// so on down to `least`. Only the last vector may be partly valid.
llvm::SmallVector<Piece> piecesOf(int64_t from, int64_t to, int64_t lanes, int64_t least);

// --- A nest ----------------------------------------------------------------------------------------------------------

class Nest {
public:
  Nest(llvm::ArrayRef<Root> roots, mlir::Operation *before, Machine machine,
       const llvm::DenseMap<mlir::Value, mlir::Value> &buffers, ReadTiles *read);

  /// The results of reductions to scalars.
  llvm::SmallVector<mlir::Value> emit();

private:
  using Values = llvm::SmallVector<mlir::Value>;
  using States = llvm::SmallVector<Reduction::State>; // for each reduction

  /// A loop over [0, to); the body receives the position. Carries `carried`.
  Values loop(int64_t to, int64_t step, mlir::ValueRange carried,
              llvm::function_ref<Values(Ix, mlir::ValueRange)> body) {
    return e.loop(e.constantIndex(0), e.constantIndex(to), step, carried, body);
  }
  /// The dimension that is vectorised: the last one. In a nest that only stores, the last one with an extent above 1.
  int64_t findLaneAxis();
  /// Emits loops over all dimensions except the vectorised one and `except`, with the carried values `carried`. Returns
  /// their last values.
  Values outer(size_t axis, Index &index, int64_t except, mlir::ValueRange carried,
               llvm::function_ref<Values(mlir::ValueRange)> body);

  // --- Two versions: tiles inside their views, and others -----------------------------------------------------------

  /// Whether a version without masks is worth its compile time. It is not if rows are shorter than a vector and so have
  /// masks anyway. It is not if there are only a few vectors, or if the nest already has two versions for a triangle.
  bool paysTwice() const;
  /// Whether masks are expensive in the nest. They are if it loads memory that no earlier nest has brought to the
  /// cache, or if it stores and the CPU has slow masked stores.
  bool masksCostMuch(ReadTiles *read);
  /// The positions, defined at the present level, so that values computed from them are not hoisted out of a branch.
  Index keptHere(const Index &index);
  /// Emits `body` for a tile inside its views and, if the code differs, again for a tile that extends past them.
  /// Returns its values, of the types of `like`. `body` receives the number of vectors of a row to compute per
  /// iteration.
  Values inOrOver(const Index &index, mlir::ValueRange like, llvm::function_ref<Values(Index, int64_t unroll)> body);

  /// Whether rows have loops around them.
  bool hasOuterLoops() const;
  /// As inOrOver(), for all rows: each version has its own loops around the rows, so that neither version occupies
  /// registers of the other. `body` receives a row's index, the number of its vectors per iteration, and the carried
  /// values.
  Values outerInOrOver(int64_t except, mlir::ValueRange carried,
                       llvm::function_ref<Values(Index &, int64_t unroll, mlir::ValueRange)> body);

  // --- Triangles ----------------------------------------------------------------------------------------------------

  /// The tiles that the nest reads at other positions than its own: below operations that move elements. A version for
  /// one value of a mask is none for the mask at other positions.
  llvm::SmallDenseSet<mlir::Value> findMoved();
  /// A comparison of the nest's shape that masks a tile of the nest by a triangle, such as a causal mask; null if none.
  mlir::Value findMask();
  /// Emits `body`, whose values have the types of `like`. With a triangle there are two versions; one of them is for a
  /// triangle that covers the whole tile.
  Values inVersions(mlir::ValueRange like, llvm::function_ref<Values()> body);
  Values assuming(bool inside, llvm::function_ref<Values()> body);
  /// Whether the code emitted now checks for each vector whether it is outside of the triangle.
  bool checksEachVector() { return mask && !e.assumed.contains(mask); }
  /// Whether (i1) all lanes at `index` are outside of the triangle.
  mlir::Value liesOutside(const Index &index);
  /// Emits all roots at `index`. With a triangle, a branch selects cheaper code, with a false mask, outside of it.
  void step(const Index &index, States &states);

  // --- Masks of accesses --------------------------------------------------------------------------------------------

  /// The masks of the accesses that the nest reads and writes at its own positions, and of no other ones.
  llvm::SetVector<mlir::Value> findMasks();
  /// Whether (i1) all masks are true for all lanes of some vectors of a row. For a mask that is true in an interval,
  /// the code checks only the first and the last lane, and that no sum wraps in between.
  mlir::Value masksHold(Index &index, llvm::ArrayRef<Ix> positions);
  /// Emits `body` at some whole vectors of a row; returns its values, of the types of `like`. With masks there are two
  /// versions; one of them is for masks that are true for all elements. In a nest that only stores, the other one then
  /// checks each vector. Masks cost more than their instructions (Loops.cpp); on AVX2 a masked store costs more than
  /// scalar stores of its lanes.
  Values whereMasksHold(Index &index, llvm::ArrayRef<Ix> positions, mlir::ValueRange like,
                        llvm::function_ref<Values(llvm::ArrayRef<Ix>)> body);
  /// Whether the two ends of a row decide that all masks are true in it: they are true in intervals, and the row is
  /// long.
  bool checksOncePerRow(int64_t maxUnrolled);
  /// Emits a row in two versions; one of them is for masks that are true in the whole row, and checks no vector.
  /// Returns the states of its reductions.
  States whereMasksHoldForRow(const Index &index, int64_t maxUnrolled);

  // --- Rows and columns ---------------------------------------------------------------------------------------------

  States neutral();
  static Values flat(const llvm::SmallVector<States> &all);
  llvm::SmallVector<States> unflat(mlir::ValueRange values, int64_t copies);
  /// Combines the interleaved states into one state for each reduction.
  States combined(llvm::SmallVector<States> &states);
  /// Writes the value of a store or a tile in scratch memory.
  void write(const Root &root, mlir::Value value, const Index &index);
  /// Emits all roots at one position and updates the reductions' `states`.
  void all(const Index &index, States &states);
  /// A position along the last dimension: a whole vector, or the peeled, partial one.
  Ix lanesAt(mlir::Value base, int64_t offset, int64_t valid);
  /// The vectors of a row after the loop, which covers the elements before `from`.
  llvm::SmallVector<Piece> remainder(int64_t from, int64_t extent);
  void forEach(llvm::ArrayRef<Piece> pieces, llvm::function_ref<void(Ix)> body);
  /// The number of `full` vectors that a loop with `unroll` vectors per iteration computes; the others follow it.
  static int64_t vectorsInLoop(int64_t full, int64_t unroll) { return full / unroll >= 2 ? full / unroll * unroll : 0; }
  /// Evaluates all roots at all positions, so that all loads of the nest there precede its stores. A nest's roots write
  /// nothing that it reads at another position; LLVM cannot prove that, and would keep the order.
  void readAll(Index &index, llvm::ArrayRef<Ix> positions);
  /// Emits a row; returns the states of its reductions.
  States row(Index &index);
  States row(Index &index, int64_t maxUnrolled);
  /// As row(), with the results of checks in `usual` lanes, because their elements may be narrower.
  States rowOf(Index &index, int64_t maxUnrolled, int64_t usual);
  /// Emits a loop over rows. It carries whether all checks hold so far.
  void rowByRow(Index &index);
  /// Emits the stores of a row's reductions. Returns whether the checks hold so far: `holds` and those of the row.
  Values finishRow(const Index &index, const States &states, mlir::ValueRange holds);
  /// Emits reductions and scans along `axis`, a block of columns after the other.
  void columns(Index &index, int64_t axis, int64_t unroll);
  /// Some vectors of columns, the states of their reductions, and the carries of their scans. Rows that are added apart
  /// have states of their own: those of row r are copies · r and following.
  struct Block {
    llvm::SmallVector<Ix> positions;
    llvm::SmallVector<States> states;
    Values carries; // of vector 0, then of vector 1, …
  };
  void columnBlock(Index &index, int64_t axis, int64_t apart, llvm::SmallVector<Ix> positions);
  /// Adds the rows [from, to), `rows` of them apart; and one row. Returns the scans' carries.
  void addRows(Index &index, int64_t axis, Block &block, int64_t from, int64_t to, int64_t rows);
  Values addRow(Index &index, const Block &block, llvm::MutableArrayRef<States> states, mlir::ValueRange carries);
  /// Stores the results.
  void finishColumns(Index &index, int64_t axis, Block &block);
  /// Column reductions: the number of consecutive rows with separate states. For narrow rows it is the number of rows
  /// that columnsOfLine() computes per iteration, so that both add in one order. It is 1 for all other tiles.
  int64_t apartInColumns(int64_t axis);
  /// Combines those states: first those that are a period apart, then those of a period, as a tree.
  States metInColumns(llvm::SmallVector<States> apart);
  /// Column reductions: the number of vectors of columns per iteration. Their states take half of the registers. Memory
  /// reaches its full bandwidth with long pieces of rows.
  int64_t maxColumns();

  // --- Several rows at a time ---------------------------------------------------------------------------------------

  /// Whether the nest gathers rows, which have arbitrary addresses.
  bool gathersRows();
  /// Emits a loop that computes a vector of each of four rows per iteration, so that no row waits for the memory of
  /// another. The version with masks computes one row at a time.
  void rowsAbreast(Index &index);
  /// Emits all roots in `count` rows, one vector of each row at a time.
  void vectorsOfRows(Ix first, int64_t count);
  /// Whether the cross-lane reductions of several rows are computed together: there are many rows, and they are short.
  bool reducesTogether();
  /// Emits reductions of as many rows as there are lanes. Each row writes a vector to memory; these are then reduced
  /// together.
  void rowsTogether(Index &index);

  // --- Rows narrower than a vector (NarrowRows.cpp) -----------------------------------------------------------------

  /// A required stride of a view along a dimension.
  struct Pitch {
    mlir::Value view;
    int64_t axis, pitch;
  };
  /// The strides for which the rows of an access are contiguous, as far as they are dynamic. Nothing if static strides
  /// exclude it, or if the access has index tiles or a mask.
  std::optional<llvm::SmallVector<Pitch>> pitchesOf(tile::AccessOp access) const;
  /// Whether the code for a vector of one row is also right for a vector that spans several rows.
  bool followsFromRows(mlir::Value tile) const;
  /// Whether vectors may span several rows, in the version in which `inside` is true.
  bool takesNarrowRows();
  void narrowRows();
  /// The number of rows after which a vector begins at the start of a row again (the period).
  int64_t rowsOfPeriod() const;
  /// A multiple of the period that has about `unroll` vectors.
  int64_t rowsOfStep(int64_t unroll) const;
  /// The indices of the vectors of `count` rows from `first` on, as one line. All roots are evaluated at them.
  llvm::SmallVector<Index> lineFrom(const Index &index, const Ix &first, int64_t count);
  /// Emits as many rows as possible as vectors of one line; returns their number.
  int64_t rowsAsVectors(Index &index, int64_t unroll);
  /// Emits column reductions of a line. Each lane of the line has its own state; those of one column are combined at
  /// the end.
  void columnsOfLine(Index &index, int64_t unroll);
  /// Emits the reductions of as many rows as there are lanes; `vectors` are their elements, one row after the other.
  void reduceRows(const Index &rows, llvm::ArrayRef<Index> vectors);

  // --- Joined rows (Joined.cpp) -------------------------------------------------------------------------------------

  bool isJoined() const { return roots.front().joined.has_value(); }
  /// Whether `axis` is the dimension of the elements of joined rows.
  bool isOfJoined(int64_t axis) const { return isJoined() && axis + 1 == static_cast<int64_t>(shape.size()); }
  /// One vector for each element of the joined rows at `index`.
  Values joinedAt(const Root &root, Index index);
  /// Interleaves these vectors and stores them.
  void writeJoined(const Root &root, const Index &index);

  // --- Transposed tiles (ManyRows.cpp) ------------------------------------------------------------------------------

  void transposeBlocks();
  /// Emits a loop over the positions along an axis, one vector of them per iteration.
  void vectorsAlong(int64_t axis, llvm::function_ref<void(Ix)> body);
  /// Transposes a block of the source, with as many rows as `row` has lanes: reads along `column`, writes along `row`.
  void transposeBlock(Index index, int64_t across, const Ix &row, const Ix &column);

  llvm::ArrayRef<Root> roots;
  Evaluator e;
  llvm::ArrayRef<int64_t> shape;
  llvm::SmallVector<std::pair<const Root *, Reduction>> reductions;
  Scans scans;
  Values scalars;                   // results of reductions to scalars
  llvm::SmallVector<Pitch> pitches; // of narrow rows
  mlir::Value inside;      // i1: all accesses of the nest are in bounds; null: always, or the nest has one version
  int64_t bitsInside = 32; // of the widest elements, in the version in which all accesses are in bounds
  NextRows nextRows;       // of the loop around the nest
  llvm::SetVector<mlir::Value> masks; // of accesses, if the version without bounds checks tests them together
  int64_t laneAxis = 0;               // the vectorised dimension
  bool isNarrow = false;              // vectors span several rows
  int outermost = 0;                  // the outermost loop level at which positions are defined
  mlir::Value mask;                   // the mask tile of `triangle`; null if there is none
  Triangle triangle;
};

// --- Checks ----------------------------------------------------------------------------------------------------------

/// Emits a branch that reports the false elements if `holds` (i1) is false.
void branchToFailures(Evaluator &e, tile::CheckOp check, mlir::Value holds);

} // namespace kiln::lowering::cpu
