// Operations in which values decide positions: sorting, taking and counting.

#ifndef KILN_DIALECT_TILE_SORTOPS_TD
#define KILN_DIALECT_TILE_SORTOPS_TD

include "dialect/tile/TileDialect.td"

def Tile_SortOp : Tile_Op<"sort", [Pure]> {
  let summary = "sorts the elements along an axis, and returns their positions";
  let description = [{
    The result has the first elements of the sorted order, as many as its extent along the axis: ascending, or descending with
    `descending`. NaN comes last in both orders. With `tile.unsigned` integers are unsigned. The second result is the i32 position
    of each element along the axis. −0 and +0 are equal, and the sort is stable. If the positions are unused, the order of zeros
    is unspecified, and so are the bits of a NaN.

    `by` is for compilers: elements are integers in ascending order, equal ones are ordered by these i32 numbers, and the second
    result has these numbers instead of positions.

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
    /// Extents of the source and of the result along the axis.
    int64_t getExtent() { return getSource().getType().getDimSize(getAxis()); }
    int64_t getCount() { return getResult().getType().getDimSize(getAxis()); }
    /// Whether it has the form that compilers sort: integers of 32 or 64 bits, ascending; positions are unused, or those of `by`.
    bool isOfKeys();
  }];
  let hasCanonicalizeMethod = 1;
}

def Tile_TakeOp : Tile_Op<"take", [Pure]> {
  let summary = "elements by position along an axis";
  let description = [{
    Element (…, i, …) is element (…, index[…, i, …], …) of the source, or 0 if that is out of bounds. Source and index have equal
    extents, except along the axis.

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
  let summary = "counts the elements with each of the values 0, 1, …";
  let description = [{
    Counts the elements whose mask is true; without a mask, all. Other values are not counted. Counts wrap.

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
