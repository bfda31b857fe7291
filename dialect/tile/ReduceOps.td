// Operations that combine many elements: reductions, scans and the matrix product.

#ifndef KILN_DIALECT_TILE_REDUCEOPS_TD
#define KILN_DIALECT_TILE_REDUCEOPS_TD

include "dialect/tile/TileDialect.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Tile_ReduceKind : I32EnumAttr<"ReduceKind", "combining operation of a reduction", [
    I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">,
    I32EnumAttrCase<"ArgMax", 3, "argmax">, I32EnumAttrCase<"Product", 4, "product">,
    I32EnumAttrCase<"And", 5, "and">, I32EnumAttrCase<"Or", 6, "or">, I32EnumAttrCase<"Xor", 7, "xor">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_Precision : I32EnumAttr<"Precision", "precision of a matrix product of f32 tiles", [
    I32EnumAttrCase<"IEEE", 0, "ieee">, I32EnumAttrCase<"TF32", 1, "tf32">, I32EnumAttrCase<"TF32x3", 2, "tf32x3">,
    I32EnumAttrCase<"BF16x3", 3, "bf16x3">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure]> {
  let summary = "reduces the elements along one axis";
  let description = [{
    The axis is removed from the shape; reducing the only axis gives a scalar. `sum` of integers wraps. `sum` of floats adds in an
    order that depends on the extents and the target alone. `max` and `min` ignore NaN unless all elements are NaN. `argmax` gives
    the i32 index of the largest element, the lowest on ties; NaN counts as smaller than any number. `product` wraps and rounds as
    `sum` does. `and`, `or` and `xor` are bitwise, on integers. With `tile.unsigned`, here and in scans, integers are compared as
    unsigned.

    ```mlir
    func.func @example(%x: tensor<64x768xf32>) -> (tensor<64xf32>, tensor<64xi32>) {
      %0 = tile.reduce sum %x axis 1 : tensor<64x768xf32> -> tensor<64xf32>
      %1 = tile.reduce argmax %x axis 1 : tensor<64x768xf32> -> tensor<64xi32>
      return %0, %1 : tensor<64xf32>, tensor<64xi32>
    }
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_Tensor:$source, I64Attr:$axis);
  let results = (outs Tile_Value:$result);
  let extraClassDeclaration = [{
    /// The type of what is left of `source` (checked) when the axis is gone.
    static ::mlir::Type resultType(ReduceKind kind, ::mlir::RankedTensorType source, int64_t axis);
  }];
  let assemblyFormat = "$kind $source `axis` $axis attr-dict `:` type($source) `->` type($result)";
  let hasCanonicalizeMethod = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure, SingleBlock]> {
  let summary = "prefix scan: combines each element along an axis with those before it";
  let description = [{
    Element i of the result combines the elements 0 to i along the axis, in their order. With `reverse` it combines the last
    element down to element i; the last is then the earliest. The kinds are those of `tile.reduce`, except `argmax`.

    With `by`, a function scans several tiles of one shape together. Its arguments are an earlier state of each tile and then a
    later state of each; it yields the combined states. It consists of arithmetic on scalars, may use scalars from outside, and
    must be associative. Only elements are combined, in their order; there is no identity element. A scan by a function is not
    reversed.

    ```mlir
    func.func @example(%x: tensor<64x768xf32>, %a: tensor<32xf32>, %b: tensor<32xf32>) -> (tensor<64x768xf32>, tensor<32xf32>) {
      %0 = tile.scan sum %x axis 1 reverse : (tensor<64x768xf32>) -> tensor<64x768xf32>
      %1:2 = tile.scan %a, %b axis 0 by (%a0: f32, %b0: f32, %a1: f32, %b1: f32) {
        %factor = arith.mulf %a0, %a1 : f32
        %term = arith.mulf %b0, %a1 : f32
        %sum = arith.addf %term, %b1 : f32
        tile.yield %factor, %sum : f32, f32
      } : (tensor<32xf32>, tensor<32xf32>) -> (tensor<32xf32>, tensor<32xf32>)
      return %0, %1#1 : tensor<64x768xf32>, tensor<32xf32>
    }
    ```
  }];
  let arguments = (ins OptionalAttr<Tile_ReduceKind>:$kind, Variadic<Tile_Tensor>:$sources, I64Attr:$axis,
                       UnitAttr:$reverse);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region MaxSizedRegion<1>:$by);
  let assemblyFormat = [{
    ($kind^)? $sources `axis` $axis (`reverse` $reverse^)? custom<Function>($by) attr-dict `:`
    functional-type($sources, $results)
  }];
  let builders = [
    OpBuilder<(ins "ReduceKind":$kind, "::mlir::Value":$source, "int64_t":$axis, "bool":$reverse)>];
  let hasCanonicalizeMethod = 1;
  let hasRegionVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ReturnLike]> {
  let summary = "the result of a combine function";
  let description = [{
    The terminator of the function of a `tile.scan`.

    ```mlir
    func.func @example(%x: tensor<32xi32>) -> tensor<32xi32> {
      %0 = tile.scan %x axis 0 by (%a: i32, %b: i32) {
        %both = arith.ori %a, %b : i32
        tile.yield %both : i32
      } : (tensor<32xi32>) -> tensor<32xi32>
      return %0 : tensor<32xi32>
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Element>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "matrix product with accumulator: a · b + acc";
  let description = [{
    a is (…, M, K), b is (…, K, N), acc is (…, M, N), of rank 2 to 5. Leading extents are equal in all three: they number the
    matrices of a batch. M, N and K are at least 1. f32, f16, bf16 and 8-bit floats accumulate in f32 (products of narrow ones are
    exact), i8 in i32, f64 in f64. The order of the sum over K depends on the extents and the target alone. `precision` applies to
    f32 operands that tensor cores round.

    ```mlir
    func.func @example(%a: tensor<64x32xbf16>, %b: tensor<32x48xbf16>, %c: tensor<64x48xf32>) -> tensor<64x48xf32> {
      %0 = tile.dot %a, %b, %c : tensor<64x32xbf16>, tensor<32x48xbf16>, tensor<64x48xf32>
      return %0 : tensor<64x48xf32>
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b, Tile_Tensor:$acc,
                       DefaultValuedAttr<Tile_Precision, "::kiln::tile::Precision::IEEE">:$precision);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $acc (`precision` $precision^)? attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
}

#endif
