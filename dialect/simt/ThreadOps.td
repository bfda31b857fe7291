// What one thread does: operations on scalars and vectors of one dimension, each an instruction or a few of PTX.

#ifndef KILN_DIALECT_SIMT_THREADOPS_TD
#define KILN_DIALECT_SIMT_THREADOPS_TD

include "dialect/simt/SimtDialect.td"
include "dialect/tile/ElementTypes.td"

def Simt_Space : I32EnumAttr<"Space", "memory of a GPU", [
    I32EnumAttrCase<"Global", 0, "global">, I32EnumAttrCase<"Shared", 1, "shared">]> {
  let cppNamespace = "::kiln::simt";
}

/// What is loaded or stored at once: a vector of 8 to 128 bits.
def Simt_Packet : VectorOfRankAndType<[1], Tile_Stored>;
/// An address: 64 bits of global memory, 32 bits of shared memory.
def Simt_Address : AnyTypeOf<[I32, I64], "address">;

def Simt_ThreadOp : Simt_Op<"thread", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "the thread's number in its program";
  let description = [{
    32 · warp + lane, below 32 times the program's `warps`.

    ```mlir
    func.func @example() -> i32 {
      %0 = simt.thread {warps = 4 : i64}
      return %0 : i32
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<32>]>:$warps);
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 0;
}

def Simt_SharedBaseOp : Simt_Op<"shared_base", [Pure]> {
  let summary = "the address of the program's shared memory";
  let description = [{
    A multiple of 128, and of 1024 where `simt.wgmma` or `simt.wgmma_rows` reads it. `bytes` is how much there is of it.

    ```mlir
    func.func @example() -> i32 {
      %0 = simt.shared_base {bytes = 4096 : i64}
      return %0 : i32
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<1>]>:$bytes);
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 0;
}

def Simt_AddressOp : Simt_Op<"address", [Pure, AllTypesMatch<["base", "result"]>]> {
  let summary = "an address so many strides behind another one";
  let description = [{
    base + stride · count, where the stride is a number without sign: one instruction, which sums of 64 bits are not.

    ```mlir
    func.func @example(%base: i64, %stride: i32) -> i64 {
      %0 = simt.address %base + %stride * 16
      return %0 : i64
    }
    ```
  }];
  let arguments = (ins I64:$base, I32:$stride, ConfinedAttr<I64Attr, [IntMinValue<1>]>:$count);
  let results = (outs I64:$result);
  let assemblyFormat = "$base `+` $stride `*` $count attr-dict";
  let hasVerifier = 0;
}

def Simt_LoadOp : Simt_Op<"ld", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "loads one to sixteen bytes";
  let description = [{
    From address + `displacement`, which is a multiple of the bytes loaded, if the predicate is true; else the result is
    `other`. `readonly`: nothing writes there while the kernel runs. `strong`: others may write there meanwhile;
    then `simt.order = "acquire"` orders what stands behind it.

    ```mlir
    func.func @example(%address: i64, %p: i1, %other: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.ld global %address + 16 if %p else %other : vector<4xf32> {readonly} : i64, vector<4xf32>
      %1 = simt.ld global %address + 32 : i64, vector<4xf32>
      %2 = arith.addf %0, %1 : vector<4xf32>
      return %2 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins Simt_Space:$space, Simt_Address:$address, I64Attr:$displacement, Optional<I1>:$predicate,
                       Optional<Simt_Packet>:$other, UnitAttr:$readonly, UnitAttr:$strong);
  let results = (outs Simt_Packet:$result);
  let assemblyFormat = [{
    $space $address `+` $displacement (`if` $predicate^ `else` $other `:` type($other))? attr-dict
    `:` type($address) `,` type($result)
  }];
}

def Simt_StoreOp : Simt_Op<"st", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores one to sixteen bytes";
  let description = [{
    To address + `displacement`, which is a multiple of the bytes stored, if the predicate is true. `strong`: others may
    read or write there meanwhile; then `simt.order = "release"` orders what stands before it.

    ```mlir
    func.func @example(%address: i32, %x: vector<2xf16>, %p: i1) {
      simt.st shared %x, %address + 4 if %p : vector<2xf16>, i32
      return
    }
    ```
  }];
  let arguments = (ins Simt_Space:$space, Simt_Packet:$value, Simt_Address:$address, I64Attr:$displacement,
                       Optional<I1>:$predicate, UnitAttr:$strong);
  let assemblyFormat = [{
    $space $value `,` $address `+` $displacement (`if` $predicate^)? attr-dict `:` type($value) `,` type($address)
  }];
}

def Simt_LoadMatrixOp : Simt_Op<"ldmatrix", [MemoryEffects<[MemRead]>]> {
  let summary = "one, two or four matrices of 8 rows of 16 bytes, spread over a warp";
  let description = [{
    From shared memory at address + `displacement`: lane 8 i + j gives the address of row j of matrix i. Of each matrix a lane
    gets one word of 32 bits: word l % 4 of row l / 4 in lane l, or, with `transposed`, the elements l / 4 of rows 2 (l % 4)
    and 2 (l % 4) + 1, which are of 16 bits.

    ```mlir
    func.func @example(%address: i32) -> vector<4xi32> {
      %0 = simt.ldmatrix %address + 512 transposed : vector<4xi32>
      return %0 : vector<4xi32>
    }
    ```
  }];
  let arguments = (ins I32:$address, I64Attr:$displacement, UnitAttr:$transposed);
  let results = (outs VectorOfLengthAndType<[1, 2, 4], [I32]>:$result);
  let assemblyFormat = "$address `+` $displacement (`transposed` $transposed^)? attr-dict `:` type($result)";
  let hasVerifier = 0;
}

def Simt_StoreMatrixOp : Simt_Op<"stmatrix", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores what `simt.ldmatrix` would load";
  let description = [{
    To shared memory, where no lane may be left out: a predicate is the same in all lanes of a warp.

    ```mlir
    func.func @example(%address: i32, %words: vector<4xi32>, %p: i1) {
      simt.stmatrix %words, %address + 512 transposed if %p : vector<4xi32>
      return
    }
    ```
  }];
  let arguments = (ins VectorOfLengthAndType<[1, 2, 4], [I32]>:$value, I32:$address, I64Attr:$displacement,
                       UnitAttr:$transposed, Optional<I1>:$predicate);
  let assemblyFormat = [{
    $value `,` $address `+` $displacement (`transposed` $transposed^)? (`if` $predicate^)? attr-dict `:` type($value)
  }];
  let hasVerifier = 0;
}

def Simt_CopyAsyncOp : Simt_Op<"cp_async", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins to copy 4, 8 or 16 bytes from global to shared memory";
  let description = [{
    If the predicate is true. The first `size` bytes, all of them without it, and zeros in place of the rest; where
    `inside` is false all are zeros.

    ```mlir
    func.func @example(%to: i32, %from: i64, %size: i32, %inside: i1, %p: i1) {
      simt.cp_async 16 to %to + 0 from %from + 32 size %size if %p
      simt.cp_async 16 to %to + 16 from %from + 0 inside %inside
      return
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [AttrConstraint<CPred<"::llvm::is_contained({4, 8, 16}, "
                       "::llvm::cast<::mlir::IntegerAttr>($_self).getInt())">, "is 4, 8 or 16">]>:$bytes,
                       I32:$target, I64Attr:$toDisplacement, I64:$source, I64Attr:$fromDisplacement,
                       Optional<I32>:$size, Optional<I1>:$inside, Optional<I1>:$predicate);
  let assemblyFormat = [{
    $bytes `to` $target `+` $toDisplacement `from` $source `+` $fromDisplacement (`size` $size^)? (`inside` $inside^)?
    (`if` $predicate^)? attr-dict
  }];
  let hasVerifier = 0;
}

/// tile::AtomicKind, whose definition belongs to the other dialect.
def Simt_AtomicKind : Attr<CPred<"::llvm::isa<::kiln::tile::AtomicKindAttr>($_self)">, "kind of atomic"> {
  let storageType = "::kiln::tile::AtomicKindAttr";
  let returnType = "::kiln::tile::AtomicKind";
  let convertFromStorage = "$_self.getValue()";
}
def Simt_Atomic : AnyTypeOf<[I16, I32, I64, F16, BF16, F32, F64]>;

def Simt_AtomicRmwOp : Simt_Op<"atomic_rmw", [AllTypesMatch<["value", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "changes one element of global memory, indivisibly";
  let description = [{
    At address + `displacement`, if the predicate is true, in no order with other accesses, or in that of `simt.order`:
    "acquire", "release" or "acq_rel". The result is what was there, or 0. With `simt.fenced` it reads for a fence that stands
    behind it, though nobody may use the result.

    ```mlir
    func.func @example(%address: i64, %x: f32, %p: i1) -> f32 {
      %0 = simt.atomic_rmw add %x, %address + 4 if %p : f32
      return %0 : f32
    }
    ```
  }];
  let arguments = (ins Simt_AtomicKind:$kind, Simt_Atomic:$value, I64:$address, I64Attr:$displacement,
                       Optional<I1>:$predicate);
  let results = (outs Simt_Atomic:$result);
  let assemblyFormat = [{
    custom<AtomicKind>($kind) $value `,` $address `+` $displacement (`if` $predicate^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 0;
}

def Simt_AtomicCasOp : Simt_Op<"atomic_cas", [AllTypesMatch<["expected", "desired", "result"]>,
                                              MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "writes one element of global memory if it is as expected, indivisibly";
  let description = [{
    At address + `displacement`, if the predicate is true, in no order with other accesses, or in that of `simt.order`, as
    `simt.atomic_rmw` has it; bits are compared. The result is what was there, or 0.

    ```mlir
    func.func @example(%address: i64, %x: i32, %y: i32, %p: i1) -> i32 {
      %0 = simt.atomic_cas %x to %y, %address + 4 if %p : i32
      return %0 : i32
    }
    ```
  }];
  let arguments = (ins Simt_Atomic:$expected, Simt_Atomic:$desired, I64:$address, I64Attr:$displacement,
                       Optional<I1>:$predicate);
  let results = (outs Simt_Atomic:$result);
  let assemblyFormat = [{
    $expected `to` $desired `,` $address `+` $displacement (`if` $predicate^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 0;
}

def Simt_FenceOp : Simt_Op<"fence", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "orders this thread's accesses of global memory for the whole GPU";
  let description = [{
    ```mlir
    func.func @example() {
      simt.fence
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 0;
}

def Simt_ConsoleOp : Simt_Op<"console", [Pure]> {
  let summary = "the address of the module's console";
  let description = [{
    lowering/Abi.h says what is there.

    ```mlir
    func.func @example() -> i64 {
      %0 = simt.console : i64
      return %0 : i64
    }
    ```
  }];
  let results = (outs I64:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 0;
}

def Simt_ReportOp : Simt_Op<"report", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "tells the console of a failed check";
  let description = [{
    When the condition is true, which it is in all threads of the program or in none, one of them tells. The console keeps
    the failure of the first launch, of that the lowest program, and of that the first. `message` and `where` are
    numbers of the module's texts.

    ```mlir
    func.func @example(%failed: i1, %program: i64, %element: i64) {
      simt.report element %element of %program message 0 where 1 if %failed
      return
    }
    ```
  }];
  let arguments = (ins I64:$element, I64:$program, I64Attr:$message, I64Attr:$where, I1:$condition);
  let assemblyFormat = [{
    `element` $element `of` $program `message` $message `where` $where `if` $condition attr-dict
  }];
  let hasVerifier = 0;
}

def Simt_ShuffleOp : Simt_Op<"shuffle", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "the value of another lane of the warp";
  let description = [{
    That whose number differs from the thread's own in the bits of `mask`; all 32 lanes take part.

    ```mlir
    func.func @example(%x: i32) -> i32 {
      %0 = simt.shuffle %x xor 16 : i32
      return %0 : i32
    }
    ```
  }];
  let arguments = (ins I32:$value, ConfinedAttr<I32Attr, [IntMinValue<1>, IntMaxValue<31>]>:$mask);
  let results = (outs I32:$result);
  let assemblyFormat = "$value `xor` $mask attr-dict `:` type($result)";
  let hasVerifier = 0;
}

def Simt_ShuffleFromOp : Simt_Op<"shuffle_from", [Pure, AllTypesMatch<["value", "result"]>]> {
  let summary = "the value of the lane with a number of its own";
  let description = [{
    `lane` is from 0 to 31; all 32 lanes take part, each asking whom it likes.

    ```mlir
    func.func @example(%x: i32, %lane: i32) -> i32 {
      %0 = simt.shuffle_from %x, %lane : i32
      return %0 : i32
    }
    ```
  }];
  let arguments = (ins I32:$value, I32:$lane);
  let results = (outs I32:$result);
  let assemblyFormat = "$value `,` $lane attr-dict `:` type($result)";
  let hasVerifier = 0;
}

def Simt_PinOp : Simt_Op<"pin", [AllTypesMatch<["value", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the value itself, of which nothing is made before: what is made of it stays in the loop";
  let description = [{
    ```mlir
    func.func @example(%fragment: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.pin %fragment : vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [F32]>:$value);
  let results = (outs VectorOfRankAndType<[1], [F32]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
  let hasVerifier = 0;
}

def Simt_Part : I32EnumAttr<"Part", "a part of an f32 that is the sum of two numbers", [
    I32EnumAttrCase<"Large", 0, "large">, I32EnumAttrCase<"Small", 1, "small">]> {
  let cppNamespace = "::kiln::simt";
}

def Simt_MmaOp : Simt_Op<"mma", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "one product of small matrices by a warp's tensor core: a · b + acc";
  let description = [{
    a is 16 × k by rows, b k × 8 by columns, acc 16 × 8; each thread gives its fragments, in the order of PTX's
    `mma.sync`. k is 16 for f16 and bf16, 8 for f32 (rounded to tf32), 32 for i8. With a part f32 are sums of a `large` number,
    themselves rounded, and a `small` one, the rest rounded, of which that one is multiplied: as tf32 where k is 8, as bf16 where
    it is 16.

    ```mlir
    func.func @example(%a: vector<8xbf16>, %b: vector<4xbf16>, %c: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.mma %a, %b, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [I8, BF16, F16, F32]>:$a, VectorOfRankAndType<[1], [I8, BF16, F16, F32]>:$b,
                       VectorOfRankAndType<[1], [I32, F32]>:$acc, OptionalAttr<Simt_Part>:$aPart,
                       OptionalAttr<Simt_Part>:$bPart);
  let results = (outs VectorOfRankAndType<[1], [I32, F32]>:$result);
  let assemblyFormat = [{
    ($aPart^ `of`)? $a `,` ($bPart^ `of`)? $b `,` $acc attr-dict `:` type($a) `,` type($b) `,` type($acc)
  }];
}

/// Sums of a thread.
def Simt_Sums : VectorOfRankAndType<[1], [F32]>;

def Simt_WgmmaFenceOp : Simt_Op<"wgmma_fence", [AllTypesMatch<["sums", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "orders what has written a thread's sums before `simt.wgmma` that add to them";
  let description = [{
    ```mlir
    func.func @example(%sums: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma_fence %sums : vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins Simt_Sums:$sums);
  let results = (outs Simt_Sums:$result);
  let assemblyFormat = "$sums attr-dict `:` type($sums)";
  let hasVerifier = 0;
}

def Simt_WgmmaOp : Simt_Op<"wgmma", [AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins one product of matrices in shared memory by the tensor cores of four warps: a · b + acc";
  let description = [{
    a is 64 × 16, b 16 × n, which descriptors in the form of PTX's `wgmma` describe; they lie by rows and by columns, or
    `turned`. A thread has n / 2 of the sums.

    ```mlir
    func.func @example(%a: i64, %b: i64, %sums: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma bf16 %a, %b turned, %sums : vector<4xf32>
      simt.wgmma_commit
      %1 = simt.wgmma_wait 0, %0 : vector<4xf32>
      return %1 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins TypeAttr:$element, I64:$a, UnitAttr:$aTurned, I64:$b, UnitAttr:$bTurned, Simt_Sums:$acc);
  let results = (outs Simt_Sums:$result);
  let assemblyFormat = [{
    $element $a (`turned` $aTurned^)? `,` $b (`turned` $bTurned^)? `,` $acc attr-dict `:` type($acc)
  }];
}

def Simt_WgmmaRowsOp : Simt_Op<"wgmma_rows", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "products of rows in registers and a matrix in shared memory by the tensor cores of four warps: a · b + acc";
  let description = [{
    Blocks of 64 rows, one behind the other in `a` and in the sums, of each its fragments of 16 columns; with each of these go 16
    rows of b, which begin so many pieces of 16 bytes behind the descriptor's as `steps` says. Without `acc` sums begin at 0. They
    are there at once.

    ```mlir
    func.func @example(%a: vector<16xbf16>, %b: i64, %sums: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma_rows %a, %b steps [0, 2] plus %sums : vector<4xf32> : vector<16xbf16> -> vector<4xf32>
      %1 = simt.wgmma_rows %a, %b turned steps [0, 64] : vector<16xbf16> -> vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [BF16, F16]>:$a, I64:$b, Optional<Simt_Sums>:$acc, UnitAttr:$bTurned,
                       DenseI64ArrayAttr:$steps);
  let results = (outs Simt_Sums:$result);
  let assemblyFormat = [{
    $a `,` $b (`turned` $bTurned^)? `steps` $steps (`plus` $acc^ `:` type($acc))? attr-dict
    `:` type($a) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Blocks of 64 rows.
    int64_t blocks() {
      return getA().getType().getNumElements() / (8 * static_cast<int64_t>(getSteps().size()));
    }
    int64_t columns() { return 2 * getType().getNumElements() / blocks(); }
  }];
}

def Simt_WgmmaCommitOp : Simt_Op<"wgmma_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "makes a group of the `simt.wgmma` that the warps have begun since the last";
  let description = [{
    ```mlir
    func.func @example() {
      simt.wgmma_commit
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
  let hasVerifier = 0;
}

def Simt_WgmmaWaitOp : Simt_Op<"wgmma_wait", [AllTypesMatch<["sums", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all groups of `simt.wgmma` but the newest `pending`";
  let description = [{
    ```mlir
    func.func @example(%sums: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma_wait 1, %sums : vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>]>:$pending, Simt_Sums:$sums);
  let results = (outs Simt_Sums:$result);
  let assemblyFormat = "$pending `,` $sums attr-dict `:` type($sums)";
  let hasVerifier = 0;
}

#endif
