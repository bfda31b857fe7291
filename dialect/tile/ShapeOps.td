// Operations that create a tile or change its shape, without arithmetic.

#ifndef KILN_DIALECT_TILE_SHAPEOPS_TD
#define KILN_DIALECT_TILE_SHAPEOPS_TD

include "dialect/tile/Interfaces.td"
include "dialect/tile/TileDialect.td"

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "0, 1, 2, … along the only dimension";
  let description = [{
    ```mlir
    func.func @example() -> tensor<768xi32> {
      %0 = tile.iota : tensor<768xi32>
      return %0 : tensor<768xi32>
    }
    ```
  }];
  let results = (outs Tile_IntegerTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

/// An operation that moves the elements of its source to other positions.
class Tile_ElementMove<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, traits # [Pure, DeclareOpInterfaceMethods<Tile_MoveOp>]> {
  let extraClassDefinition = [{
    ::mlir::Value $cppClass::getMoved() { return getSource(); }
  }];
}

def Tile_SplatOp : Tile_ElementMove<"splat"> {
  let summary = "a tile with one scalar as every element";
  let description = [{
    ```mlir
    func.func @example(%x: f32) -> tensor<8x16xf32> {
      %0 = tile.splat %x : f32 -> tensor<8x16xf32>
      return %0 : tensor<8x16xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Element:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
}

def Tile_ReshapeOp : Tile_ElementMove<"reshape"> {
  let summary = "gives the elements another shape, in row-major order";
  let description = [{
    The number of elements does not change. A tile of one element may become a scalar, and a scalar such a tile.

    ```mlir
    func.func @example(%x: tensor<64xf32>) -> tensor<64x1xf32> {
      %0 = tile.reshape %x : tensor<64xf32> -> tensor<64x1xf32>
      return %0 : tensor<64x1xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Value:$source);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_BroadcastOp : Tile_ElementMove<"broadcast"> {
  let summary = "repeats dimensions of extent 1";
  let description = [{
    The rank does not change. Each extent of the source is 1 or that of the result.

    ```mlir
    func.func @example(%x: tensor<64x1xf32>) -> tensor<64x32xf32> {
      %0 = tile.broadcast %x : tensor<64x1xf32> -> tensor<64x32xf32>
      return %0 : tensor<64x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$source);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_TransposeOp : Tile_ElementMove<"transpose"> {
  let summary = "permutes the dimensions";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the source.

    ```mlir
    func.func @example(%x: tensor<64x32xf32>) -> tensor<32x64xf32> {
      %0 = tile.transpose %x [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
      return %0 : tensor<32x64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, DenseI64ArrayAttr:$permutation);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source $permutation attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_RotateOp : Tile_ElementMove<"rotate", [AllTypesMatch<["source", "result"]>]> {
  let summary = "cyclic shift along an axis";
  let description = [{
    Element `i` of the source along the axis of extent n becomes element `(i + by) mod n` of the result. `by` is from 0 to n − 1.

    ```mlir
    func.func @example(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
      %0 = tile.rotate %x by 5 axis 1 : tensor<4x32xf32>
      return %0 : tensor<4x32xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, I64Attr:$by, I64Attr:$axis);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source `by` $by `axis` $axis attr-dict `:` type($source)";
  let hasFolder = 1;
}

def Tile_ExtractOp : Tile_ElementMove<"extract"> {
  let summary = "strided slice of a tile";
  let description = [{
    Element i along a dimension is element `begin + i · step` of the source. Steps may be negative, but not 0. All elements are in
    the source.

    ```mlir
    func.func @example(%x: tensor<4x32xf32>) -> tensor<4x8xf32> {
      %0 = tile.extract %x begin [0, 31] steps [1, -2] : tensor<4x32xf32> -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$source, DenseI64ArrayAttr:$begin, DenseI64ArrayAttr:$steps);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$source `begin` $begin `steps` $steps attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
  let hasCanonicalizeMethod = 1;
}

#endif
