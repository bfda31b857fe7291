// Interfaces of the `tile` dialect's operations.

#ifndef KILN_DIALECT_TILE_INTERFACES_TD
#define KILN_DIALECT_TILE_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_MoveOp : OpInterface<"MoveOp"> {
  let cppNamespace = "::kiln::tile";
  let description = [{
    An operation that computes nothing: each element of its result is one element of its source. Its map says which: from
    the result's position to the source's, row-major, with no results where the source is a scalar and no dimensions where
    the result is one.

        tile.transpose %x [1, 0]            (d0, d1) -> (d1, d0)
        tile.broadcast 64x1 -> 64x32        (d0, d1) -> (d0, 0)
        tile.reshape 64 -> 8x8              (d0, d1) -> (d0 * 8 + d1)

    Whoever needs to know no more than where elements come from (the oracle, the evaluator, analyses) asks for the map, and
    so takes a new operation of this kind as it is.
  }];
  let methods = [
    InterfaceMethod<"what the elements are taken from, a tile or a scalar", "::mlir::Value", "getMoved">,
    InterfaceMethod<"which element of the source an element of the result is", "::mlir::AffineMap", "getMoveMap">,
  ];
}

def Tile_AccessOp : OpInterface<"AccessOp"> {
  let cppNamespace = "::kiln::tile";
  let description = [{
    An operation that reads or writes elements of a view, one for each element of a tile. Which ones the subscripts say,
    one for each dimension of the view: a number is where the tile begins there, a tile of numbers names every position.

        tile.load %v[%m, %k]          element (i, j) is the view's (m + i, k + j)
        tile.gather %v[%rows, %k]     element (i, j) is the view's (rows[i], k + j)

    Whoever needs to know no more than which memory is touched, by which tile and in which order (what may move or join,
    layouts, barriers) asks here, and so takes a new operation of this kind as it is.
  }];
  let methods = [
    InterfaceMethod<"the memory", "::mlir::TypedValue<::mlir::MemRefType>", "getView">,
    InterfaceMethod<"where in it, a number or a tile of them for each dimension", "::mlir::OperandRange",
                    "getSubscripts">,
    InterfaceMethod<"the tile that is written, or else the one that is read",
                    "::mlir::TypedValue<::mlir::RankedTensorType>", "getTile">,
    InterfaceMethod<"whether elements of the view are read", "bool", "readsView">,
    InterfaceMethod<"whether elements of the view are written", "bool", "writesView">,
    InterfaceMethod<"how it orders all accesses of the program", "::kiln::tile::MemoryOrder", "getOrder", (ins), "",
                    "return ::kiln::tile::MemoryOrder::Relaxed;">,
    InterfaceMethod<"what an element outside the view reads", "::kiln::tile::Padding", "getPadding", (ins), "",
                    "return ::kiln::tile::Padding::Zero;">,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether the view is read and stays as it is: the tile is the result.
    bool isLoad() { return $_op.readsView() && !$_op.writesView(); }
    /// Whether the view is written and nothing is read: there is no result.
    bool isStore() { return $_op.writesView() && !$_op.readsView(); }
    /// Whether no access of the program may change sides with it, wherever that goes.
    bool ordersAll() { return $_op.getOrder() != ::kiln::tile::MemoryOrder::Relaxed; }
    /// Where each position along dimension 0 is named; null where the tile begins at a number.
    ::mlir::Value getRowNumbers() {
      ::mlir::OperandRange subscripts = $_op.getSubscripts();
      const bool isNamed =
          !subscripts.empty() && ::llvm::isa<::mlir::RankedTensorType>(subscripts.front().getType());
      return isNamed ? subscripts.front() : ::mlir::Value();
    }
    /// Where the tile begins in the dimensions that are not named.
    ::mlir::OperandRange getBegins() { return $_op.getSubscripts().drop_front($_op.getRowNumbers() ? 1 : 0); }
  }];
}

#endif
