// Memory through views. A loaded tile is a value: no later store changes it. Memory operations of a program happen in
// program order. An out-of-bounds index reads the padding value or writes nothing.

#ifndef KILN_DIALECT_TILE_MEMORYOPS_TD
#define KILN_DIALECT_TILE_MEMORYOPS_TD

include "dialect/tile/Interfaces.td"
include "dialect/tile/TileDialect.td"

def Tile_Padding : I32EnumAttr<"Padding", "value of out-of-bounds elements", [
    I32EnumAttrCase<"Zero", 0, "zero">, I32EnumAttrCase<"NegZero", 1, "neg_zero">, I32EnumAttrCase<"Inf", 2, "inf">,
    I32EnumAttrCase<"NegInf", 3, "neg_inf">, I32EnumAttrCase<"NaN", 4, "nan">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_MemoryOrder : I32EnumAttr<"MemoryOrder", "memory order of an atomic", [
    I32EnumAttrCase<"Relaxed", 0, "relaxed">, I32EnumAttrCase<"Acquire", 1, "acquire">,
    I32EnumAttrCase<"Release", 2, "release">, I32EnumAttrCase<"AcqRel", 3, "acq_rel">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_Console : Resource<"::kiln::tile::ConsoleResource">;

def Tile_DimOp : Tile_Op<"dim", [Pure, Tile_HasRange]> {
  let summary = "extent of a view along one dimension";
  let description = [{
    ```mlir
    func.func @example(%v: memref<?x64xf32, strided<[?, 1]>>) -> i64 {
      %0 = tile.dim %v, 0 : memref<?x64xf32, strided<[?, 1]>>
      return %0 : i64
    }
    ```
  }];
  let arguments = (ins Tile_View:$view, I64Attr:$axis);
  let results = (outs I64:$result);
  let assemblyFormat = "$view `,` $axis attr-dict `:` type($view)";
  let hasFolder = 1;
}

/// An access of a view. `tile` is the getter of the tile that is read or written.
class Tile_Access<string mnemonic, string tile, bit reads, bit writes, list<Trait> traits = []>
    : Tile_Op<mnemonic, traits # [Tile_AccessOp]> {
  code accessMethods = [{
    ::mlir::TypedValue<::mlir::RankedTensorType> getTile() { return }] # tile # [{(); }
    bool readsView() { return }] # !if(reads, "true", "false") # [{; }
    bool writesView() { return }] # !if(writes, "true", "false") # [{; }
  }];
}
/// An access of a whole block of a view.
class Tile_BlockAccess<string mnemonic, string tile, bit reads, bit writes>
    : Tile_Access<mnemonic, tile, reads, writes> {
  let extraClassDeclaration = accessMethods # [{
    ::mlir::OperandRange getSubscripts() { return getOffsets(); }
  }];
}

/// A mask has the shape of the tile `like`.
class Tile_MaskLike<string like> : TypesMatchWith<"the mask is a tile of i1 of the tile's shape", like, "mask",
    "::kiln::tile::maskLike($_self)",
    "!::llvm::cast<::kiln::tile::AccessOp>(&$_op).getMaskIfAny() || std::equal_to<>()">;
/// An access by index tiles, or with a mask. There is one of `$subscripts` for each dimension of the view; `$mask` is
/// optional.
class Tile_IndexedAccess<string mnemonic, string tile, bit reads, bit writes, list<Trait> traits = []>
    : Tile_Access<mnemonic, tile, reads, writes, traits # [AttrSizedOperandSegments]> {
  code indexedMethods = accessMethods # [{
    ::mlir::Value getMaskIfAny() { return getMask(); }
  }];
  let extraClassDeclaration = indexedMethods;
}
def Tile_Subscript : AnyTypeOf<[I64, Tile_IntegerTensor], "i64, or a tile of i32 or i64">;

def Tile_LoadOp : Tile_BlockAccess<"load", "getResult", /*reads=*/1, /*writes=*/0> {
  let summary = "loads a tile from a view, at an element offset";
  let description = [{
    Element (i, j, …) of the result is element (offset₀ + i, offset₁ + j, …) of the view. If that is out of bounds, on either side, it
    is the padding value. Offsets are signed 64-bit element counts. Tile and view have equal rank. A view of i8 may be loaded as a
    tile of i1: any value except 0 is true.

    ```mlir
    func.func @example(%v: memref<?x?xf32, strided<[?, 1]>>, %m: i64, %k: i64) -> tensor<64x32xf32> {
      %0 = tile.load %v[%m, %k] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
      %1 = tile.load %v[%m, %k] pad neg_inf : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x32xf32>
      %2 = arith.addf %0, %1 : tensor<64x32xf32>
      return %2 : tensor<64x32xf32>
    }
    ```
  }];
  let arguments = (ins Arg<Tile_View, "", [MemRead]>:$view, Variadic<I64>:$offsets,
                       DefaultValuedAttr<Tile_Padding, "::kiln::tile::Padding::Zero">:$padding);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $view `[` $offsets `]` (`pad` $padding^)? attr-dict `:` type($view) `->` type($result)
  }];
}

def Tile_StoreOp : Tile_BlockAccess<"store", "getValue", /*reads=*/0, /*writes=*/1> {
  let summary = "stores a tile into a view at an element offset";
  let description = [{
    Out-of-bounds elements are dropped. A tile of i1 is stored as 0 or 1 into a view of i8.

    ```mlir
    func.func @example(%x: tensor<64xf32>, %v: memref<?xf32, strided<[1]>>, %n: i64) {
      tile.store %x, %v[%n] : tensor<64xf32>, memref<?xf32, strided<[1]>>
      return
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$value, Arg<Tile_View, "", [MemWrite]>:$view, Variadic<I64>:$offsets);
  let assemblyFormat = "$value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)";
}

def Tile_GatherOp : Tile_IndexedAccess<"gather", "getResult", /*reads=*/1, /*writes=*/0, [Tile_MaskLike<"result">]> {
  let summary = "loads elements of a view by index tiles and a mask";
  let description = [{
    An index tile gives every position in its dimension. All index tiles have one shape, the first dimensions of the result. A
    scalar subscript is the offset of a block, whose dimension follows, in the view's order. An element with an out-of-bounds
    subscript reads the padding value. So does an element whose mask is false, for which no memory is accessed. Positions may
    repeat. The types of subscripts are listed up to the last index tile; the rest are i64.

    ```mlir
    func.func @example(%v: memref<?x768xf32, strided<[?, 1]>>, %rows: tensor<16xi32>, %columns: tensor<16xi64>, %c: i64,
                       %p: tensor<16xi1>) -> (tensor<16x64xf32>, tensor<16xf32>) {
      %0 = tile.gather %v[%rows, %c] : memref<?x768xf32, strided<[?, 1]>>, tensor<16xi32> -> tensor<16x64xf32>
      %1 = tile.gather %v[%rows, %columns] if %p pad nan
             : memref<?x768xf32, strided<[?, 1]>>, tensor<16xi32>, tensor<16xi64> -> tensor<16xf32>
      return %0, %1 : tensor<16x64xf32>, tensor<16xf32>
    }
    ```
  }];
  let arguments = (ins Arg<Tile_View, "", [MemRead]>:$view, Variadic<Tile_Subscript>:$subscripts,
                       Optional<Tile_BoolTensor>:$mask,
                       DefaultValuedAttr<Tile_Padding, "::kiln::tile::Padding::Zero">:$padding);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $view `[` $subscripts `]` (`if` $mask^)? (`pad` $padding^)? attr-dict `:` type($view)
    `` custom<SubscriptTypes>(ref($subscripts), type($subscripts)) `->` type($result)
  }];
  let hasCanonicalizeMethod = 1;
}

def Tile_ScatterOp : Tile_IndexedAccess<"scatter", "getValue", /*reads=*/0, /*writes=*/1, [Tile_MaskLike<"value">]> {
  let summary = "stores elements of a tile by index tiles and a mask";
  let description = [{
    The stored elements are those that `tile.gather` would read. Elements out of bounds or masked off are dropped. If an element
    is given twice, one of the tile's elements is stored, whole.

    ```mlir
    func.func @example(%x: tensor<16x64xf32>, %v: memref<?x64xf32, strided<[?, 1]>>, %rows: tensor<16xi64>, %c: i64,
                       %p: tensor<16x64xi1>) {
      tile.scatter %x, %v[%rows, %c] : tensor<16x64xf32>, memref<?x64xf32, strided<[?, 1]>>, tensor<16xi64>
      tile.scatter %x, %v[%c, %c] if %p : tensor<16x64xf32>, memref<?x64xf32, strided<[?, 1]>>
      return
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$value, Arg<Tile_View, "", [MemWrite]>:$view, Variadic<Tile_Subscript>:$subscripts,
                       Optional<Tile_BoolTensor>:$mask);
  let assemblyFormat = [{
    $value `,` $view `[` $subscripts `]` (`if` $mask^)? attr-dict `:` type($value) `,` type($view)
    `` custom<SubscriptTypes>(ref($subscripts), type($subscripts))
  }];
  let hasCanonicalizeMethod = 1;
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "prints a label and a tile";
  let description = [{
    One line for each program: the number of the program, the label, and the elements in row-major order.

    ```mlir
    func.func @example(%x: tensor<8xf32>) {
      tile.print "x", %x : tensor<8xf32>
      return
    }
    ```
  }];
  let arguments = (ins StrAttr:$label, Tile_Value:$value);
  let assemblyFormat = "$label `,` $value attr-dict `:` type($value)";
  let hasVerifier = 0;
}

def Tile_CheckOp : Tile_Op<"check", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "assertion: reports an error if an element of the condition is false";
  let description = [{
    The program continues. The next synchronisation of the launch fails with the message, the kernel's line, and the first program
    and element that failed.

    ```mlir
    func.func @example(%ok: tensor<8xi1>) {
      tile.check %ok, "expected a token below the vocabulary's size" : tensor<8xi1>
      return
    }
    ```
  }];
  let arguments = (ins Tile_BoolValue:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
  let hasVerifier = 0;
}

def Tile_AssumeOp : Tile_Op<"assume", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "promise that a condition is true";
  let description = [{
    If the condition is false, the behaviour is undefined. The analyses of divisors and of ranges use it for the scalars that the same block
    computes. They use comparisons of a scalar with a constant, remainders of a scalar by a constant that are 0, and conjunctions of these.
    `tile-drop-assumptions` erases the operation. Its effect keeps it alive until then.

    ```mlir
    func.func @example(%n: i64) {
      %c16 = arith.constant 16 : i64
      %c0 = arith.constant 0 : i64
      %0 = tile.rem %n, %c16 : i64
      %1 = arith.cmpi eq, %0, %c0 : i64
      tile.assume %1
      return
    }
    ```
  }];
  let arguments = (ins I1:$condition);
  let assemblyFormat = "$condition attr-dict";
  let hasVerifier = 0;
}

// Atomics: accesses of memory that other programs of the launch access concurrently, each element indivisibly.
// Subscripts and masks are those of `tile.gather`.

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
  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>> &effects) {
      addAtomicEffects(*this, getViewMutable(), effects);
    }
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
