// How reductions and scans combine elements: the arithmetic of every kind, written once for scalars, vectors and tiles,
// or the function of a scan.
//
// A partial result is a *state*: one value, of argmax two, an integer that orders as the element does and the element's
// index, and of a function one for each tile. Whoever reduces begins states from elements, combines them in an order of
// its own and ends the last.

#pragma once

#include "dialect/tile/TileDialect.h"
#include "lowering/tile/Emit.h"

namespace kiln::lowering {

class Combiner {
public:
  using State = llvm::SmallVector<mlir::Value, 2>;

  /// Of elements of this type, after tile-expand-ops: f32, f64, i8, i32 or i64; or the least or greatest of i1.
  Combiner(tile::ReduceKind kind, mlir::Type element) : kind(kind), element(element) {}
  /// Of what an operation has: a kind, or a function, which may use scalars from outside.
  template <class OpTy> static Combiner of(OpTy scan) {
    Combiner combiner(scan.getKind().value_or(tile::ReduceKind::Sum),
                      mlir::getElementTypeOrSelf(scan.getSources()[0].getType()));
    combiner.function = scan.getBy().empty() ? nullptr : &scan.getBy().front();
    return combiner;
  }

  bool hasIndex() const { return kind == tile::ReduceKind::ArgMax; }
  bool hasNeutral() const { return !function; }
  /// What changes nothing when it is combined, a constant for each value of a state. Sums begin at −0, so that one of
  /// nothing but −0 is −0 whatever it is padded with.
  llvm::SmallVector<mlir::TypedAttr, 2> neutral() const;
  /// The state of elements; `index`, i32, is where they are, and may be null unless there is an index.
  State begin(Emit &emit, mlir::Value elements, mlir::Value index) const;
  /// `a` comes before `b`, which matters to a function. What a function takes from outside is what `outside` gives for
  /// it, if that is set.
  State combine(Emit &emit, const State &a, const State &b,
                llvm::function_ref<mlir::Value(mlir::Value)> outside = nullptr) const;
  /// What is left in the end.
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
