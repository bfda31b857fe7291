// Operations on tiles with layouts: elements move between threads.

#ifndef KILN_DIALECT_SIMT_EXCHANGEOPS_TD
#define KILN_DIALECT_SIMT_EXCHANGEOPS_TD

include "dialect/simt/SimtDialect.td"
include "dialect/tile/ElementTypes.td"

/// A tile with a layout.
def Simt_Tile : Type<And<[StaticShapeTensorOf<[Tile_Element]>.predicate,
    CPred<"::llvm::isa_and_present<::kiln::simt::LayoutAttr>(::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">]>,
    "tile with a layout", "::mlir::RankedTensorType">;
/// Shared memory of the program, as bytes.
def Simt_Buffer : Type<And<[MemRefRankOf<[I8], [1]>.predicate,
    CPred<"::llvm::cast<::mlir::MemRefType>($_self).getMemorySpaceAsInt() == 3">]>, "buffer in shared memory",
    "::mlir::MemRefType">;
/// tile::ReduceKind, which the other dialect defines.
def Simt_ReduceKind : Attr<CPred<"::llvm::isa<::kiln::tile::ReduceKindAttr>($_self)">, "kind of reduction"> {
  let storageType = "::kiln::tile::ReduceKindAttr";
  let returnType = "::kiln::tile::ReduceKind";
  let convertFromStorage = "$_self.getValue()";
}

/// The instructions that move elements between registers and shared memory: simt::SharedOp (SharedAccess.h).
def Simt_Movement : I32EnumAttr<"Movement", "instructions on shared memory", [
    I32EnumAttrCase<"Vector", 0, "vectors">, I32EnumAttrCase<"Rows", 1, "rows">,
    I32EnumAttrCase<"Columns", 2, "columns">]> {
  let cppNamespace = "::kiln::simt";
}

def Simt_ConvertOp : Simt_Op<"convert", [Pure]> {
  let summary = "layout conversion of a tile";
  let description = [{
    It is free if threads keep their elements, in other registers. Otherwise it costs shuffles, or a store to and a load from
    shared memory.

    ```mlir
    #rows = #simt.layout<8x32, reg [d0:1], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:2 d0:4]>
    #columns = #simt.layout<8x32, reg [d1:1], lane [d0:1 d0:2 d0:4 d1:2 d1:4], warp [d1:8 d1:16]>
    func.func @example(%x: tensor<8x32xf32, #rows>) -> tensor<8x32xf32, #columns> {
      %0 = simt.convert %x : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
      return %0 : tensor<8x32xf32, #columns>
    }
    ```
  }];
  let arguments = (ins Simt_Tile:$source);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasFolder = 1;
}

def Simt_HalfOp : Simt_Op<"half", [Pure]> {
  let summary = "the elements of a tile with one value of a bit of their positions";
  let description = [{
    The bit is one of the register's number, so that each thread has half of its elements, and none moves.

    ```mlir
    #rows = #simt.layout<8x32, reg [d0:2 d0:4], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1]>
    #half = #simt.layout<4x32, reg [d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1]>
    func.func @example(%x: tensor<8x32xf32, #rows>) -> tensor<4x32xf32, #half> {
      %0 = simt.half %x axis 0 bit 2 is 1 : tensor<8x32xf32, #rows> -> tensor<4x32xf32, #half>
      return %0 : tensor<4x32xf32, #half>
    }
    ```
  }];
  let arguments = (ins Simt_Tile:$source, I64Attr:$axis, I64Attr:$bit, I64Attr:$value);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = "$source `axis` $axis `bit` $bit `is` $value attr-dict `:` type($source) `->` type($result)";
}

def Simt_JoinOp : Simt_Op<"join", [Pure, AllTypesMatch<["zeros", "ones"]>]> {
  let summary = "a tile of two halves, as simt.half has them";
  let description = [{
    ```mlir
    #rows = #simt.layout<8x32, reg [d0:2 d0:4], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1]>
    #half = #simt.layout<4x32, reg [d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1]>
    func.func @example(%x: tensor<4x32xf32, #half>, %y: tensor<4x32xf32, #half>) -> tensor<8x32xf32, #rows> {
      %0 = simt.join %x, %y axis 0 bit 2 : tensor<4x32xf32, #half> -> tensor<8x32xf32, #rows>
      return %0 : tensor<8x32xf32, #rows>
    }
    ```
  }];
  let arguments = (ins Simt_Tile:$zeros, Simt_Tile:$ones, I64Attr:$axis, I64Attr:$bit);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = "$zeros `,` $ones `axis` $axis `bit` $bit attr-dict `:` type($zeros) `->` type($result)";
}

def Simt_ReduceOp : Simt_Op<"reduce", [Pure]> {
  let summary = "reduces the elements along an axis that one warp holds";
  let description = [{
    The axis keeps an extent: the number of warps that share it, or 1 if each warp has all of it. `argmax` takes integers that
    order as the elements do, and their indices. It gives both of the largest, with the lowest index on ties.

    ```mlir
    #wide = #simt.layout<4x64, reg [d0:1 d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32]>
    #parts = #simt.layout<4x2, reg [d0:1 d0:2], lane [* * * * *], warp [d1:1]>
    func.func @example(%x: tensor<4x64xf32, #wide>) -> tensor<4x2xf32, #parts> {
      %0 = simt.reduce sum %x axis 1 : (tensor<4x64xf32, #wide>) -> tensor<4x2xf32, #parts>
      return %0 : tensor<4x2xf32, #parts>
    }
    ```
  }];
  let arguments = (ins Simt_ReduceKind:$kind, Variadic<Simt_Tile>:$sources, I64Attr:$axis);
  let results = (outs Variadic<Simt_Tile>:$results);
  let assemblyFormat = [{
    custom<ReduceKind>($kind) $sources `axis` $axis attr-dict `:` functional-type($sources, $results)
  }];
}

/// One of the two halves of a scan.
class Simt_ScanPart<string mnemonic> : Simt_Op<mnemonic, [SingleBlock, AttrSizedOperandSegments]> {
  let results = (outs Variadic<Simt_Tile>:$results);
  let regions = (region MaxSizedRegion<1>:$by);
}

def Simt_ScanOp : Simt_ScanPart<"scan"> {
  let summary = "scans the elements along an axis that one warp holds";
  let description = [{
    The semantics are those of `tile.scan`. If several warps share the axis, its positions form parts, each of one warp. The
    lowest bits of a position, up to the first that stands for warps, count within a part. Then the elements of a part are
    combined alone, and the total of each part is stored in the buffer for `simt.carry`. For each tile in turn, the buffer has one
    number for each part in its order, for each line along the axis, row-major. A tile's numbers begin at a multiple of 16 bytes.

    ```mlir
    #wide = #simt.layout<4x64, reg [d0:1 d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32]>
    func.func @example(%x: tensor<4x64xf32, #wide>, %totals: memref<32xi8, 3>) -> tensor<4x64xf32, #wide> {
      %0 = simt.scan sum %x axis 1 to %totals : (tensor<4x64xf32, #wide>) -> tensor<4x64xf32, #wide>, memref<32xi8, 3>
      simt.barrier
      %1 = simt.carry sum %0 axis 1 from %totals : (tensor<4x64xf32, #wide>) -> tensor<4x64xf32, #wide>, memref<32xi8, 3>
      return %1 : tensor<4x64xf32, #wide>
    }
    ```
  }];
  let arguments = (ins OptionalAttr<Simt_ReduceKind>:$kind, Variadic<Simt_Tile>:$sources,
                       Arg<Optional<Simt_Buffer>, "", [MemWrite]>:$buffer, I64Attr:$axis, UnitAttr:$reverse);
  let assemblyFormat = [{
    custom<OptionalReduceKind>($kind) $sources `axis` $axis (`reverse` $reverse^)? (`to` $buffer^)? custom<Function>($by)
    attr-dict `:` functional-type($sources, $results) (`,` type($buffer)^)?
  }];
}

def Simt_CarryOp : Simt_ScanPart<"carry"> {
  let summary = "combines the parts of a scan with the totals of the parts before them";
  let description = [{
    It completes a `simt.scan` that stored totals in the buffer, with the kind or function of that scan.

    ```mlir
    #wide = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>
    func.func @example(%x: tensor<64xi32, #wide>, %totals: memref<16xi8, 3>) -> tensor<64xi32, #wide> {
      %0 = simt.carry max %x axis 0 from %totals : (tensor<64xi32, #wide>) -> tensor<64xi32, #wide>, memref<16xi8, 3>
      return %0 : tensor<64xi32, #wide>
    }
    ```
  }];
  let arguments = (ins OptionalAttr<Simt_ReduceKind>:$kind, Variadic<Simt_Tile>:$sources,
                       Arg<Optional<Simt_Buffer>, "", [MemRead]>:$buffer, I64Attr:$axis, UnitAttr:$reverse);
  let assemblyFormat = [{
    custom<OptionalReduceKind>($kind) $sources `axis` $axis (`reverse` $reverse^)? (`from` $buffer^)?
    custom<Function>($by) attr-dict `:` functional-type($sources, $results) (`,` type($buffer)^)?
  }];
}

def Simt_BufferOp : Simt_Op<"buffer", [MemoryEffects<[MemAlloc]>]> {
  let summary = "a buffer in shared memory";
  let description = [{
    It is live from its first write to its last read. `offset`, set by gpu-allocate-shared, is its offset in the program's shared
    memory, in bytes. The bytes from `idle` on are live only during the loop that reads the buffer, even if another loop is around it.

    ```mlir
    func.func @example() -> memref<4096xi8, 3> {
      %0 = simt.buffer {offset = 1024 : i64} : memref<4096xi8, 3>
      return %0 : memref<4096xi8, 3>
    }
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset, OptionalAttr<I64Attr>:$idle);
  let results = (outs Simt_Buffer:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}

def Simt_WriteOp : Simt_Op<"write"> {
  let summary = "each thread writes its elements of a tile to shared memory";
  let description = [{
    The element at position (i, j, …) goes to byte i · strides₀ + j · strides₁ + … of the buffer, or to its byte in a shared-memory
    layout. With a shared-memory layout, each thread stores `vectors`, or a warp stores `rows` or `columns` of matrices
    (`stmatrix`). If several threads hold an element, one of them writes it. Elements beyond the tile's extents, in registers that
    its layout pads with, are not written by strides, and are 0 in a shared-memory layout.

    ```mlir
    #rows = #simt.layout<8x32, reg [d0:1], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:2 d0:4]>
    func.func @example(%x: tensor<8x32xf32, #rows>, %buffer: memref<1152xi8, 3>) {
      simt.write %x, %buffer strides [144, 4] : tensor<8x32xf32, #rows>, memref<1152xi8, 3>
      simt.write %x, %buffer by vectors in <8x32xf32, d0 [128, 256, 512], d1 [4, 8, 16, 32, 64]>
          : tensor<8x32xf32, #rows>, memref<1152xi8, 3>
      return
    }
    ```
  }];
  let arguments = (ins Simt_Tile:$value, Arg<Simt_Buffer, "", [MemWrite]>:$buffer,
                       OptionalAttr<DenseI64ArrayAttr>:$strides, OptionalAttr<Simt_Movement>:$movement,
                       OptionalAttr<Simt_SharedLayoutAttr>:$sharedLayout);
  let assemblyFormat = [{
    $value `,` $buffer (`strides` $strides^)? (`by` $movement^ `in` $sharedLayout)? attr-dict `:` type($value) `,` type($buffer)
  }];
}

def Simt_ReadOp : Simt_Op<"read"> {
  let summary = "each thread reads its elements of a tile from shared memory";
  let description = [{
    The element at position (i, j, …) comes from byte `offset` + i · strides₀ + j · strides₁ + …, or from its byte in a
    shared-memory layout that begins at byte `offset`. With a shared-memory layout, each thread loads `vectors`, or a warp loads
    `rows` or `columns` of matrices (`ldmatrix`). Elements that the layout pads the tile with are read as 0. `slot` is that of
    `simt.fetch`.

    ```mlir
    #columns = #simt.layout<8x32, reg [d1:1], lane [d0:1 d0:2 d0:4 d1:2 d1:4], warp [d1:8 d1:16]>
    func.func @example(%buffer: memref<1152xi8, 3>, %offset: i32) -> tensor<8x32xf32, #columns> {
      %0 = simt.read %buffer[%offset] strides [144, 4] : memref<1152xi8, 3> -> tensor<8x32xf32, #columns>
      return %0 : tensor<8x32xf32, #columns>
    }
    ```
  }];
  let arguments = (ins Arg<Simt_Buffer, "", [MemRead]>:$buffer, Optional<I32>:$offset,
                       OptionalAttr<DenseI64ArrayAttr>:$strides, OptionalAttr<Simt_Movement>:$movement,
                       OptionalAttr<Simt_SharedLayoutAttr>:$sharedLayout, OptionalAttr<DenseI64ArrayAttr>:$slot);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = [{
    $buffer (`[` $offset^ `]`)? (`slot` $slot^)? (`strides` $strides^)? (`by` $movement^ `in` $sharedLayout)? attr-dict
    `:` type($buffer) `->` type($result)
  }];
}

def Simt_PickOp : Simt_Op<"pick"> {
  let summary = "each thread reads elements from computed places in shared memory";
  let description = [{
    The element at position p comes from byte `place`(p), a multiple of its size. Elements that the layout pads the tile with are
    read as 0. If places are a sum of strides, `simt.read` is better: it reads several elements at once.

    ```mlir
    #row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>
    func.func @example(%buffer: memref<256xi8, 3>) -> tensor<64xf32, #row> {
      %0 = simt.pick %buffer at affine_map<(d0) -> (((d0 + 5) mod 64) * 4)> : memref<256xi8, 3> -> tensor<64xf32, #row>
      return %0 : tensor<64xf32, #row>
    }
    ```
  }];
  let arguments = (ins Arg<Simt_Buffer, "", [MemRead]>:$buffer, AffineMapAttr:$place);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = "$buffer `at` $place attr-dict `:` type($buffer) `->` type($result)";
}

def Simt_FetchOp : Simt_Op<"fetch", [AttrSizedOperandSegments]> {
  let summary = "begins an asynchronous copy of a tile of a view to shared memory";
  let description = [{
    The tile at the offsets is copied to the shared-memory layout that begins at byte `at` of the buffer, while the threads
    continue. The copy is complete after `simt.wait_copies` has waited for its group. Out-of-bounds elements are zeros. `layout`
    says which thread copies which elements. `by` is the number of elements of one copy, of 4 to 16 bytes. `whole`: these are in
    bounds or out of bounds together.

    The buffer is a multi-stage buffer with s slots. `slot [n, s]` is the slot that the loop around it, or the next loop, reads n
    iterations later. If there is no such iteration, the predicate is false, and the slot gets zeros. `slot [n, s, d]`: the loop's
    own fetches are d iterations ahead, instead of s - 1.

    ```mlir
    #copies = #simt.layout<8x64, reg [d1:1 d1:2 d1:4 d0:4], lane [d1:8 d1:16 d1:32 d0:1 d0:2], warp []>
    func.func @example(%x: memref<?x64xf16>, %m: i64, %k: i64, %ring: memref<3072xi8, 3>, %at: i32, %p: i1) {
      simt.fetch %x[%m, %k] to %ring[%at] slot [2, 3] by 8 in <8x64xf16, d0 [144, 288, 576], d1 [2, 4, 8, 16, 32, 64]>
          if %p {layout = #copies, whole} : memref<?x64xf16>, memref<3072xi8, 3>
      simt.commit_copies
      simt.wait_copies 1
      return
    }
    ```
  }];
  let arguments = (ins Arg<AnyStridedMemRef, "", [MemRead]>:$view, Variadic<I64>:$offsets,
                       Arg<Simt_Buffer, "", [MemWrite]>:$buffer, I32:$at, Optional<I1>:$predicate,
                       DenseI64ArrayAttr:$slot, ConfinedAttr<I64Attr, [IntMinValue<1>]>:$vector,
                       Simt_SharedLayoutAttr:$sharedLayout, Simt_LayoutAttr:$layout, UnitAttr:$whole);
  let assemblyFormat = [{
    $view `[` $offsets `]` `to` $buffer `[` $at `]` `slot` $slot `by` $vector `in` $sharedLayout (`if` $predicate^)? attr-dict
    `:` type($view) `,` type($buffer)
  }];
}

def Simt_CommitCopiesOp : Simt_Op<"commit_copies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "groups the copies that each thread has begun since the last group";
  let description = [{
    The group may be empty.

    ```mlir
    func.func @example() {
      simt.commit_copies
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 0;
}

def Simt_WaitCopiesOp : Simt_Op<"wait_copies", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all groups of the thread's copies except the newest `pending`";
  let description = [{
    The copied elements are then visible to this thread; after a barrier they are visible to all. With `shown`, they are also
    visible to the reads of `simt.multiply`.

    ```mlir
    func.func @example() {
      simt.wait_copies 2
      simt.wait_copies 1 shown
      return
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>]>:$pending, UnitAttr:$shown);
  let assemblyFormat = "$pending (`shown` $shown^)? attr-dict";
  let hasVerifier = 0;
}

def Simt_MultiplyOp : Simt_Op<"multiply", [AllTypesMatch<["acc", "result"]>]> {
  let summary = "begins a matrix product of two matrices in shared memory by wgmma";
  let description = [{
    left · right + acc, which has the layout of `wgmmaAcc`. An operand is the tile that begins at byte `at` of its buffer,
    transposed if it is `transposed`. The accumulator is complete after `simt.wait_multiply` has waited for it. Nothing else may
    access it until then. `slot` is that of `simt.fetch`.

    ```mlir
    #acc = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
    func.func @example(%left: memref<2048xi8, 3>, %right: memref<256xi8, 3>, %at: i32, %acc: tensor<64x8xf32, #acc>)
        -> tensor<64x8xf32, #acc> {
      %0 = simt.multiply %left[%at] in <64x16xbf16, d0 [32, 64, 144, 256, 512, 1024], d1 [2, 4, 8, 16]>,
          %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]> transposed, %acc slot [0, 1]
          : memref<2048xi8, 3>, memref<256xi8, 3>, tensor<64x8xf32, #acc>
      %1 = simt.wait_multiply 0, %0 : tensor<64x8xf32, #acc>
      return %1 : tensor<64x8xf32, #acc>
    }
    ```
  }];
  let arguments = (ins Arg<Simt_Buffer, "", [MemRead]>:$left, I32:$leftAt, Arg<Simt_Buffer, "", [MemRead]>:$right,
                       I32:$rightAt, Simt_Tile:$acc, Simt_SharedLayoutAttr:$leftLayout, UnitAttr:$leftTransposed,
                       Simt_SharedLayoutAttr:$rightLayout, UnitAttr:$rightTransposed, DenseI64ArrayAttr:$slot);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = [{
    $left `[` $leftAt `]` `in` $leftLayout (`transposed` $leftTransposed^)? `,` $right `[` $rightAt `]` `in` $rightLayout
    (`transposed` $rightTransposed^)? `,` $acc `slot` $slot attr-dict `:` type($left) `,` type($right) `,` type($acc)
  }];
}

def Simt_MultiplyRowsOp : Simt_Op<"multiply_rows"> {
  let summary = "begins a matrix product of a tile in registers and a matrix in shared memory by wgmma";
  let description = [{
    left · right + acc, or left · right. The accumulator has the layout of `wgmmaAcc`, and `left` is its operand A, in registers.
    The right operand, the result and `slot` are as for `simt.multiply`.

    ```mlir
    #acc = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
    #left = #simt.layout<64x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
    func.func @example(%left: tensor<64x16xbf16, #left>, %right: memref<256xi8, 3>, %at: i32, %acc: tensor<64x8xf32, #acc>)
        -> tensor<64x8xf32, #acc> {
      %0 = simt.multiply_rows %left, %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]> transposed slot [0, 1]
          : tensor<64x16xbf16, #left>, memref<256xi8, 3> -> tensor<64x8xf32, #acc>
      %1 = simt.multiply_rows %left, %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]> transposed
          plus %acc : tensor<64x8xf32, #acc> slot [0, 1] : tensor<64x16xbf16, #left>, memref<256xi8, 3> -> tensor<64x8xf32, #acc>
      %2 = simt.wait_multiply 1, %0 : tensor<64x8xf32, #acc>
      %3 = simt.wait_multiply 0, %1 : tensor<64x8xf32, #acc>
      return %3 : tensor<64x8xf32, #acc>
    }
    ```
  }];
  let arguments = (ins Simt_Tile:$left, Arg<Simt_Buffer, "", [MemRead]>:$right, I32:$rightAt, Optional<Simt_Tile>:$acc,
                       Simt_SharedLayoutAttr:$rightLayout, UnitAttr:$rightTransposed, DenseI64ArrayAttr:$slot);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = [{
    $left `,` $right `[` $rightAt `]` `in` $rightLayout (`transposed` $rightTransposed^)? (`plus` $acc^ `:` type($acc))? `slot` $slot
    attr-dict `:` type($left) `,` type($right) `->` type($result)
  }];
}

def Simt_WaitMultiplyOp
    : Simt_Op<"wait_multiply", [RangedTypesMatchWith<"results have the types of the accumulators", "acc", "results",
                                                     "::llvm::make_range($_self.begin(), $_self.end())">,
                                MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all products that the thread has begun except the newest `pending`";
  let description = [{
    Products are those of `simt.multiply` and `simt.multiply_rows`, which complete in order. The results are the accumulators `acc`
    after the wait. An accumulator whose product is still pending may only be passed to the next product or wait.

    ```mlir
    #acc = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
    func.func @example(%a: tensor<64x8xf32, #acc>, %b: tensor<64x8xf32, #acc>) -> tensor<64x8xf32, #acc> {
      %0 = simt.wait_multiply 1, %a : tensor<64x8xf32, #acc>
      %1:2 = simt.wait_multiply 0, %0, %b : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
      return %1#1 : tensor<64x8xf32, #acc>
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>]>:$pending, Variadic<Simt_Tile>:$acc);
  let results = (outs Variadic<Simt_Tile>:$results);
  let assemblyFormat = "$pending `,` $acc attr-dict `:` type($acc)";
  let hasVerifier = 0;
}

def Simt_ReserveOp : Simt_Op<"reserve", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "reserves space for a line in the console";
  let description = [{
    One thread of the program executes it. The result, which only that thread has, is the offset of the line in bytes from the
    begin of the first line.

    ```mlir
    #all = #simt.layout<1, reg [], lane [* * * * *], warp [* *]>
    func.func @example() -> tensor<1xi64, #all> {
      %0 = simt.reserve 128 : tensor<1xi64, #all>
      return %0 : tensor<1xi64, #all>
    }
    ```
  }];
  let arguments = (ins I64Attr:$bytes);
  let results = (outs Simt_Tile:$result);
  let assemblyFormat = "$bytes attr-dict `:` type($result)";
  let hasVerifier = 0;
}

def Simt_PrintOp : Simt_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a line into the console";
  let description = [{
    It writes the record that lowering/Abi.h describes, at `place`, if there is space: label number `label`, extents `shape`, then
    the elements.

    ```mlir
    #all = #simt.layout<1, reg [], lane [* * * * *], warp [* *]>
    #row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [* *]>
    func.func @example(%x: tensor<32xf32, #row>, %place: tensor<1xi64, #all>, %program: i64) {
      simt.print %x at %place of %program label 0 shape [32] : tensor<32xf32, #row>, tensor<1xi64, #all>
      return
    }
    ```
  }];
  let arguments = (ins Simt_Tile:$value, Simt_Tile:$place, I64:$program, I64Attr:$label, DenseI64ArrayAttr:$shape);
  let assemblyFormat = [{
    $value `at` $place `of` $program `label` $label `shape` $shape attr-dict `:` type($value) `,` type($place)
  }];
  let hasVerifier = 0;
}

def Simt_BarrierOp : Simt_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "barrier: no thread continues before all have arrived";
  let description = [{
    Writes of any thread before it, to shared or global memory, are visible to all threads after it. `guards` names the hazard
    that it prevents.

    ```mlir
    func.func @example() {
      simt.barrier
      return
    }
    ```
  }];
  let arguments = (ins OptionalAttr<StrAttr>:$guards);
  let assemblyFormat = "($guards^)? attr-dict";
  let hasVerifier = 0;
}

#endif
