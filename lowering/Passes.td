// Every pass of the compiler, in pipeline order: the table of contents of lowering/.
//
// A pass `FoldMasks` of the folder tile/ is lowering/tile/FoldMasks.cpp, `--tile-fold-masks`, and
// test/lowering/tile/fold-masks.mlir. Each folder's passes have a namespace of their own (those of tile/ are
// kiln::lowering's), so that two targets may both have a `LowerMath`: the parts of this file are generated one by one.

#ifndef KILN_LOWERING_PASSES_TD
#define KILN_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

#ifdef KILN_TILE_PASSES
// --- tile → tile: on every machine ----------------------------------------------------------------------------------

def VerifyKernels : Pass<"tile-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "rejects what is no kernel, and kernels too large to compile";
  let description = [{
    The gate of every pipeline. A kernel is a `func.func` with the attribute `tile.kernel` whose arguments are scalars and
    strided views, which returns nothing, and whose body is structured control flow over scalars and tiles in operations of
    `tile`, `arith`, `math` and `scf`. Where the target takes them, parts may be lowered already. Nothing is changed.

    ```mlir
    %0 = math.isnan %x : f32   // error: expected an operation of the tile language, but got 'math.isnan'
    ```
  }];
  let options = [Option<"elements", "elements", "UpTo<1 << 30>", "1 << 24", "most elements of a tile">,
                 Option<"lowered", "lowered", "bool", "true", "let parts of it be lowered already">,
                 Option<"operations", "operations", "UpTo<1 << 30>", "4096", "most operations of a kernel">,
                 Option<"nesting", "nesting", "UpTo<1 << 30>", "64", "most loops and branches round an operation">,
                 Option<"lanes", "lanes", "UpTo<1 << 30>", "1024",
                        "most elements of a vector, in parts that are lowered already">];
}

def DeclareConsole : Pass<"tile-declare-console", "::mlir::ModuleOp"> {
  let summary = "declares what `tile.check` and `tile.print` will call, and the texts that they pass";
  let description = [{
    Each text becomes a constant of the module, named by an attribute of the operation (`tile.message` and `tile.where` of a
    check, `tile.label` of a print). The passes that lower the operations call through lowering/tile/Console.h.

    ```mlir
    tile.check %ok, "out of range" : i1
    // becomes
    tile.check %ok, "out of range" {tile.message = @text_0, tile.where = @text_1} : i1
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CountLoops : Pass<"tile-count-loops", "::mlir::func::FuncOp"> {
  let summary = "counts the iterations of loops whose positions might overflow";
  let description = [{
    A loop runs for begin, begin + step, … below end, whatever these are. Where they are known to be far from the ends of
    their type, as extents and what is made of them are, the loop stays. Any other counts its iterations from 0 and computes
    the position: the one after the last, which may lie past the largest integer, is never made.

    ```mlir
    scf.for %i = %begin to %end step %step : i64 { … }
    // becomes
    scf.for %n = %c0 to %count step %c1 : i64 {
      %distance = arith.muli %n, %step : i64
      %i = arith.addi %begin, %distance : i64
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ExpandOps : Pass<"tile-expand-ops", "::mlir::func::FuncOp"> {
  let summary = "spells total integer operations, casts, random numbers and narrow-float arithmetic in arith";
  let description = [{
    `tile.cast`, `tile.div`, `tile.rem`, `tile.shl`, `tile.shr` and `tile.random` become `arith` operations with selects
    that give the results the dialect promises; arithmetic on bf16 and f16 is done in f32 and rounded, but for what the
    target has instructions for that round once (`native-narrow`). Floats of 8 bits are bytes from here on, and nothing is
    `tile.unsigned` any more but atomics and prints. They are multiplied as bf16, or where the target multiplies them
    (`byte-products`) stay bytes of which `tile.factors` says what they are. Tiles stay tensors.

    ```mlir
    %0 = tile.shl %a, %n : tensor<4xi32>
    // becomes
    %1 = arith.shli %a, %n : tensor<4xi32>
    %2 = arith.cmpi ult, %n, %width : tensor<4xi32>
    %0 = arith.select %2, %1, %zero : tensor<4xi1>, tensor<4xi32>
    ```
  }];
  let options = [Option<"nativeNarrow", "native-narrow", "bool", "false",
                        "keep +, −, ×, fma, min and max of bf16 and f16, and conversions to f16">,
                 Option<"byteProducts", "byte-products", "bool", "false",
                        "keep products of floats of 8 bits, as products of bytes with `tile.factors`">,
                 Option<"coarse", "coarse", "bool", "false",
                        "sums of such products have fewer bits than f32: only what has a precision is kept, and `tile.coarse`">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def UnrollLoops : Pass<"tile-unroll-loops", "::mlir::func::FuncOp"> {
  let summary = "makes one round of several where a loop's `tile.unroll` asks for it";
  let description = [{
    What is left, fewer rounds than become one, is done by the loop as it was. What comes of it is the same to the bit: each
    round does what it did, in its order.

    ```mlir
    %r = scf.for %i = %begin to %end step %c1 iter_args(%a = %init) -> (f32) : i64 { … } {tile.unroll = 2 : i64}
    // becomes
    %last = arith.subi %end, %c1 : i64
    %s = scf.for %i = %begin to %last step %c2 iter_args(%a = %init) -> (f32) : i64 { …%i… …%i + 1… }
    %r = scf.for %i = %rest to %end step %c1 iter_args(%a = %s) -> (f32) : i64 { … }
    ```
  }];
  let options = [Option<"operations", "operations", "UpTo<1 << 30>", "4096",
                        "most operations that may become of a loop">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def RotateLoops : Pass<"tile-rotate-loops", "::mlir::func::FuncOp"> {
  let summary = "asks a while's condition before the loop and at the end of each round";
  let description = [{
    What stands in the first region of an `scf.while` is done in front of it, and at the end of each round again, so that
    the region keeps nothing but the `scf.condition`, of a value that the loop carries. All passes that follow find the
    rounds of such a loop in one block, as those of an `scf.for` are (lowering/analysis/Rounds.h).

    ```mlir
    %r = scf.while (%x = %init) : (tensor<8xf32>) -> tensor<8xf32> {
      %again = …%x…
      scf.condition(%again) %x : tensor<8xf32>
    } do { ^bb0(%x: tensor<8xf32>): … scf.yield %y : tensor<8xf32> }
    // becomes
    %first = …%init…
    %r = scf.while (%go = %first, %x = %init) : (i1, tensor<8xf32>) -> tensor<8xf32> {
      scf.condition(%go) %x : tensor<8xf32>
    } do { ^bb0(%x: tensor<8xf32>): … %again = …%y… scf.yield %again, %y : i1, tensor<8xf32> }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def SplitLoops : Pass<"tile-split-loops", "::mlir::func::FuncOp"> {
  let summary = "gives rounds of a loop that need no mask a loop of their own";
  let description = [{
    A mask that compares positions in a tile with a scalar that grows or falls by one with the loop's position is true
    throughout before some position, or from one on. The innermost loops with such masks become up to three, in the
    same order and with the same results: that of the rounds in which all masks are true has none of them, and its loads lie
    inside their views along the dimensions in which they move and those in which they do not.

    ```mlir
    %r = scf.for %n = %c0 to %end step %c64 iter_args(%a = %init) -> (tensor<64xf32>) : i64 {
      %limit = arith.subi %m, %n : i64
      %limits = tile.splat %limit : i64 -> tensor<64xi64>
      %mask = arith.cmpi sle, %columns, %limits : tensor<64xi64>     // %columns: positions from 0 to 63
      %x = arith.select %mask, %y, %zeros : tensor<64xi1>, tensor<64xf32>
    // becomes
    %middle = …                                                      // the first %n above %m − 63
    %s = scf.for %n = %c0 to %middle step %c64 iter_args(%a = %init) … { … }          // %x is %y
    %r = scf.for %n = %middle to %end step %c64 iter_args(%a = %s) … { … }            // as before
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PlaceConstants : Pass<"tile-place-constants", "::mlir::ModuleOp"> {
  let summary = "puts constant tiles of several values into memory that nobody writes";
  let description = [{
    Such a tile becomes the load of a constant of the module, one for equal tiles, right before it is first used. The oracle,
    which has no need of it, keeps the tile.

    ```mlir
    %t = arith.constant dense<[1, 2]> : tensor<2xi8>
    // becomes
    %bytes = memref.get_global @table_0 : memref<2xi8>
    %view = memref.view %bytes[%c0][] : memref<2xi8> to memref<2xi8>
    %t = tile.load %view[%c0_i64] : memref<2xi8> -> tensor<2xi8>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

#endif // KILN_TILE_PASSES

#ifdef KILN_GENERIC_PASSES
// --- The oracle: tile → linalg on memrefs → plain loops --------------------------------------------------------------

def LowerToLinalg : Pass<"generic-lower-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "gives every tile a buffer of its own and every operation a plain loop nest";
  let description = [{
    The reference that the fast pipeline is compared with: no tile shares a buffer, nothing is blocked, fused or
    vectorised. Buffers are `memref.alloca`; elementwise operations become `linalg.generic` on memrefs.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // KILN_GENERIC_PASSES

#ifdef KILN_CPU_PASSES
// --- The fast CPU pipeline: tile → loops over native vectors ----------------------------------------------------------

def SplitProducts : Pass<"cpu-split-products", "::mlir::func::FuncOp"> {
  let summary = "takes factors of f32 for the sum of two bf16 where the precision bf16x3 permits it";
  let description = [{
    AMX multiplies bf16: a product becomes three, of large parts and of a large and a small one either way, the sums of
    which are left out where they are not finite, as of an infinite factor.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ForwardLoads : Pass<"cpu-forward-loads", "::mlir::func::FuncOp"> {
  let summary = "marks the loads that may be read again from memory where they are used";
  let description = [{
    A loaded tile is a value. It may stay a view of the memory only when no write that could overlap it lies between the
    load and its last use; such loads get the unit attribute `cpu.view`, all others are copied into scratch memory.
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
}

def PinCarriedTiles : Pass<"cpu-pin-carried-tiles", "::mlir::func::FuncOp"> {
  let summary = "decides which carried tiles can be updated in place";
  let description = [{
    A loop keeps one buffer for each carried tile. The value yielded for it is computed straight into that buffer when the
    old value has no later use in the body (`cpu.in_place` names the operand); otherwise it is copied at the yield.
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
}

def FuseEpilogues : Pass<"cpu-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "finds the stores that can run inside the product whose sums they write";
  let description = [{
    Where only stores read a product, or the sum of products that a loop carries, and nothing in between touches the same
    memory, the stores take each block of sums straight from the registers: in the product, or in the loop's last step.
    `cpu.epilogue` on the product or the loop names such results.

    ```mlir
    %y = scf.for … iter_args(%acc = %zero) -> (tensor<64x64xf32>) { … } {cpu.epilogue = array<i1: true>}
    tile.store %y, %c[%m, %n]
    ```
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">];
}

def SelectProducts : Pass<"cpu-select-products", "::mlir::func::FuncOp"> {
  let summary = "decides which instructions compute each product";
  let description = [{
    `cpu.unit` names instructions that add several products of narrow operands to a sum at a time, where the CPU has them
    and the product has their types and a depth of whole groups. The operands of all other products are widened to the type
    of their sums. `cpu.flushes` marks roundings to bf16 that only such instructions read: those take denormals for zeros.

    ```mlir
    %0 = tile.dot %a, %b, %acc {cpu.unit = "bf16_pairs"} : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>

    %1 = tile.dot %x, %y, %acc : tensor<8x16xf16>, tensor<16x32xf16>, tensor<8x32xf32>
    // becomes
    %2 = arith.extf %x : tensor<8x16xf16> to tensor<8x16xf32>
    %3 = arith.extf %y : tensor<16x32xf16> to tensor<16x32xf32>
    %1 = tile.dot %2, %3, %acc : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"bf16Pairs", "bf16-pairs", "bool", "false",
                        "the CPU adds pairs of products of bf16 (avx512_bf16), faster than "
                        "it widens and multiplies them">,
                 Option<"i8Quads", "i8-quads", "bool", "false",
                        "the CPU adds four products of i8 at a time (avx512_vnni)">,
                 Option<"tiles", "tiles", "bool", "false",
                        "the CPU multiplies tiles of bf16 and i8 (AMX): they go before the others">];
}

def PlaceTiles : Pass<"cpu-place-tiles", "::mlir::func::FuncOp"> {
  let summary = "decides which tiles get scratch memory";
  let description = [{
    A tile lies in scratch memory (`cpu.placed` on what makes it) when it is a load that must be copied, when it would cost
    too much to compute it again, or when its reader wants it in memory. Every other tile is computed where it is used. An
    epilogue that needs a placed tile is given up: its mark is taken away. What a reshape would read in vectors that lie
    across rows is copied without gaps between rows (`cpu.dense`), and so lie placed tiles of rows narrower than a vector. A
    transposed tile, whose vectors would be read element by element, is placed and so turned block by block; products turn
    their operands themselves. What is one for each row, (64, 1), and follows from as many, (64), is computed as a row.

    ```mlir
    %0 = math.exp %x {cpu.placed} : tensor<64x32xf32>   // read by two products
    %1 = tile.reshape %y {cpu.dense, cpu.placed} : tensor<64x100xf32> -> tensor<64x100xf32>
    %2 = tile.reshape %1 : tensor<64x100xf32> -> tensor<6400xf32>
    %3 = tile.transpose %z [1, 0] {cpu.placed} : tensor<64x32xf32> -> tensor<32x64xf32>
    ```
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">];
}

def PackOperands : Pass<"cpu-pack-operands", "::mlir::func::FuncOp"> {
  let summary = "decides how the operands of products reach the micro-kernel";
  let description = [{
    `cpu.left` says where the scalars of a are read (`placed`, `view`, `panels` or `copy`), `cpu.right_turned` that b is read
    by rows and turned while it is packed, `cpu.right_before` before how many of the loops around the product that is done.

    ```mlir
    %0 = tile.dot %a, %b, %acc {cpu.left = "view", cpu.right_turned} : …
    ```
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">,
                 Option<"registers", "registers", "OneOf<16, 32>", "32", "native vector registers">];
}

def LowerTiles : Pass<"cpu-lower-tiles", "::mlir::func::FuncOp"> {
  let summary = "turns tiles into loops over native vectors and scratch memory";
  let description = [{
    Stores, reductions, products, carried tiles and costly values used twice get loops; everything else is computed where
    it is used. Neighbouring loops over one shape run as one. What is placed, packed and fused is what the attributes of the
    passes above say. Where tiles may hang over their views' ends, loops come twice: for those inside without masks.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::x86vector::X86VectorDialect", "::mlir::amx::AMXDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">,
                 Option<"registers", "registers", "OneOf<16, 32>", "32", "native vector registers">];
}

def EmulateAmx : Pass<"cpu-emulate-amx", "::mlir::func::FuncOp"> {
  let summary = "does what AMX's instructions do on any CPU";
  let description = [{
    For tests, on machines without AMX, of the code that uses it: the target `cpu:NAME:amx`. A tile becomes a vector of two
    dimensions, and a product of tiles loops over their elements.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

// --- Shared by both CPU pipelines --------------------------------------------------------------------------------------

def LowerMath : Pass<"cpu-lower-math", "::mlir::func::FuncOp"> {
  let summary = "spells functions of floats, extrema and bf16 conversions in arithmetic";
  let description = [{
    On scalars and vectors. f32 functions are polynomials with the error bounds that dialect/README.md states; f64 ones
    are computed to the same bounds; no call of a mathematical library is left. bf16 is carried as i16 from here on.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let options = [Option<"scaleInstruction", "scale-instruction", "bool", "false",
                        "the CPU has vscalef (AVX-512), which multiplies by a power of two">,
                 Option<"roundInstruction", "round-instruction", "bool", "false",
                        "the CPU has vcvtneps2bf16 (avx512_bf16), which rounds f32 to bf16">];
}

def AllocateScratch : Pass<"cpu-allocate-scratch", "::mlir::func::FuncOp"> {
  let summary = "places every scratch buffer in the thread's arena";
  let description = [{
    Each `memref.alloca` becomes a `memref.view` of a last function argument `memref<?xi8>` at a 64-byte aligned offset;
    buffers that are never alive together share bytes. The function attribute `cpu.scratch_bytes` holds the size.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

def LowerKernelArguments : Pass<"cpu-lower-kernel-arguments", "::mlir::ModuleOp"> {
  let summary = "turns the kernel into the C function that lowering/Abi.h describes";
  let description = [{
    Views are rebuilt from the packed argument block; `tile.program_id`, `tile.num_programs` and `tile.dim` read it.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

#endif // KILN_CPU_PASSES

#ifdef KILN_GPU_PASSES
// --- The GPU: tiles get layouts -----------------------------------------------------------------------------------------

def PadSorts : Pass<"gpu-pad-sorts", "::mlir::func::FuncOp"> {
  let summary = "gives sorts powers of two, all of whose elements are wanted";
  let description = [{
    The greatest numbers follow the elements, up to the next power of two; of what is sorted the first are taken. A quarter
    of the elements, or less, is selected: two sorted blocks become one until one is left (`simt.bitonic`: merges only).

    ```mlir
    %0:2 = tile.sort %x axis 0 : tensor<100xi32> -> tensor<8xi32>, tensor<8xi32>
    // becomes
    %1 = arith.select %inside, %repeated, %greatest : tensor<128xi1>, tensor<128xi32>
    %2:2 = tile.sort %1 axis 0 : tensor<128xi32> -> tensor<128xi32>, tensor<128xi32>
    %0 = tile.extract %2#0 begin [0] steps [1] : tensor<128xi32> -> tensor<8xi32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::kiln::tile::TileDialect", "::kiln::simt::SimtDialect"];
}

def CoalesceAccesses : Pass<"gpu-coalesce-accesses", "::mlir::func::FuncOp"> {
  let summary = "chooses a layout for each load, store and atomic addition";
  let description = [{
    Neighbouring threads take neighbouring elements, and a thread as many in a row as one instruction moves: up to 16 bytes
    where strides, offsets, extents and the view's alignment allow. `simt.layout` and `simt.vector` say what was chosen.

    ```mlir
    %0 = tile.load %x[%m, %k] : … -> tensor<64x64xf16>
    // becomes
    %0 = tile.load %x[%m, %k] {simt.layout = #simt.layout<64x64, reg [d1:1 d1:2 d1:4 …], …>, simt.vector = 8 : i64} : …
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect"];
}

def SelectInstructions : Pass<"gpu-select-instructions", "::mlir::func::FuncOp"> {
  let summary = "chooses the instructions of products, and with them the layout of their sums";
  let description = [{
    Products of bf16, f16, i8, floats of 8 bits, and of f32 that may be rounded, go to the tensor cores, when the extents fill
    their fragments; all others are outer products in registers. `simt.layout` on the product is the layout of its sums.
    With `groups`, products of bf16 and f16 in a loop that only adds to their sums, both operands loaded in its rounds, get
    `simt.wgmma`, too: their sums lie as groups of four warps have them that read both from shared memory. So do those of
    which the right operand alone is loaded in the round, where each warp has rows of its own: these stay in registers.

    The tensor core does not care which rows and columns of a tile an instruction takes, nor in which order it adds terms. So
    where rows of A or columns of B are neighbours in memory and ldmatrix cannot turn them, an instruction takes every
    fourth, or second, and a lane reads its own side by side; and a product of f32 whose left factor comes from another's
    sums takes its terms as these lie (`simt.chained`).
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect"];
  let options = [Option<"groups", "groups", "bool", "false", "whether groups of four warps can multiply">];
}

def PropagateLayouts : Pass<"gpu-propagate-layouts", "::mlir::func::FuncOp"> {
  let summary = "gives every tile a layout";
  let description = [{
    From what accesses and products want: forwards along the operations, then backwards, each once. Where two layouts meet
    there is a `simt.convert`; what is made of constants and positions alone is computed again in each layout that somebody
    wants, and a few numbers that several threads need are loaded again rather than passed through shared memory.

    ```mlir
    %0 = arith.addf %x, %y : tensor<64x64xf32>
    // becomes
    %1 = simt.convert %y : tensor<64x64xf32, #b> -> tensor<64x64xf32, #a>
    %0 = arith.addf %x, %1 : tensor<64x64xf32, #a>
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::arith::ArithDialect"];
}

def AdoptLayouts : Pass<"gpu-adopt-layouts", "::mlir::func::FuncOp"> {
  let summary = "loads and stores small tiles in the layouts that others want";
  let description = [{
    Where a conversion would go through shared memory, or between lanes, a small tile is loaded once more in the layout that
    is wanted, and one that is stored is stored as it lies. Memory is asked for a little more, but nobody waits.

    ```mlir
    %0 = tile.load %gamma[%c0] {simt.layout = #pairs, …} : memref<768xf32> -> tensor<768xf32, #pairs>
    %1 = simt.convert %0 : tensor<768xf32, #pairs> -> tensor<768xf32, #row>
    // becomes
    %1 = tile.load %gamma[%c0] {simt.layout = #row, …} : memref<768xf32> -> tensor<768xf32, #row>
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::arith::ArithDialect"];
}

def NarrowLoops : Pass<"gpu-narrow-loops", "::mlir::func::FuncOp"> {
  let summary = "counts with 32 bits where a loop's bounds fit them";
  let description = [{
    An end fits that is a constant up to 2^30, or an extent of a view with `tile.fits_32`, or computed of these. The loop
    begins at 0 or later.

    ```mlir
    scf.for %k = %c0 to %end step %c64 : i64 {
    // becomes
    %0 = arith.minui %end, %c1073741824_i64 : i64
    %1 = arith.trunci %0 : i64 to i32
    scf.for %k32 = %c0_i32 to %1 step %c64_i32 : i32 {
      %k = arith.extsi %k32 : i32 to i64
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

// --- The GPU: memory becomes explicit -----------------------------------------------------------------------------------

def FitStages : Pass<"gpu-fit-stages", "::mlir::func::FuncOp"> {
  let summary = "pipelines loops with as many stages as fit shared memory beside all else";
  let description = [{
    Runs the three passes that follow, up to `gpu-allocate-shared`. Where the kernel says nothing of a loop's stages and the
    sum of bytes is too large, the function becomes what it was, and they run with one stage less.
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
  let options = [Option<"limit", "limit", "UpTo<1 << 30>", "166912", "bytes of shared memory that a program may use">,
                 Option<"storeMatrix", "store-matrix", "bool", "false", "whether there is stmatrix (from sm_90 on)">];
}

def PipelineLoads : Pass<"gpu-pipeline-loads", "::mlir::func::FuncOp"> {
  let summary = "copies the operands of products to shared memory some rounds of their loop ahead";
  let description = [{
    A load in a loop whose tile is an operand of a product, from a view that nothing writes, becomes an asynchronous copy to
    one of `tile.stages` slots and a read of the slot that was filled some rounds before. Without the attribute there are
    `stages` slots, or as many as fit; with 1 nothing changes. A product with `simt.wgmma` reads its operands, or the right
    one, from their slots itself: it becomes a `simt.multiply` or a `simt.multiply_rows`.

    ```mlir
    scf.for %k = … {
      %0 = tile.load %a[%m, %k] : … -> tensor<128x64xbf16, #loaded>
      %1 = simt.convert %0 : … -> tensor<128x64xbf16, #operand>
    // becomes
    simt.fetch %a[%m, %first] to %ring[%c0] slot [0, 3] by 8 in #image …
    simt.commit_copies
    …
    scf.for %k = … iter_args(%slot = %c0) {
      simt.wait_copies 1
      simt.fetch %a[%m, %later] to %ring[%free] slot [2, 3] by 8 in #image if %isThere …
      simt.commit_copies
      %1 = simt.read %ring[%at] slot [0, 3] by rows in #image : … -> tensor<128x64xbf16, #operand>
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
  let options = [Option<"limit", "limit", "UpTo<1 << 30>", "166912", "bytes of shared memory that a program may use">,
                 Option<"stages", "stages", "UpTo<64>", "3", "slots for loops of kernels that do not say how many">];
}

def ExpandExchanges : Pass<"gpu-expand-exchanges", "::mlir::func::FuncOp"> {
  let summary = "spells what crosses warps as writes to and reads from shared memory";
  let description = [{
    Conversions between layouts that shuffles within a warp cannot do, or not as cheaply, reductions along an axis that
    several warps share, operands of outer products, and reshapes that move elements.

    ```mlir
    %0 = simt.convert %x : tensor<8x32xf32, #a> -> tensor<8x32xf32, #b>
    // becomes
    %1 = simt.buffer : memref<1024xi8, 3>
    simt.write %x, %1 by vectors in #simt.image<8x32xf32, d0 [128, 256, 512], d1 [4, 8, 16, 32, 64]> : …
    %0 = simt.read %1 by vectors in #simt.image<8x32xf32, d0 [128, 256, 512], d1 [4, 8, 16, 32, 64]> : …
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::scf::SCFDialect"];
  let options = [Option<"storeMatrix", "store-matrix", "bool", "false", "whether there is stmatrix (from sm_90 on)">];
}

def AllocateShared : Pass<"gpu-allocate-shared", "::mlir::func::FuncOp"> {
  let summary = "places every buffer in the program's shared memory";
  let description = [{
    Buffers that are never alive together share bytes. `offset` of each `simt.buffer` is its place, `simt.shared_bytes` of
    the function the sum; `simt.shared_parts` names them for the PTX: offset, bytes, source line.
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect"];
  let options = [Option<"limit", "limit", "UpTo<1 << 30>", "166912", "bytes that a program may use">];
}

def InsertBarriers : Pass<"gpu-insert-barriers", "::mlir::func::FuncOp"> {
  let summary = "puts a barrier between accesses of one program that must not overtake each other";
  let description = [{
    Between a write and a later access of the same bytes of shared memory, and between accesses of global memory of which
    one writes and that may touch the same elements from different threads. A tile that a thread wrote by its layout it
    reads again by the same layout without one. What a barrier guards is its text.

    ```mlir
    simt.write %x, %1 …
    simt.barrier "write of %1, then read"
    %0 = simt.read %1 …
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect"];
}

// --- The GPU: threads -----------------------------------------------------------------------------------------------------

def Distribute : Pass<"gpu-distribute", "::mlir::func::FuncOp"> {
  let summary = "turns tiles into the vectors of values that one thread holds";
  let description = [{
    The only pass that goes from tiles to threads. A tile becomes a vector of as many elements as its layout stores in a
    thread; elementwise operations stay what they are. Loads, stores, reductions, products and conversions become
    operations of one thread with addresses, predicates and shuffles.
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect"];
}

def LowerMath : Pass<"gpu-lower-math", "::mlir::func::FuncOp"> {
  let summary = "spells functions of floats in arithmetic";
  let description = [{
    By the same polynomials as on the CPU, with the bounds that dialect/README.md states. What carries `tile.accuracy =
    "fast"` is an instruction of the GPU's own, and so is `rsqrt`, with a correction that keeps its bound:

    ```mlir
    %0 = math.exp2 %x {tile.accuracy = "fast"} : f32
    // becomes
    %0 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def LowerKernelArguments : Pass<"gpu-lower-kernel-arguments", "::mlir::ModuleOp"> {
  let summary = "turns the kernel into the entry function that lowering/Abi.h describes";
  let description = [{
    One parameter of 8 bytes for each slot of the argument block. `tile.program_id`, `tile.num_programs` and `tile.dim` read
    them and the special registers.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
}

def SpellPtx : Pass<"gpu-spell-ptx", "::mlir::ModuleOp"> {
  let summary = "spells what one thread does as intrinsics of LLVM and as inline PTX";
  let description = [{
    ```mlir
    %0 = simt.ld global %address + 16 if %p else %other : vector<2xf32> : i64, vector<2xf32>
    // becomes
    %1 = llvm.inline_asm "mov.b32 $0, $4; … @$3 ld.global.v2.b32 {$0, $1}, [$2 + 16];" …
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // KILN_GPU_PASSES

#endif // KILN_LOWERING_PASSES_TD
