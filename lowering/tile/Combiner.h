// Emits the combining of elements in reductions and scans, for scalars, vectors and tiles: the arithmetic of every
// kind, or a combine function.
//
// A partial result is a *state*. It is one value; for argmax it is two: an integer with the order of the element, and
// the element's index. For a combine function it is one value for each tile. The caller makes states from elements,
// combines them in any order that it chooses, and extracts the result from the last state.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "lowering/tile/Emit.h"

namespace kiln::lowering {

class Combiner {
public:
  using State = llvm::SmallVector<mlir::Value, 2>;

  /// Of elements of this type, after tile-expand-ops: f32, f64, i8, i32 or i64; or the least or greatest of i1.
  Combiner(tile::ReduceKind kind, mlir::Type element) : kind(kind), element(element) {}
  /// Of an operation's kind, or of its function, which may use scalars from outside.
  template <class OpTy> static Combiner of(OpTy scan) {
    Combiner combiner(scan.getKind().value_or(tile::ReduceKind::Sum),
                      mlir::getElementTypeOrSelf(scan.getSources()[0].getType()));
    combiner.function = scan.getBy().empty() ? nullptr : &scan.getBy().front();
    return combiner;
  }

  bool hasIndex() const { return kind == tile::ReduceKind::ArgMax; }
  bool hasNeutral() const { return !function; }
  /// The identity element, a constant for each value of a state. A sum starts at −0, so that a sum of only −0 is −0
  /// with any padding.
  llvm::SmallVector<mlir::TypedAttr, 2> neutral() const;
  /// The state of elements; `index` (i32) is their position, and may be null unless hasIndex().
  State begin(Emit &emit, mlir::Value elements, mlir::Value index) const;
  /// Combines two states; `a` is before `b`, which matters to a combine function. `outside`, if set, maps the values
  /// that a function uses from outside to their replacements.
  State combine(Emit &emit, const State &a, const State &b,
                llvm::function_ref<mlir::Value(mlir::Value)> outside = nullptr) const;
  /// The result of the last state.
  static mlir::Value end(mlir::ValueRange state) { return state.back(); }

private:
  State call(Emit &emit, const State &a, const State &b, llvm::function_ref<mlir::Value(mlir::Value)> outside) const;
  mlir::Value pick(Emit &emit, mlir::Value a, mlir::Value b) const;
  mlir::Value keyOf(Emit &emit, mlir::Value elements) const;
  mlir::IntegerType keyType() const;

  tile::ReduceKind kind;
  mlir::Type element;
  mlir::Block *function = nullptr;
};

} // namespace kiln::lowering
