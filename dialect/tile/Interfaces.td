// Interfaces of the `tile` dialect's operations.

#ifndef KILN_DIALECT_TILE_INTERFACES_TD
#define KILN_DIALECT_TILE_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Tile_MoveOp : OpInterface<"MoveOp"> {
  let cppNamespace = "::kiln::tile";
  let description = [{
    An operation that only moves elements: each element of its result is one element of its source. Its map goes from a
    position in the result to the position in the source, row-major. The map has no results if the source is a scalar, and
    no dimensions if the result is one.

        tile.transpose %x [1, 0]            (d0, d1) -> (d1, d0)
        tile.broadcast 64x1 -> 64x32        (d0, d1) -> (d0, 0)
        tile.reshape 64 -> 8x8              (d0, d1) -> (d0 * 8 + d1)

    Code that only needs to know where elements come from uses the map: the reference backend, the evaluator, analyses. So
    it handles a new operation of this kind without a change.
  }];
  let methods = [
    InterfaceMethod<"the source of the elements, a tile or a scalar", "::mlir::Value", "getMoved">,
    InterfaceMethod<"the map from an element of the result to its element of the source", "::mlir::AffineMap", "getMoveMap">,
  ];
}

def Tile_AccessOp : OpInterface<"AccessOp"> {
  let cppNamespace = "::kiln::tile";
  let description = [{
    An operation that reads or writes elements of a view, one for each element of a tile. It has one subscript for each
    dimension of the view. A scalar subscript is the offset of a block; an index tile gives every position. All index tiles
    have one shape, the first dimensions of the tile. A dimension for each scalar follows, in the view's order.

        tile.load %v[%m, %k]                   element (i, j) is the view's (m + i, k + j)
        tile.gather %v[%rows, %k]              element (i, j) is the view's (rows[i], k + j)
        tile.gather %v[%n, %rows, %columns]    element (i, j, k) is the view's (n + k, rows[i, j], columns[i, j])

    An element whose mask is false is neither read nor written.

    Code that only needs to know which memory is accessed, by which tile and in which order, uses this interface: reordering
    and fusion, layouts, barriers. So it handles a new operation of this kind without a change.
  }];
  let methods = [
    InterfaceMethod<"the memory", "::mlir::TypedValue<::mlir::MemRefType>", "getView">,
    InterfaceMethod<"the subscripts: a scalar or an index tile for each dimension", "::mlir::OperandRange",
                    "getSubscripts">,
    InterfaceMethod<"the tile that is written, or else the one that is read",
                    "::mlir::TypedValue<::mlir::RankedTensorType>", "getTile">,
    InterfaceMethod<"the mask of accessed elements, a tile of i1; null: all elements in bounds",
                    "::mlir::Value", "getMaskIfAny", (ins), "", "return ::mlir::Value();">,
    InterfaceMethod<"whether elements of the view are read", "bool", "readsView">,
    InterfaceMethod<"whether elements of the view are written", "bool", "writesView">,
    InterfaceMethod<"whether other programs may access these elements concurrently: each is accessed once, whole",
                    "bool", "isAtomic", (ins), "", "return false;">,
    InterfaceMethod<"how it orders all accesses of the program", "::kiln::tile::MemoryOrder", "getOrder", (ins), "",
                    "return ::kiln::tile::MemoryOrder::Relaxed;">,
    InterfaceMethod<"the value that an element out of bounds or masked off reads", "::kiln::tile::Padding", "getPadding", (ins),
                    "", "return ::kiln::tile::Padding::Zero;">,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether the view is read and not written, here or concurrently: the tile is the result.
    bool isLoad() { return $_op.readsView() && !$_op.writesView() && !$_op.isAtomic(); }
    /// Whether the view is written and not read: there is no result.
    bool isStore() { return $_op.writesView() && !$_op.readsView() && !$_op.isAtomic(); }
    /// Whether no access of the program may be reordered with it, whatever its memory.
    bool ordersAll() { return $_op.getOrder() != ::kiln::tile::MemoryOrder::Relaxed; }
    /// Whether an index tile gives the positions along dimension `axis` of the view.
    bool isIndexed(int64_t axis) {
      return ::llvm::isa<::mlir::RankedTensorType>($_op.getSubscripts()[axis].getType());
    }
    /// The rank of the index tiles, the first dimensions of the tile; 0 if every subscript is a scalar.
    int64_t getIndexRank() {
      for (::mlir::Value subscript : $_op.getSubscripts())
        if (auto index = ::llvm::dyn_cast<::mlir::RankedTensorType>(subscript.getType()))
          return index.getRank();
      return 0;
    }
    /// The dimension of the tile that is the block along dimension `axis` of the view.
    int64_t getBlockDim(int64_t axis) {
      int64_t dim = $_op.getIndexRank();
      for (int64_t before = 0; before < axis; ++before)
        dim += $_op.isIndexed(before) ? 0 : 1;
      return dim;
    }
  }];
}

#endif
