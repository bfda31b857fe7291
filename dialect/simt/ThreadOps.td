// Operations of one thread, on scalars and vectors of one dimension. Each is one PTX instruction or a few.

#ifndef KILN_DIALECT_SIMT_THREADOPS_TD
#define KILN_DIALECT_SIMT_THREADOPS_TD

include "dialect/simt/SimtDialect.td"
include "dialect/tile/ElementTypes.td"

def Simt_Space : I32EnumAttr<"Space", "memory of a GPU", [
    I32EnumAttrCase<"Global", 0, "global">, I32EnumAttrCase<"Shared", 1, "shared">]> {
  let cppNamespace = "::kiln::simt";
}

/// The value of one load or store: a vector of 8 to 128 bits.
def Simt_Vector : VectorOfRankAndType<[1], Tile_Stored>;
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
    A multiple of 128, and of 1024 if `simt.wgmma` or `simt.wgmma_rows` reads it. `bytes` is the size of the shared memory.

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
  let summary = "an address plus a number of strides";
  let description = [{
    base + stride · count, with an unsigned stride. This is one instruction; a 64-bit sum takes more.

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
    It loads from address + `displacement`, a multiple of the bytes loaded, if the predicate is true; otherwise the result is
    `other`. `readonly`: nothing writes there while the kernel runs. `strong`: others may write there concurrently; then
    `simt.order = "acquire"` orders later accesses after it.

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
                       Optional<Simt_Vector>:$other, UnitAttr:$readonly, UnitAttr:$strong);
  let results = (outs Simt_Vector:$result);
  let assemblyFormat = [{
    $space $address `+` $displacement (`if` $predicate^ `else` $other `:` type($other))? attr-dict
    `:` type($address) `,` type($result)
  }];
}

def Simt_StoreOp : Simt_Op<"st", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores one to sixteen bytes";
  let description = [{
    It stores to address + `displacement`, a multiple of the bytes stored, if the predicate is true. `strong`: others may read or
    write there concurrently; then `simt.order = "release"` orders earlier accesses before it.

    ```mlir
    func.func @example(%address: i32, %x: vector<2xf16>, %p: i1) {
      simt.st shared %x, %address + 4 if %p : vector<2xf16>, i32
      return
    }
    ```
  }];
  let arguments = (ins Simt_Space:$space, Simt_Vector:$value, Simt_Address:$address, I64Attr:$displacement,
                       Optional<I1>:$predicate, UnitAttr:$strong);
  let assemblyFormat = [{
    $space $value `,` $address `+` $displacement (`if` $predicate^)? attr-dict `:` type($value) `,` type($address)
  }];
}

def Simt_LoadMatrixOp : Simt_Op<"ldmatrix", [MemoryEffects<[MemRead]>]> {
  let summary = "loads one, two or four matrices of 8 rows of 16 bytes, distributed over a warp";
  let description = [{
    It loads from shared memory at address + `displacement`: lane 8 i + j gives the address of row j of matrix i. A lane gets one
    32-bit word of each matrix: lane l gets word l % 4 of row l / 4. With `transposed` it gets the 16-bit elements l / 4 of rows 2
    (l % 4) and 2 (l % 4) + 1.

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
  let summary = "stores the matrices that `simt.ldmatrix` would load";
  let description = [{
    It stores to shared memory. No lane may be left out: a predicate is uniform in the warp.

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
  let summary = "begins an asynchronous copy of 4, 8 or 16 bytes from global to shared memory";
  let description = [{
    It copies if the predicate is true. It copies the first `size` bytes (default: all) and zeros for the rest. If `inside` is
    false, all bytes are zeros.

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

/// tile::AtomicKind, which the other dialect defines.
def Simt_AtomicKind : Attr<CPred<"::llvm::isa<::kiln::tile::AtomicKindAttr>($_self)">, "kind of atomic"> {
  let storageType = "::kiln::tile::AtomicKindAttr";
  let returnType = "::kiln::tile::AtomicKind";
  let convertFromStorage = "$_self.getValue()";
}
def Simt_Atomic : AnyTypeOf<[I16, I32, I64, F16, BF16, F32, F64]>;

def Simt_AtomicRmwOp : Simt_Op<"atomic_rmw", [AllTypesMatch<["value", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "atomic read-modify-write of one element of global memory";
  let description = [{
    It is done at address + `displacement`, if the predicate is true. It is relaxed, or has the order `simt.order`: "acquire",
    "release" or "acq_rel", for the scope `tile.scope`. The result is the previous value, or 0. With `simt.fenced` its read is
    kept for a later fence, even if the result is unused.

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
  let summary = "atomic compare-and-exchange of one element of global memory";
  let description = [{
    It is done at address + `displacement`, if the predicate is true, with the orders of `simt.atomic_rmw`. Bits are compared. The
    result is the previous value, or 0.

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
  let summary = "orders this thread's accesses of global memory, for the GPU or tile.scope";
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
    lowering/Abi.h describes the memory there.

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
  let summary = "reports a failed check to the console";
  let description = [{
    The condition is uniform in the program. If it is true, one thread reports. The console keeps the failure of the first launch,
    of its lowest program, and of that program the first. `message` and `where` are numbers of the module's texts.

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
  let summary = "shuffle: each lane reads the value of the lane whose index differs by a mask";
  let description = [{
    The other lane's number differs from the thread's own in the bits of `mask`. All 32 lanes take part.

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
  let summary = "shuffle: each lane reads the value of the lane that it gives";
  let description = [{
    `lane` is from 0 to 31, and may differ between lanes. All 32 lanes take part.

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
  let summary = "the value itself; operations on the result are not hoisted out of the loop";
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
  let summary = "one product of small matrices by a warp's tensor core (mma.sync): a · b + acc";
  let description = [{
    a is 16 × k by rows, b is k × 8 by columns, acc is 16 × 8. Each thread gives its fragments, in the order of PTX's `mma.sync`.
    k is 16 for f16 and bf16, 8 for f32 (rounded to tf32), 32 for i8. With a part, an f32 operand is split into a `large` number,
    which is rounded, and a `small` one, the rounded rest. The named part is multiplied: as tf32 if k is 8, as bf16 if it is 16.

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

/// A thread's elements of an accumulator.
def Simt_Accumulator : VectorOfRankAndType<[1], [F32]>;

def Simt_WgmmaFenceOp : Simt_Op<"wgmma_fence", [AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "orders earlier writes of a thread's accumulator before `simt.wgmma` that add to it";
  let description = [{
    ```mlir
    func.func @example(%acc: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma_fence %acc : vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins Simt_Accumulator:$acc);
  let results = (outs Simt_Accumulator:$result);
  let assemblyFormat = "$acc attr-dict `:` type($acc)";
  let hasVerifier = 0;
}

def Simt_WgmmaOp : Simt_Op<"wgmma", [AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins one product of matrices in shared memory by a warpgroup (wgmma): a · b + acc";
  let description = [{
    a is 64 × 16, and b is 16 × n. Descriptors in the form of PTX's `wgmma` describe them; they are stored by rows and by columns,
    or `transposed`. A thread has n / 2 elements of the accumulator.

    ```mlir
    func.func @example(%a: i64, %b: i64, %acc: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma bf16 %a, %b transposed, %acc : vector<4xf32>
      simt.wgmma_commit
      %1 = simt.wgmma_wait 0, %0 : vector<4xf32>
      return %1 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins TypeAttr:$element, I64:$a, UnitAttr:$aTransposed, I64:$b, UnitAttr:$bTransposed, Simt_Accumulator:$acc);
  let results = (outs Simt_Accumulator:$result);
  let assemblyFormat = [{
    $element $a (`transposed` $aTransposed^)? `,` $b (`transposed` $bTransposed^)? `,` $acc attr-dict `:` type($acc)
  }];
}

def Simt_WgmmaRowsOp : Simt_Op<"wgmma_rows", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "begins products of rows in registers and a matrix in shared memory by a warpgroup (wgmma): a · b + acc";
  let description = [{
    `a` and the accumulator have blocks of 64 rows, one after the other. Each block has its fragments of 16 columns. Each fragment
    is multiplied by 16 rows of b, which begin `steps` pieces of 16 bytes after the descriptor's address. Without `acc` the
    accumulator starts at 0. The products are a group of their own, as after `simt.wgmma_commit`.

    ```mlir
    func.func @example(%a: vector<16xbf16>, %b: i64, %acc: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma_rows %a, %b steps [0, 2] plus %acc : vector<4xf32> : vector<16xbf16> -> vector<4xf32>
      %1 = simt.wgmma_rows %a, %b transposed steps [0, 64] : vector<16xbf16> -> vector<4xf32>
      %2 = simt.wgmma_wait 1, %0 : vector<4xf32>
      %3 = simt.wgmma_wait 0, %1 : vector<4xf32>
      return %2 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins VectorOfRankAndType<[1], [BF16, F16]>:$a, I64:$b, Optional<Simt_Accumulator>:$acc, UnitAttr:$bTransposed,
                       DenseI64ArrayAttr:$steps);
  let results = (outs Simt_Accumulator:$result);
  let assemblyFormat = [{
    $a `,` $b (`transposed` $bTransposed^)? `steps` $steps (`plus` $acc^ `:` type($acc))? attr-dict
    `:` type($a) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Number of blocks of 64 rows.
    int64_t blocks() {
      return getA().getType().getNumElements() / (8 * static_cast<int64_t>(getSteps().size()));
    }
    int64_t columns() { return 2 * getType().getNumElements() / blocks(); }
  }];
}

def Simt_WgmmaCommitOp : Simt_Op<"wgmma_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "groups the `simt.wgmma` that the warps have begun since the last group";
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

def Simt_WgmmaWaitOp : Simt_Op<"wgmma_wait", [AllTypesMatch<["acc", "result"]>, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all groups of `simt.wgmma` except the newest `pending`";
  let description = [{
    ```mlir
    func.func @example(%acc: vector<4xf32>) -> vector<4xf32> {
      %0 = simt.wgmma_wait 1, %acc : vector<4xf32>
      return %0 : vector<4xf32>
    }
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntMinValue<0>]>:$pending, Simt_Accumulator:$acc);
  let results = (outs Simt_Accumulator:$result);
  let assemblyFormat = "$pending `,` $acc attr-dict `:` type($acc)";
  let hasVerifier = 0;
}

#endif
