// Memory through views. A loaded tile is a value: no later store changes it. Memory operations of a program happen in
// program order. An index outside the view reads the padding value or writes nothing.

#ifndef KILN_DIALECT_TILE_MEMORYOPS_TD
#define KILN_DIALECT_TILE_MEMORYOPS_TD

include "dialect/tile/Interfaces.td"
include "dialect/tile/TileDialect.td"

def Tile_Padding : I32EnumAttr<"Padding", "what an index outside the view reads", [
    I32EnumAttrCase<"Zero", 0, "zero">, I32EnumAttrCase<"NegZero", 1, "neg_zero">, I32EnumAttrCase<"Inf", 2, "inf">,
    I32EnumAttrCase<"NegInf", 3, "neg_inf">, I32EnumAttrCase<"NaN", 4, "nan">]> {
  let cppNamespace = "::kiln::tile";
}

def Tile_MemoryOrder : I32EnumAttr<"MemoryOrder", "how an atomic orders the memory operations round it", [
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

/// An access of a view; its subscripts are the operands behind the view. `tile` is what is called so.
class Tile_Access<string mnemonic, string tile, bit reads, bit writes, list<Trait> traits = []>
    : Tile_Op<mnemonic, traits # [Tile_AccessOp]> {
  let extraClassDeclaration = [{
    ::mlir::OperandRange getSubscripts() {
      return getOperation()->getOperands().drop_front(getViewMutable().getOperandNumber() + 1);
    }
    ::mlir::TypedValue<::mlir::RankedTensorType> getTile() { return }] # tile # [{(); }
    bool readsView() { return }] # !if(reads, "true", "false") # [{; }
    bool writesView() { return }] # !if(writes, "true", "false") # [{; }
  }];
}
class Tile_Load<string mnemonic> : Tile_Access<mnemonic, "getResult", /*reads=*/1, /*writes=*/0>;
class Tile_Store<string mnemonic> : Tile_Access<mnemonic, "getValue", /*reads=*/0, /*writes=*/1>;

def Tile_LoadOp : Tile_Load<"load"> {
  let summary = "the tile of a view that begins at an element offset";
  let description = [{
    Element (i, j, …) of the result is element (offset₀ + i, offset₁ + j, …) of the view, or the padding value where that
    lies outside the view on either side. Offsets are signed 64-bit element counts. Rank of tile and view agree. A view of
    i8 may be loaded as a tile of i1: any value but 0 is true.

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

def Tile_StoreOp : Tile_Store<"store"> {
  let summary = "writes a tile into a view at an element offset";
  let description = [{
    Elements that would fall outside the view are dropped. A tile of i1 is stored as 0 or 1 into a view of i8.

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

def Tile_GatherOp : Tile_Load<"gather"> {
  let summary = "rows of a view, chosen by an index tile";
  let description = [{
    Row i of the result is row `rows[i]` of the view; the other dimensions begin at the offsets. A row or column outside
    the view reads the padding value. Repeated rows are allowed.

    ```mlir
    func.func @example(%v: memref<?x768xf32, strided<[?, 1]>>, %rows: tensor<16xi32>, %c: i64) -> tensor<16x64xf32> {
      %0 = tile.gather %v[%rows, %c] : memref<?x768xf32, strided<[?, 1]>>, tensor<16xi32> -> tensor<16x64xf32>
      return %0 : tensor<16x64xf32>
    }
    ```
  }];
  let arguments = (ins Arg<Tile_View, "", [MemRead]>:$view, Tile_IntegerTensor:$rows, Variadic<I64>:$offsets,
                       DefaultValuedAttr<Tile_Padding, "::kiln::tile::Padding::Zero">:$padding);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $view `[` $rows (`,` $offsets^)? `]` (`pad` $padding^)? attr-dict `:` type($view) `,` type($rows) `->` type($result)
  }];
}

def Tile_ScatterOp : Tile_Store<"scatter"> {
  let summary = "writes rows of a tile to rows of a view, chosen by an index tile";
  let description = [{
    Rows and columns outside the view are dropped. When a row is named twice, one of the tiles' rows is left there.

    ```mlir
    func.func @example(%x: tensor<16x64xf32>, %v: memref<?x64xf32, strided<[?, 1]>>, %rows: tensor<16xi64>, %c: i64) {
      tile.scatter %x, %v[%rows, %c] : tensor<16x64xf32>, memref<?x64xf32, strided<[?, 1]>>, tensor<16xi64>
      return
    }
    ```
  }];
  let arguments = (ins Tile_Tensor:$value, Arg<Tile_View, "", [MemWrite]>:$view, Tile_IntegerTensor:$rows,
                       Variadic<I64>:$offsets);
  let assemblyFormat = [{
    $value `,` $view `[` $rows (`,` $offsets^)? `]` attr-dict `:` type($value) `,` type($view) `,` type($rows)
  }];
}

def Tile_AtomicAddOp : Tile_Access<"atomic_add", "getValue", /*reads=*/1, /*writes=*/1, [AllTypesMatch<["value", "result"]>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "adds a tile to a view, each element indivisibly";
  let description = [{
    Returns the elements as they were before. Elements outside the view are left alone and return 0. An order other than
    relaxed also orders every other memory operation of the program. Element types: i32, i64, f32, f64.

    ```mlir
    func.func @example(%x: tensor<64xf32>, %v: memref<?xf32, strided<[1]>>, %n: i64) -> tensor<64xf32> {
      %0 = tile.atomic_add relaxed %x, %v[%n] : tensor<64xf32>, memref<?xf32, strided<[1]>>
      return %0 : tensor<64xf32>
    }
    ```
  }];
  let arguments = (ins Tile_MemoryOrder:$order, Tile_Tensor:$value, Tile_View:$view, Variadic<I64>:$offsets);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = [{
    $order $value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` type($view)
  }];
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite<Tile_Console>]>]> {
  let summary = "prints a label and a tile";
  let description = [{
    One line for each program: the program's number, the label, and the elements in row-major order.

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
  let summary = "reports an error when an element of the condition is false";
  let description = [{
    The program goes on; the launch's next synchronisation fails with the message, the kernel's line, and the first
    program and element that failed.

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

#endif
