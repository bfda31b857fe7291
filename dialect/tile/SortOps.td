// Operations whose elements find their places by values: sorting, taking and counting.

#ifndef KILN_DIALECT_TILE_SORTOPS_TD
#define KILN_DIALECT_TILE_SORTOPS_TD

include "dialect/tile/TileDialect.td"

def Tile_SortOp : Tile_Op<"sort", [Pure]> {
  let summary = "the elements in order along an axis, and where they stood";
  let description = [{
    The first of them, as many as the result has along the axis, from the smallest up, or with `descending` from the largest
    down. NaN stand last either way. With `tile.unsigned` integers have no sign. The second result has the i32 position that each had along the axis: −0 and +0 are
    equal, and equal ones keep their order. Where nobody uses it, which zero comes first is open, and which bits a NaN has.

    `by` is for what compilers make of it: of integers, in ascending order, those that are equal stand in the order of these
    i32 numbers, and the second result has them in place of positions.

    ```mlir
    func.func @example(%x: tensor<4x96xf32>, %y: tensor<64xi64>, %z: tensor<64xi32>) -> (tensor<4x8xf32>, tensor<64xi32>) {
      %0:2 = tile.sort %x axis 1 descending : tensor<4x96xf32> -> tensor<4x8xf32>, tensor<4x8xi32>
      %1:2 = tile.sort %y by %z axis 0 : tensor<64xi64>, tensor<64xi32> -> tensor<64xi64>, tensor<64xi32>
      return %0#0, %1#1 : tensor<4x8xf32>, tensor<64xi32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, Optional<Tile_IntegerTensor>:$ties, I64Attr:$axis, UnitAttr:$descending);
  let results = (outs Tile_Tensor:$result, Tile_IntegerTensor:$positions);
  let assemblyFormat = [{
    $source (`by` $ties^)? `axis` $axis (`descending` $descending^)? attr-dict `:` type($source) (`,` type($ties)^)?
    `->` type($result) `,` type($positions)
  }];
  let extraClassDeclaration = [{
    /// Elements along the axis, and how many of them are left.
    int64_t getExtent() { return getSource().getType().getDimSize(getAxis()); }
    int64_t getCount() { return getResult().getType().getDimSize(getAxis()); }
    /// Whether it is as compilers order it: integers of 32 or 64 bits, ascending, without positions of its own.
    bool isOfKeys();
  }];
  let hasCanonicalizeMethod = 1;
}

def Tile_TakeOp : Tile_Op<"take", [Pure]> {
  let summary = "elements whose positions along an axis a tile names";
  let description = [{
    Element (…, i, …) is the source's (…, index[…, i, …], …); 0 where there is no such position. The extents of source and
    index agree but along the axis.

    ```mlir
    func.func @example(%x: tensor<4x96xf32>, %index: tensor<4x8xi32>) -> tensor<4x8xf32> {
      %0 = tile.take %x[%index] axis 1 : tensor<4x96xf32>, tensor<4x8xi32> -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, Tile_IntegerTensor:$index, I64Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $source `[` $index `]` `axis` $axis attr-dict `:` type($source) `,` type($index) `->` type($result)
  }];
}

def Tile_HistogramOp : Tile_Op<"histogram", [Pure]> {
  let summary = "how many elements have each of the values 0, 1, …";
  let description = [{
    Of the elements for which the mask holds, all without one. Other values are not counted; counts wrap.

    ```mlir
    func.func @example(%x: tensor<4x96xi32>, %mask: tensor<4x96xi1>) -> tensor<64xi32> {
      %0 = tile.histogram %x if %mask : tensor<4x96xi32>, tensor<4x96xi1> -> tensor<64xi32>
      return %0 : tensor<64xi32>
    }
    ```
  }];
  let arguments = (ins Tile_IntegerTensor:$source, Optional<Tile_BoolTensor>:$mask);
  let results = (outs Tile_IntegerTensor:$result);
  let assemblyFormat = [{
    $source (`if` $mask^)? attr-dict `:` type($source) (`,` type($mask)^)? `->` type($result)
  }];
}

#endif
