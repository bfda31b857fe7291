// Accesses of memory that other programs of the launch access concurrently: each element indivisibly.
// Subscripts and masks are those of `tile.gather`.

#ifndef KILN_DIALECT_TILE_ATOMICOPS_TD
#define KILN_DIALECT_TILE_ATOMICOPS_TD

include "dialect/tile/MemoryOps.td"

def Tile_AtomicKind : I32EnumAttr<"AtomicKind", "read-modify-write operation of an atomic", [
    I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Min", 1, "min">, I32EnumAttrCase<"Max", 2, "max">,
    I32EnumAttrCase<"And", 3, "and">, I32EnumAttrCase<"Or", 4, "or">, I32EnumAttrCase<"Xor", 5, "xor">,
    I32EnumAttrCase<"Exchange", 6, "exchange">]> {
  let cppNamespace = "::kiln::tile";
}

/// An atomic changes memory even if its result is unused, and reads memory each time.
class Tile_Atomic<string mnemonic, string tile, bit reads, bit writes, list<Trait> traits>
    : Tile_IndexedAccess<mnemonic, tile, reads, writes,
                       traits # [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let extraClassDeclaration = indexedMethods # [{
    bool isAtomic() { return true; }
  }];
}

def Tile_AtomicRmwOp : Tile_Atomic<"atomic_rmw", "getValue", /*reads=*/1, /*writes=*/1,
                                   [AllTypesMatch<["value", "result"]>, Tile_MaskLike<"value">]> {
  let summary = "atomic read-modify-write of elements of a view by a tile";
  let description = [{
    The result is the previous value of each element. Elements out of bounds or masked off are left alone and return 0. An element
    that is given several times changes once for each. `min` and `max` ignore a NaN, in memory and in the tile. An order other
    than relaxed also orders every other memory operation of the program. Element types of `add`: i32, i64, f16, bf16, f32, f64;
    of `min` and `max`: i32, i64, f32, f64; of `and`, `or` and `xor`: i32, i64; of `exchange`: those of 2, 4 and 8 bytes. With
    `tile.unsigned`, `min` and `max` compare integers as unsigned. `tile.scope` is "block" or "system", or absent: the device.

    ```mlir
    func.func @example(%x: tensor<64xf32>, %v: memref<?xf32, strided<[1]>>, %n: i64, %at: tensor<64xi32>,
                       %p: tensor<64xi1>) -> tensor<64xf32> {
      %0 = tile.atomic_rmw add relaxed %x, %v[%n] : tensor<64xf32>, memref<?xf32, strided<[1]>>
      %1 = tile.atomic_rmw max acq_rel %x, %v[%at] if %p : tensor<64xf32>, memref<?xf32, strided<[1]>>, tensor<64xi32>
      return %0 : tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_AtomicKind:$kind, Tile_MemoryOrder:$order, Tile_Tensor:$value, Tile_View:$view,
                       Variadic<Tile_Subscript>:$subscripts, Optional<Tile_BoolTensor>:$mask);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $kind $order $value `,` $view `[` $subscripts `]` (`if` $mask^)? attr-dict `:` type($value) `,` type($view)
    `` custom<SubscriptTypes>(ref($subscripts), type($subscripts))
  }];
}

def Tile_AtomicCasOp : Tile_Atomic<"atomic_cas", "getDesired", /*reads=*/1, /*writes=*/1,
                                   [AllTypesMatch<["expected", "desired", "result"]>, Tile_MaskLike<"desired">]> {
  let summary = "atomic compare-and-exchange of elements of a view";
  let description = [{
    The result is the previous value of each element. Where it has the bits of `expected`, `desired` has been written. Elements
    out of bounds or masked off are left alone and return 0. Elements have 2, 4 or 8 bytes. `tile.scope` may name a scope.

    ```mlir
    func.func @example(%x: tensor<1xi32>, %y: tensor<1xi32>, %v: memref<?xi32, strided<[1]>>, %n: i64) -> tensor<1xi32> {
      %0 = tile.atomic_cas acq_rel %x to %y, %v[%n] : tensor<1xi32>, memref<?xi32, strided<[1]>>
      return %0 : tensor<1xi32>
    }
    ```
  }];
  let arguments = (ins Tile_MemoryOrder:$order, Tile_Tensor:$expected, Tile_Tensor:$desired, Tile_View:$view,
                       Variadic<Tile_Subscript>:$subscripts, Optional<Tile_BoolTensor>:$mask);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $order $expected `to` $desired `,` $view `[` $subscripts `]` (`if` $mask^)? attr-dict `:` type($desired) `,`
    type($view) `` custom<SubscriptTypes>(ref($subscripts), type($subscripts))
  }];
}

def Tile_AtomicLoadOp : Tile_Atomic<"atomic_load", "getResult", /*reads=*/1, /*writes=*/0, [Tile_MaskLike<"result">]> {
  let summary = "atomic load of elements of a view that other programs may write concurrently";
  let description = [{
    The order is relaxed or acquire. Elements out of bounds or masked off are 0. `tile.scope` may name a scope.

    ```mlir
    func.func @example(%v: memref<?xi32, strided<[1]>>, %n: i64) -> tensor<1xi32> {
      %0 = tile.atomic_load acquire %v[%n] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
      return %0 : tensor<1xi32>
    }
    ```
  }];
  let arguments = (ins Tile_MemoryOrder:$order, Tile_View:$view, Variadic<Tile_Subscript>:$subscripts,
                       Optional<Tile_BoolTensor>:$mask);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $order $view `[` $subscripts `]` (`if` $mask^)? attr-dict `:` type($view)
    `` custom<SubscriptTypes>(ref($subscripts), type($subscripts)) `->` type($result)
  }];
}

def Tile_AtomicStoreOp : Tile_Atomic<"atomic_store", "getValue", /*reads=*/0, /*writes=*/1, [Tile_MaskLike<"value">]> {
  let summary = "atomic store to elements of a view that other programs may access concurrently";
  let description = [{
    The order is relaxed or release. Elements out of bounds or masked off are left alone. `tile.scope` may name a scope.

    ```mlir
    func.func @example(%x: tensor<1xi32>, %v: memref<?xi32, strided<[1]>>, %n: i64) {
      tile.atomic_store release %x, %v[%n] : tensor<1xi32>, memref<?xi32, strided<[1]>>
      return
    }
    ```
  }];
  let arguments = (ins Tile_MemoryOrder:$order, Tile_Tensor:$value, Tile_View:$view,
                       Variadic<Tile_Subscript>:$subscripts, Optional<Tile_BoolTensor>:$mask);
  let assemblyFormat = [{
    $order $value `,` $view `[` $subscripts `]` (`if` $mask^)? attr-dict `:` type($value) `,` type($view)
    `` custom<SubscriptTypes>(ref($subscripts), type($subscripts))
  }];
}

#endif
