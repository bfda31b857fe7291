// A loop nest while it is emitted: what its rows, its columns and its forms share. Loops.cpp has the rows, Columns.cpp
// the columns, ManyRows.cpp those forms that compute several rows at a time, NarrowRows.cpp rows narrower than vectors,
// Turned.cpp transposed tiles, Joined.cpp rows that are joined.

#pragma once

#include "lowering/analysis/Triangles.h"
#include "lowering/cpu/Prefetch.h"
#include "lowering/cpu/Reduction.h"
#include "lowering/cpu/Scan.h"
#include "lowering/cpu/Widths.h"

namespace kiln::lowering::cpu {

/// Running results of a row's reductions, each of every fourth vector; rows of a gather that take turns.
inline constexpr int64_t sideBySide = 4;

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
  /// The dimension that vectors run along: the last. Of a nest of stores the last that is longer than 1.
  int64_t findLaneAxis();
  /// Loops over every dimension but that of the lanes and `except`. They carry `carried`; their last values.
  Values outer(size_t axis, Index &index, int64_t except, mlir::ValueRange carried,
               llvm::function_ref<Values(mlir::ValueRange)> body);

  // --- Tiles that lie inside their views ----------------------------------------------------------------------------

  /// Whether rows are worth the time to compile them twice: those shorter than a vector have masks anyway, a few
  /// vectors cost little with them, and a triangle makes two of the nest already.
  bool paysTwice() const;
  /// Whether the nest loads what no nest before it did, for what one did is near, where masks cost their instructions;
  /// or stores where a mask costs more than they do.
  bool masksCostMuch(ReadTiles *read);
  /// The positions, known from here on only: what follows from them stays on this side of a branch.
  Index keptHere(const Index &index);
  /// What `body` gives, of the types of `like`, for a tile that lies inside its views, and again for one that hangs
  /// over them, where that differs. It gets how many vectors of a row to compute in a step.
  Values inOrOver(const Index &index, mlir::ValueRange like, llvm::function_ref<Values(Index, int64_t unroll)> body);

  /// Whether rows have loops around them.
  bool hasOuterLoops() const;
  /// The same of all rows: the loops around them stand twice, so that none of them has what the other one holds in
  /// registers. `body` gets a row's index, how many vectors of it to compute in a step, and the carried values.
  Values outerInOrOver(int64_t except, mlir::ValueRange carried,
                       llvm::function_ref<Values(Index &, int64_t unroll, mlir::ValueRange)> body);

  // --- Triangles ----------------------------------------------------------------------------------------------------

  /// A comparison, of the nest's shape, by which some tile of the nest is masked: those inside a triangle are read.
  mlir::Value findMask();
  /// Emits `body`, which gives values of the types of `like`, twice where there is a mask: once for when the triangle
  /// covers the whole tile.
  Values inVersions(mlir::ValueRange like, llvm::function_ref<Values()> body);
  Values assuming(bool inside, llvm::function_ref<Values()> body);
  /// Whether the code now emitted asks for each vector whether it lies outside.
  bool asksForEach() { return mask && !e.assumed.contains(mask); }
  /// Whether all lanes at `index` lie outside the triangle.
  mlir::Value liesOutside(const Index &index);
  /// A step, or what is left of it outside the triangle.
  void step(const Index &index, States &states);

  // --- Masks of accesses --------------------------------------------------------------------------------------------

  /// The masks of the accesses whose elements the nest reads and writes at its own positions.
  llvm::SetVector<mlir::Value> findMasks();
  /// Whether all masks hold at all lanes of some vectors of a row. Of a mask that holds in an interval the first and
  /// the last of them tell, and whether sums go from the one to the other without wrapping.
  mlir::Value masksHold(Index &index, llvm::ArrayRef<Ix> positions);
  /// What `body` gives at some whole vectors of a row, of the types of `like`: where there are masks twice, once for
  /// where they hold for all elements; a nest that only stores then asks for each vector. A mask costs more than its
  /// instructions (Loops.cpp), a store with one on AVX2 more than the lanes that it writes.
  Values whereMasksHold(Index &index, llvm::ArrayRef<Ix> positions, mlir::ValueRange like,
                        llvm::function_ref<Values(llvm::ArrayRef<Ix>)> body);
  /// Whether a row's two ends tell that all masks hold in it: they hold in intervals, and it is long.
  bool asksOnceARow(int64_t mostUnrolled);
  /// The states of a row, twice: once for where all masks hold in the whole of it, which no vector then asks for.
  States whereMasksHoldForRow(const Index &index, int64_t mostUnrolled);

  // --- Rows and columns ---------------------------------------------------------------------------------------------

  States neutral();
  static Values flat(const llvm::SmallVector<States> &all);
  llvm::SmallVector<States> unflat(mlir::ValueRange values, int64_t copies);
  /// One state for each reduction.
  States combined(llvm::SmallVector<States> &states);
  /// Writes the value of a store or a placed tile.
  void write(const Root &root, mlir::Value value, const Index &index);
  /// All roots at one position; reductions go into `states`.
  void all(const Index &index, States &states);
  /// One position along the last dimension, a whole vector or the peeled rest.
  Ix lanesAt(mlir::Value base, int64_t offset, int64_t valid);
  /// The vectors of a row behind a loop over those before `from`.
  llvm::SmallVector<Piece> behind(int64_t from, int64_t extent);
  void forEach(llvm::ArrayRef<Piece> pieces, llvm::function_ref<void(Ix)> body);
  /// How many of `full` vectors a loop of `unroll` vectors a step computes; the others stand behind it.
  static int64_t loopedOf(int64_t full, int64_t unroll) { return full / unroll >= 2 ? full / unroll * unroll : 0; }
  /// Evaluates all roots at all positions, so that what the nest reads there comes before what it writes: a nest's
  /// roots write nothing that it reads at another position. LLVM, which does not know that, keeps the order.
  void readAll(Index &index, llvm::ArrayRef<Ix> positions);
  /// The states of its reductions.
  States row(Index &index);
  States row(Index &index, int64_t mostUnrolled);
  /// The same; the results of checks, whose elements may be narrow, in `usual` lanes.
  States rowOf(Index &index, int64_t mostUnrolled, int64_t usual);
  /// Row after row; whether all elements hold that checks ask for goes along.
  void rowByRow(Index &index);
  /// Emits the stores of a row's reductions. What the checks have found so far: `holds` and the row's.
  Values finishRow(const Index &index, const States &states, mlir::ValueRange holds);
  void columns(Index &index, int64_t axis, int64_t unroll);
  /// How many rows that follow each other go to states of their own, in reductions of the columns of narrow rows: as
  /// many as columnsOfLine takes at a time, so that both add in one order. 1 of all other tiles.
  int64_t apartInColumns(int64_t axis);
  /// What those states are together: those a period apart meet, and then those of a period, as a tree.
  States metInColumns(llvm::SmallVector<States> apart);
  /// How many vectors of columns stand side by side: their states take half of the registers. Long pieces of rows are
  /// what memory reads at its full rate.
  int64_t mostColumns();

  // --- Several rows at a time ---------------------------------------------------------------------------------------

  /// Whether the nest gathers rows, which lie anywhere.
  bool gathersRows();
  /// A vector of each of four rows a step: none waits for the memory of another. With masks row after row.
  void rowsAbreast(Index &index);
  /// All roots in `count` rows, a vector of each at a time.
  void vectorsOfRows(Ix first, int64_t count);
  /// Whether the lanes of many rows are reduced at once: where there are many and short ones.
  bool reducesTogether();
  /// As many rows as there are lanes leave a vector each in memory, and are then reduced together.
  void rowsTogether(Index &index);

  // --- Rows narrower than a vector (NarrowRows.cpp) -----------------------------------------------------------------

  /// The distance that a view's elements are to have along a dimension.
  struct Pitch {
    mlir::Value view;
    int64_t axis, pitch;
  };
  /// What is wanted of an access's view so that its rows follow each other, as far as it is not known; none where they
  /// do not, or where positions are named or masked.
  std::optional<llvm::SmallVector<Pitch>> pitchesOf(tile::AccessOp access) const;
  /// Whether a vector of elements of several rows is computed as one of a row is.
  bool followsFromRows(mlir::Value tile) const;
  /// Whether vectors are to go on from row to row, where `inside` holds.
  bool takesNarrowRows();
  void narrowRows();
  /// After so many rows a vector begins with a row again.
  int64_t rowsOfPeriod() const;
  /// Rows, a multiple of these, that have about `unroll` vectors.
  int64_t rowsOfStep(int64_t unroll) const;
  /// The vectors of `count` rows from `first` on as one line, at which all roots have been evaluated.
  llvm::SmallVector<Index> lineFrom(const Index &index, const Ix &first, int64_t count);
  /// Rows as one line; how many were taken so.
  int64_t rowsAsVectors(Index &index, int64_t unroll);
  /// The reductions of columns: lanes of the line have states of their own, and those of a column meet behind it.
  void columnsOfLine(Index &index, int64_t unroll);
  /// The reductions of as many rows as there are lanes, whose elements lie in these vectors, one after the other.
  void reduceRows(const Index &rows, llvm::ArrayRef<Index> vectors);

  // --- Rows that are joined (Joined.cpp) ----------------------------------------------------------------------------

  bool isJoined() const { return roots.front().joined.has_value(); }
  /// Whether the elements of joined rows lie along a dimension.
  bool isOfJoined(int64_t axis) const { return isJoined() && axis + 1 == static_cast<int64_t>(shape.size()); }
  /// The vectors of each element of the rows at `index`.
  Values joinedAt(const Root &root, Index index);
  /// Stores them, side by side.
  void writeJoined(const Root &root, const Index &index);

  // --- Transposed tiles (Turned.cpp) --------------------------------------------------------------------------------

  void turnedBlocks();
  /// All positions along an axis, a vector of them at a time.
  void vectorsAlong(int64_t axis, llvm::function_ref<void(Ix)> body);
  /// A block of as many rows of the source as `row` has lanes, read along `column` and placed along `row`.
  void turnBlock(Index index, int64_t across, const Ix &row, const Ix &column);

  llvm::ArrayRef<Root> roots;
  Evaluator e;
  llvm::ArrayRef<int64_t> shape;
  llvm::SmallVector<std::pair<const Root *, Reduction>> reductions;
  Scans scans;
  Values scalars;                   // results of reductions to them
  llvm::SmallVector<Pitch> pitches; // of narrow rows
  mlir::Value inside;      // i1: all that the nest accesses lies inside its views; null: it does, or it is all one
  int64_t bitsInside = 32; // of the widest elements, where all accesses lie inside
  NextRows nextRows;       // of the loop that the nest stands in
  llvm::SetVector<mlir::Value> masks; // of accesses, where those that lie inside are asked for them together
  int64_t laneAxis = 0;               // the dimension that vectors run along
  bool isNarrow = false;              // vectors go on from row to row
  int outermost = 0;                  // the loop level from which on positions count as known
  mlir::Value mask;                   // the tile that says what lies inside `triangle`, if there is one
  Triangle triangle;
};

} // namespace kiln::lowering::cpu
