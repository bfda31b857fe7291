// Programs, conversions, and elementwise operations for which `arith` is undefined for some inputs.

#ifndef KILN_DIALECT_TILE_ELEMENTWISEOPS_TD
#define KILN_DIALECT_TILE_ELEMENTWISEOPS_TD

include "dialect/tile/TileDialect.td"

/// The name of a case is the attribute `tile.accuracy` of functions of `math` and of `arith.divf`. Without the attribute
/// they have full accuracy.
def Tile_Accuracy : I32EnumAttr<"Accuracy", "permission to use an approximate instruction", [
    I32EnumAttrCase<"Full", 0, "full">, I32EnumAttrCase<"Fast", 1, "fast">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure, Tile_HasRange]> {
  let summary = "index of this program along one axis of the grid";
  let description = [{
    0 ≤ result < `tile.num_programs` of this axis. The axis is 0, 1 or 2.

    ```mlir
    func.func @example() -> i64 {
      %0 = tile.program_id 0
      return %0 : i64
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I64:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 0;
}

def Tile_NumProgramsOp : Tile_Op<"num_programs", [Pure, Tile_HasRange]> {
  let summary = "extent of the grid along one axis";
  let description = [{
    It is at least 1 in a program that runs: an empty grid runs no program.

    ```mlir
    func.func @example() -> i64 {
      %0 = tile.num_programs 2
      return %0 : i64
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<2>]>:$axis);
  let results = (outs I64:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 0;
}

def Tile_CastOp : Tile_Op<"cast", [Pure, SameOperandsAndResultShape, Tile_HasRange]> {
  let summary = "conversion to another element type, defined for every input";
  let description = [{
    float → float rounds to nearest even; NaN stays NaN, overflow becomes infinity. float → integer truncates toward zero and
    saturates at the ends of the type; NaN gives 0. integer → float rounds to nearest even. integer → narrower integer keeps the
    low bits; a wider integer is sign-extended. A boolean widens to 0 or 1. Anything → boolean is `x != 0` (NaN is true). A cast
    to an 8-bit float does not overflow: values beyond its largest number, infinities too, become that number. With
    `tile.unsigned` the integer operand is unsigned; if the operand is a float, the integer result is.

    ```mlir
    func.func @example(%x: tensor<8xf32>) -> tensor<8xi32> {
      %0 = tile.cast %x : tensor<8xf32> to tensor<8xi32>
      return %0 : tensor<8xi32>
    }
    ```
  }];
  let arguments = (ins Tile_Value:$source);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 0;
}

class Tile_IntegerBinaryOp<string mnemonic, list<Trait> traits = []>
    : Tile_Op<mnemonic, [Pure, SameOperandsAndResultType] # traits> {
  let arguments = (ins Tile_IntegerValue:$lhs, Tile_IntegerValue:$rhs);
  let results = (outs Tile_IntegerValue:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
  let hasVerifier = 0;
  let hasFolder = 1;
}

def Tile_DivOp : Tile_IntegerBinaryOp<"div", [Tile_HasRange]> {
  let summary = "integer division, total";
  let description = [{
    Truncates toward zero. x / 0 is 0, and INT_MIN / −1 wraps to INT_MIN. Float division is `arith.divf`. With `tile.unsigned` the
    operands are unsigned.

    ```mlir
    func.func @example(%a: i32, %b: i32) -> i32 {
      %0 = tile.div %a, %b : i32
      return %0 : i32
    }
    ```
  }];
}

def Tile_RemOp : Tile_IntegerBinaryOp<"rem", [Tile_HasRange]> {
  let summary = "integer remainder, total";
  let description = [{
    `a - div(a, b) * b`, with the sign of the dividend. x rem 0 is x, and INT_MIN rem −1 is 0. With `tile.unsigned` the operands
    are unsigned.

    ```mlir
    func.func @example(%a: tensor<4xi64>, %b: tensor<4xi64>) -> tensor<4xi64> {
      %0 = tile.rem %a, %b : tensor<4xi64>
      return %0 : tensor<4xi64>
    }
    ```
  }];
}

def Tile_ShlOp : Tile_IntegerBinaryOp<"shl"> {
  let summary = "left shift, total";
  let description = [{
    The amount is unsigned. An amount of at least the width gives 0.

    ```mlir
    func.func @example(%a: tensor<4xi32>, %n: tensor<4xi32>) -> tensor<4xi32> {
      %0 = tile.shl %a, %n : tensor<4xi32>
      return %0 : tensor<4xi32>
    }
    ```
  }];
}

def Tile_ShrOp : Tile_IntegerBinaryOp<"shr"> {
  let summary = "arithmetic right shift, total";
  let description = [{
    The amount is unsigned. An amount of at least the width gives the sign: 0 or −1. With `tile.unsigned` the shift is logical.

    ```mlir
    func.func @example(%a: tensor<4xi32>, %n: tensor<4xi32>) -> tensor<4xi32> {
      %0 = tile.shr %a, %n : tensor<4xi32>
      return %0 : tensor<4xi32>
    }
    ```
  }];
}

def Tile_RandomOp : Tile_Op<"random", [Pure]> {
  let summary = "32 random bits for each index, by Philox-4x32-10";
  let description = [{
    An output word of Philox-4x32-10; the default is the first. The counter is (low word of the index, high word, 0, 0), and the
    key is (low word of the seed, high word). The number depends on the seed and the index alone. So a kernel that passes an
    element's coordinate in the whole tensor gets equal numbers for every tile size and on every machine. Four words of one index
    cost hardly more than one.

    ```mlir
    func.func @example(%seed: i64, %index: tensor<8x16xi64>) -> tensor<8x16xi32> {
      %0 = tile.random %seed, %index : tensor<8x16xi64> -> tensor<8x16xi32>
      %1 = tile.random %seed, %index word 3 : tensor<8x16xi64> -> tensor<8x16xi32>
      return %1 : tensor<8x16xi32>
    }
    ```
  }];
  let arguments = (ins I64:$seed, AnyTypeOf<[I64, Tile_TensorOf<[I64], "i64">]>:$index,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<3>]>, "0">:$word);
  let results = (outs AnyTypeOf<[I32, Tile_TensorOf<[I32], "i32">]>:$result);
  let assemblyFormat = "$seed `,` $index (`word` $word^)? attr-dict `:` type($index) `->` type($result)";
}

#endif
