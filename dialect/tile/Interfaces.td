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
    one for each dimension of the view: a number is where a block of the tile begins there, a tile of numbers names every
    position. The tile has the dimensions of the tiles of numbers, which are of one shape, and behind them one for each
    number, in the view's order.

        tile.load %v[%m, %k]                   element (i, j) is the view's (m + i, k + j)
        tile.gather %v[%rows, %k]              element (i, j) is the view's (rows[i], k + j)
        tile.gather %v[%n, %rows, %columns]    element (i, j, k) is the view's (n + k, rows[i, j], columns[i, j])

    Where an access has a mask, an element for which that is false is neither read nor written.

    Whoever needs to know no more than which memory is touched, by which tile and in which order (what may move or join,
    layouts, barriers) asks here, and so takes a new operation of this kind as it is.
  }];
  let methods = [
    InterfaceMethod<"the memory", "::mlir::TypedValue<::mlir::MemRefType>", "getView">,
    InterfaceMethod<"where in it, a number or a tile of them for each dimension", "::mlir::OperandRange",
                    "getSubscripts">,
    InterfaceMethod<"the tile that is written, or else the one that is read",
                    "::mlir::TypedValue<::mlir::RankedTensorType>", "getTile">,
    InterfaceMethod<"of which elements memory is touched, a tile of i1; null: of all that lie in the view",
                    "::mlir::Value", "getMaskIfAny", (ins), "", "return ::mlir::Value();">,
    InterfaceMethod<"whether elements of the view are read", "bool", "readsView">,
    InterfaceMethod<"whether elements of the view are written", "bool", "writesView">,
    InterfaceMethod<"whether other programs may access the same elements meanwhile: each is touched once, whole, here",
                    "bool", "isAtomic", (ins), "", "return false;">,
    InterfaceMethod<"how it orders all accesses of the program", "::kiln::tile::MemoryOrder", "getOrder", (ins), "",
                    "return ::kiln::tile::MemoryOrder::Relaxed;">,
    InterfaceMethod<"what an element outside the view or the mask reads", "::kiln::tile::Padding", "getPadding", (ins),
                    "", "return ::kiln::tile::Padding::Zero;">,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether the view is read and stays as it is, and nobody changes it meanwhile: the tile is the result.
    bool isLoad() { return $_op.readsView() && !$_op.writesView() && !$_op.isAtomic(); }
    /// Whether the view is written and nothing is read: there is no result.
    bool isStore() { return $_op.writesView() && !$_op.readsView() && !$_op.isAtomic(); }
    /// Whether no access of the program may change sides with it, wherever that goes.
    bool ordersAll() { return $_op.getOrder() != ::kiln::tile::MemoryOrder::Relaxed; }
    /// Whether positions along dimension `axis` of the view are named one by one.
    bool isNamed(int64_t axis) {
      return ::llvm::isa<::mlir::RankedTensorType>($_op.getSubscripts()[axis].getType());
    }
    /// The rank of the tiles of positions, the first dimensions of the tile; 0 where every subscript is a number.
    int64_t getIndexRank() {
      for (::mlir::Value subscript : $_op.getSubscripts())
        if (auto named = ::llvm::dyn_cast<::mlir::RankedTensorType>(subscript.getType()))
          return named.getRank();
      return 0;
    }
    /// The dimension of the tile along which positions in dimension `axis` of the view follow each other from a number
    /// on.
    int64_t getBlockDim(int64_t axis) {
      int64_t dim = $_op.getIndexRank();
      for (int64_t before = 0; before < axis; ++before)
        dim += $_op.isNamed(before) ? 0 : 1;
      return dim;
    }
  }];
}

#endif
