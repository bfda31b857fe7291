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

#endif
