// Every pass of the compiler: the table of contents of lowering/. Each section is nearly in pipeline order.
//
// A pass `FoldMasks` of the folder tile/ is lowering/tile/FoldMasks.cpp, `--tile-fold-masks`, and
// test/lowering/tile/fold-masks.mlir. Each folder's passes have a namespace; that of tile/ is kiln::lowering.
// So two targets may both have a `LowerMath`, and C++ is generated from each part of this file separately.

#ifndef KILN_LOWERING_PASSES_TD
#define KILN_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

#ifdef KILN_TILE_PASSES
// --- tile → tile ----------------------------------------------------------------------------------------------------

def VerifyKernels : Pass<"tile-verify-kernels", "::mlir::ModuleOp"> {
  let summary = "rejects modules that are not kernels, and kernels too large to compile";
  let description = [{
    The first pass of every pipeline. A kernel is a `func.func` with the attribute `tile.kernel`. Its arguments are scalars and
    strided views, and it returns nothing. Its body is structured control flow over scalars and tiles, in operations of `tile`,
    `arith`, `math` and `scf`. With `lowered`, parts of the kernel may be lowered already. The pass changes nothing.

    ```mlir
    %0 = math.isnan %x : f32   // error: expected an operation of the tile language, but got 'math.isnan'
    ```
  }];
  let options = [Option<"elements", "elements", "UpTo<1 << 30>", "1 << 24", "maximum number of elements of a tile">,
                 Option<"lowered", "lowered", "bool", "true", "parts of the kernel may be lowered already">,
                 Option<"operations", "operations", "UpTo<1 << 30>", "4096", "maximum number of operations of a kernel">,
                 Option<"nesting", "nesting", "UpTo<1 << 30>", "64", "maximum nesting of loops and branches">,
                 Option<"lanes", "lanes", "UpTo<1 << 30>", "1024", "maximum elements of a vector in lowered parts">];
}

def DeclareConsole : Pass<"tile-declare-console", "::mlir::ModuleOp"> {
  let summary = "declares the functions that `tile.check` and `tile.print` call, and the texts that they pass";
  let description = [{
    Each text becomes a constant of the module. An attribute of the operation names it: `tile.message` and `tile.where` of a
    check, `tile.label` of a print. The passes that lower the operations emit the calls through lowering/tile/Console.h.

    ```mlir
    tile.check %ok, "out of range" : i1 // becomes
    tile.check %ok, "out of range" {tile.message = @text_0, tile.where = @text_1} : i1
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def CountLoops : Pass<"tile-count-loops", "::mlir::func::FuncOp"> {
  let summary = "counts the iterations of loops whose induction variable might overflow";
  let description = [{
    A `range` runs for begin, begin + step, … below end, for any 64-bit bounds. If the counter cannot overflow, for instance because the
    bounds are extents, the loop is unchanged. Any other loop counts its iterations from 0 and computes the position from the count. So it
    never computes the position after the last one, which may overflow. The sign test of a positive step is folded.

    ```mlir
    scf.for %i = %begin to %end step %step : i64 { … } // becomes
    scf.for %n = %c0 to %count step %c1 : i64 {
      %distance = arith.muli %n, %step : i64
      %i = arith.addi %begin, %distance : i64
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ExpandOps : Pass<"tile-expand-ops", "::mlir::func::FuncOp"> {
  let summary = "expands integer division, shifts, casts, random numbers and narrow-float arithmetic to arith";
  let description = [{
    `tile.cast`, `tile.div`, `tile.rem`, `tile.shl`, `tile.shr` and `tile.random` become `arith` operations, with selects where `arith`
    is undefined and the dialect is not. Arithmetic on bf16 and f16 is done in f32 and rounded, except operations that the target has
    in these types (`native-narrow`). 8-bit floats are bytes from here on. Only atomics and prints keep `tile.unsigned`.
    Products of 8-bit floats are computed in bf16; with `byte-products` they stay products of bytes of the types `tile.factors`.

    ```mlir
    %0 = tile.shl %a, %n : tensor<4xi32> // becomes
    %1 = arith.shli %a, %n : tensor<4xi32>
    %2 = arith.cmpi ult, %n, %width : tensor<4xi32>
    %0 = arith.select %2, %1, %zero : tensor<4xi1>, tensor<4xi32>
    ```
  }];
  let options = [Option<"nativeNarrow", "native-narrow", "bool", "false",
                        "keep +, −, ×, fma, min and max of bf16 and f16, and conversions to f16">,
                 Option<"byteProducts", "byte-products", "bool", "false",
                        "keep products of 8-bit floats, as products of bytes with `tile.factors`">,
                 Option<"coarse", "coarse", "bool", "false",
                        "such products accumulate in fewer bits than f32: keep only those whose precision is not ieee, as `tile.coarse`">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def UnrollLoops : Pass<"tile-unroll-loops", "::mlir::func::FuncOp"> {
  let summary = "unrolls loops with the hint `tile.unroll`";
  let description = [{
    A second loop executes the remaining iterations. Results are bitwise equal, since all operations keep their order.

    ```mlir
    %r = scf.for %i = %begin to %end step %c1 iter_args(%a = %init) -> (f32) : i64 { … } {tile.unroll = 2 : i64} // becomes
    %last = arith.subi %end, %c1 : i64
    %s = scf.for %i = %begin to %last step %c2 iter_args(%a = %init) -> (f32) : i64 { …%i… …%i + 1… }
    %r = scf.for %i = %rest to %end step %c1 iter_args(%a = %s) -> (f32) : i64 { … }
    ```
  }];
  let options = [Option<"operations", "operations", "UpTo<1 << 30>", "4096", "maximum operations of an unrolled loop">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def RotateLoops : Pass<"tile-rotate-loops", "::mlir::func::FuncOp"> {
  let summary = "evaluates the condition of a while before the loop and at the end of each iteration";
  let description = [{
    The operations in the first region of an `scf.while` are moved in front of the loop, and to the end of each iteration. Only the
    `scf.condition` is left in the region, with a loop-carried value. So an iteration is one block (lowering/analysis/LoopCarried.h).

    ```mlir
    %r = scf.while (%x = %init) … { %again = …%x… scf.condition(%again) %x } do { … scf.yield %y } // becomes
    %first = …%init…
    %r = scf.while (%go = %first, %x = %init) … { scf.condition(%go) %x } do { … %again = …%y… scf.yield %again, %y }
    ```
  }];
  let dependentDialects = ["::mlir::scf::SCFDialect"];
}

def SplitLoops : Pass<"tile-split-loops", "::mlir::func::FuncOp"> {
  let summary = "on GPUs, splits loops, so that iterations without a mask have a loop of their own";
  let description = [{
    In causal attention, for example, only the last blocks of keys need a mask. Such a mask compares positions in a tile with a scalar that
    changes by one with the loop's position. It is true for all elements in the iterations before some position, or from some position on.
    An innermost loop with such masks becomes up to three loops, with equal order and results. One of them has only iterations in which all
    masks are true. It has no masks; its loads have no bounds checks along the known dimensions (`tile.inside`).

    ```mlir
    %r = scf.for %n = %c0 to %end step %c64 iter_args(%a = %init) -> (tensor<64xf32>) : i64 {
      %mask = arith.cmpi sle, %columns, %limits : tensor<64xi64>     // positions from 0 to 63, and a tile of %m − %n
      %x = arith.select %mask, %y, %zeros : tensor<64xi1>, tensor<64xf32> // becomes
    %s = scf.for %n = %c0 to %middle step %c64 iter_args(%a = %init) … { … } // %middle: the first %n above %m − 63; %x is %y
    %r = scf.for %n = %middle to %end step %c64 iter_args(%a = %s) … { … }            // as before
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PlaceConstants : Pass<"tile-place-constants", "::mlir::ModuleOp"> {
  let summary = "moves constant tiles with several values to constant memory";
  let description = [{
    Such a tile becomes a load of a constant of the module, right before its first use. Equal tiles share one constant. The
    reference backend does not run this pass and keeps the tile.

    ```mlir
    %t = arith.constant dense<[1, 2]> : tensor<2xi8> // becomes
    %bytes = memref.get_global @table_0 : memref<2xi8>
    %view = memref.view %bytes[%c0][] : memref<2xi8> to memref<2xi8>
    %t = tile.load %view[%c0_i64] : memref<2xi8> -> tensor<2xi8>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect"];
}

def WatchWaits : Pass<"tile-watch-waits", "::mlir::ModuleOp"> {
  let summary = "on CPUs, ends a loop that waits for other programs if the runtime detects a deadlock";
  let description = [{
    An iteration waits if it changes no memory, and if its condition depends only on memory that it reads by atomics. The loop calls the
    runtime after each iteration (lowering/Abi.h). Runs after `tile-rotate-loops`.

    ```mlir
    scf.yield %again : i1 // becomes
    %never = func.call @kiln_waits(%where, %program, %word) : (!llvm.ptr, i64, i64) -> i64
    scf.yield %more : i1 // %again, and %never is 0
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect"];
}

def DropAssumptions : Pass<"tile-drop-assumptions", "::mlir::func::FuncOp"> {
  let summary = "erases assumptions";
  let description = [{
    No later pass uses the promise of `tile.assume %0`. Its condition remains only if another operation uses it.
  }];
}

#endif // KILN_TILE_PASSES

#ifdef KILN_GENERIC_PASSES
// --- The reference backend: tile → linalg on memrefs → plain loops ---------------------------------------------------

def LowerToLinalg : Pass<"generic-lower-to-linalg", "::mlir::func::FuncOp"> {
  let summary = "gives every tile its own buffer and every operation a plain loop nest";
  let description = [{
    The reference backend, with which the fast pipeline is compared. No tile shares a buffer. Nothing is blocked, fused or
    vectorised. Buffers are `memref.alloca`; elementwise operations become `linalg.generic` on memrefs.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // KILN_GENERIC_PASSES

#ifdef KILN_CPU_PASSES
// --- The fast CPU pipeline: tile → loops over native vectors ----------------------------------------------------------

def SplitProducts : Pass<"cpu-split-products", "::mlir::func::FuncOp"> {
  let summary = "splits f32 operands into two bf16 where the precision bf16x3 permits it";
  let description = [{
    AMX multiplies bf16. So each f32 product becomes three bf16 products: large part times large part, and each large part times the
    small part of the other operand. Sums with small parts are omitted where they are not finite, as for an infinite operand.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def ForwardLoads : Pass<"cpu-forward-loads", "::mlir::func::FuncOp"> {
  let summary = "marks loads whose tile is read directly from memory where it is used";
  let description = [{
    A loaded tile is a value. It needs no copy if no write between the load and its last use may overlap its memory. Such a load gets
    the unit attribute `cpu.view`. All other loads copy the tile into scratch memory.
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
}

def PinCarriedTiles : Pass<"cpu-pin-carried-tiles", "::mlir::func::FuncOp"> {
  let summary = "decides which loop-carried tiles are updated in place";
  let description = [{
    A loop has one buffer for each loop-carried tile. If the old value has no later use in the body, the yielded value is computed
    directly in that buffer. `cpu.in_place` marks such operands. Otherwise the yield copies the value.
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
}

def FuseEpilogues : Pass<"cpu-fuse-epilogues", "::mlir::func::FuncOp"> {
  let summary = "finds stores that can run in the epilogue of a product";
  let description = [{
    Only stores may read the product, or the loop-carried accumulator, and nothing may access their memory in between. The stores then take
    each block of the accumulator directly from registers: in the product, or in the last iteration of the loop. `cpu.epilogue` on the
    product or the loop marks such results.

    ```mlir
    %y = scf.for … iter_args(%acc = %zero) -> (tensor<64x64xf32>) { … } {cpu.epilogue = array<i1: true>}
    tile.store %y, %c[%m, %n]
    ```
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">];
}

def SelectProducts : Pass<"cpu-select-products", "::mlir::func::FuncOp"> {
  let summary = "selects the instructions of each product";
  let description = [{
    `cpu.unit` names instructions that add several products of narrow operands to an accumulator at once. It is set if the CPU has
    them, and the types and the depth of the product fit. The operands of all other products are widened to the type of their
    accumulator. `cpu.flushes` marks roundings to bf16 whose result only such instructions read; they flush denormals to zero.

    ```mlir
    %0 = tile.dot %a, %b, %acc {cpu.unit = "bf16_pairs"} : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>
    %1 = tile.dot %x, %y, %acc : tensor<8x16xf16>, tensor<16x32xf16>, tensor<8x32xf32> // becomes
    %2 = arith.extf %x : tensor<8x16xf16> to tensor<8x16xf32> // and %3 of %y
    %1 = tile.dot %2, %3, %acc : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"bf16Pairs", "bf16-pairs", "bool", "false",
                        "the CPU adds pairs of products of bf16 (avx512_bf16), faster than it widens and multiplies them">,
                 Option<"i8Quads", "i8-quads", "bool", "false", "the CPU adds four products of i8 at a time (avx512_vnni)">,
                 Option<"tiles", "tiles", "bool", "false",
                        "the CPU multiplies tiles of bf16 and i8 (AMX): preferred to the others">];
}

def PlaceTiles : Pass<"cpu-place-tiles", "::mlir::func::FuncOp"> {
  let summary = "decides which tiles get scratch memory";
  let description = [{
    `cpu.scratch` on the definition of a tile gives it scratch memory. It is set on loads that must be copied, on tiles that are expensive
    to recompute, and on tiles that their reader needs in memory. Every other tile is computed where it is used. If an epilogue needs a tile
    in scratch memory, its mark is removed. A reshape whose vectors would cross rows reads a copy without gaps between rows (`cpu.dense`).
    Tiles in scratch memory with rows narrower than a vector are dense too. A transposed tile is in scratch memory, transposed block by
    block; products transpose operands while packing. A column (64, 1) that is a reshaped row (64) is computed as the row.

    ```mlir
    %0 = math.exp %x {cpu.scratch} : tensor<64x32xf32>   // read by two products
    %1 = tile.reshape %y {cpu.dense, cpu.scratch} : tensor<64x100xf32> -> tensor<64x100xf32> // read as tensor<6400xf32>
    %2 = tile.transpose %z [1, 0] {cpu.scratch} : tensor<64x32xf32> -> tensor<32x64xf32>
    ```
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">];
}

def PackOperands : Pass<"cpu-pack-operands", "::mlir::func::FuncOp"> {
  let summary = "decides from where the micro-kernel of a product reads its operands";
  let description = [{
    `cpu.left` says where the left operand is read: `scratch`, `view`, `panels` or `copy`. With `cpu.right_transposed`, the right operand is
    read by rows and transposed while it is packed. Its packing is hoisted out of `cpu.right_before` loops.

    ```mlir
    %0 = tile.dot %a, %b, %acc {cpu.left = "view", cpu.right_transposed} : …
    ```
  }];
  let dependentDialects = ["::kiln::lowering::cpu::CpuDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">,
                 Option<"registers", "registers", "OneOf<16, 32>", "32", "native vector registers">];
}

def LowerTiles : Pass<"cpu-lower-tiles", "::mlir::func::FuncOp"> {
  let summary = "lowers tiles to loops over native vectors and scratch memory";
  let description = [{
    Stores, reductions, products, loop-carried tiles and expensive values with several uses get loops. Everything else is computed
    where it is used. Neighbouring loops over one shape are fused. The attributes of the passes above decide what is in scratch
    memory, packed and fused. Where tiles may cross the ends of their views, loops are generated with and without masks.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::x86vector::X86VectorDialect", "::mlir::amx::AMXDialect"];
  let options = [Option<"vectorBits", "vector-bits", "OneOf<256, 512>", "512", "width of a native vector">,
                 Option<"registers", "registers", "OneOf<16, 32>", "32", "native vector registers">];
}

def EmulateAmx : Pass<"cpu-emulate-amx", "::mlir::ModuleOp"> {
  let summary = "emulates AMX instructions on CPUs with AVX-512";
  let description = [{
    A target such as `cpu:amx` tests code for AMX on machines without it. A tile becomes a vector of two dimensions, and a
    product of tiles a call of a function with loops over their elements.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::LLVM::LLVMDialect"];
}

// --- Shared by both CPU pipelines --------------------------------------------------------------------------------------

def LowerMath : Pass<"cpu-lower-math", "::mlir::func::FuncOp"> {
  let summary = "expands functions of floats, extrema and bf16 conversions to arithmetic";
  let description = [{
    For scalars and vectors. Functions become arithmetic, mostly polynomials, with the error bounds of dialect/NUMERICS.md. No call
    of a mathematical library is left. bf16 values have the type i16 from here on.
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
    Each `memref.alloca` becomes a `memref.view` of the last function argument, a `memref<?xi8>`, at an offset aligned to 64
    bytes. Buffers whose lifetimes do not overlap share bytes. The function attribute `cpu.scratch_bytes` is the size.
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

def LowerKernelArguments : Pass<"cpu-lower-kernel-arguments", "::mlir::ModuleOp"> {
  let summary = "turns the kernel into the C function that lowering/Abi.h describes";
  let description = [{
    Views are rebuilt from the packed argument block. `tile.program_id`, `tile.num_programs` and `tile.dim` read the block.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect"];
}

#endif // KILN_CPU_PASSES

#ifdef KILN_GPU_PASSES
// --- The GPU: tiles get layouts -----------------------------------------------------------------------------------------

def ChooseWarps : Pass<"gpu-choose-warps", "::mlir::func::FuncOp"> {
  let summary = "chooses the number of warps of a kernel whose config has none: `tile.warps` of the function";
  let description = [{
    A kernel gets four warps. It gets up to 16 if a thread would hold more than 48 words of live tiles, unless its config sets
    `min_ctas_per_sm`. With products the limit is 160 words, because fewer threads read fewer operands.
  }];
  let options = [Option<"groups", "groups", "bool", "false", "keep 16 rows per warp for products of warpgroups">];
}

def PadSorts : Pass<"gpu-pad-sorts", "::mlir::func::FuncOp"> {
  let summary = "pads sorts to powers of two, with all elements as results";
  let description = [{
    The elements are padded to the next power of two with the largest number. The first elements of the sorted tile are extracted.
    If at most a quarter of the elements is selected (top-k), blocks are sorted and merged (`simt.bitonic`) until one is left.

    ```mlir
    %0:2 = tile.sort %x axis 0 : tensor<100xi32> -> tensor<8xi32>, tensor<8xi32> // becomes
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
    Adjacent threads access adjacent elements. A thread accesses as many consecutive elements as one instruction moves: up to 16
    bytes, if strides, offsets and the view's alignment permit. `simt.layout` and `simt.vector` record the choice. `simt.ragged` means
    that the view may end within such a vector, because its extent is not known to be a multiple.

    ```mlir
    %0 = tile.load %x[%m, %k] : … -> tensor<64x64xf16> // becomes
    %0 = tile.load %x[%m, %k] {simt.layout = #simt.layout<64x64, reg [d1:1 d1:2 d1:4 …], …>, simt.vector = 8 : i64} : …
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect"];
}

def SelectInstructions : Pass<"gpu-select-instructions", "::mlir::func::FuncOp"> {
  let summary = "selects the instructions of products, and with them the layout of their accumulators";
  let description = [{
    Products of bf16, f16, i8, 8-bit floats, and of f32 that may be rounded, use the tensor cores, if the extents fill their
    fragments. All others are outer products in registers. `simt.layout` on the product is the layout of its accumulator. With
    `groups`, some products of bf16 and f16 also get `simt.wgmma`. There are two kinds. If only a loop adds to the accumulator and
    both operands are loaded in its iterations, a warpgroup reads both from shared memory. If only the right operand is loaded there,
    and each warp has its own rows, the left operand stays in registers.

    The rows, columns and terms of an instruction need not be adjacent in the tile. Adjacent columns of a row-major f32 B, for instance,
    cannot be transposed by ldmatrix. An instruction then takes every fourth column (i8: every second), so that a lane reads its elements as
    one vector. If the left operand of an f32 product is an accumulator, its terms are in the accumulator's order (`simt.chained`).
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect"];
  let options = [Option<"groups", "groups", "bool", "false", "whether warpgroups can multiply (wgmma)">];
}

def PropagateLayouts : Pass<"gpu-propagate-layouts", "::mlir::func::FuncOp"> {
  let summary = "gives every tile a layout";
  let description = [{
    The layouts that accesses and products request are propagated forwards along the operations, then backwards, each once. Where
    two layouts differ, a `simt.convert` is inserted. A tile computed only from constants and positions is recomputed in each
    requested layout. A small tile that several threads need is loaded again instead of a conversion through shared memory.

    ```mlir
    %0 = arith.addf %x, %y : tensor<64x64xf32> // becomes
    %1 = simt.convert %y : tensor<64x64xf32, #b> -> tensor<64x64xf32, #a>
    %0 = arith.addf %x, %1 : tensor<64x64xf32, #a>
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::arith::ArithDialect"];
}

def AdoptLayouts : Pass<"gpu-adopt-layouts", "::mlir::func::FuncOp"> {
  let summary = "loads and stores small tiles in the layouts of their users";
  let description = [{
    A small tile that is converted between lanes is loaded again in the requested layout, or stored in the layout that it has. This
    costs some memory traffic and saves synchronisation. Instead of other tiles, the narrower ones they depend on are converted.

    ```mlir
    %0 = tile.load %gamma[%c0] {simt.layout = #pairs, …} : memref<768xf32> -> tensor<768xf32, #pairs>
    %1 = simt.convert %0 : tensor<768xf32, #pairs> -> tensor<768xf32, #row> // becomes
    %1 = tile.load %gamma[%c0] {simt.layout = #row, …} : memref<768xf32> -> tensor<768xf32, #row>
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::arith::ArithDialect"];
}

def NarrowLoops : Pass<"gpu-narrow-loops", "::mlir::func::FuncOp"> {
  let summary = "counts with 32 bits where a loop's bounds fit";
  let description = [{
    A bound fits if it is a constant from 0 to 2^30, an extent of a view with `tile.fits_32`, or computed from these.

    ```mlir
    scf.for %k = %c0 to %end step %c64 : i64 { // becomes
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
  let summary = "pipelines loops with as many stages as fit in shared memory";
  let description = [{
    Runs the next four passes, up to `gpu-allocate-shared`. If they need too much shared memory, it first divides layout conversions into
    rounds, and then reduces the stages of loops, unless the kernel sets them. A persistent kernel copies the operands of the next tile
    early only if that takes no further shared memory.
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
  let options = [Option<"limit", "limit", "UpTo<1 << 30>", "166912", "bytes of shared memory that a program may use">,
                 Option<"capability", "capability", "UpTo<999>", "80", "compute capability of the GPU, times 10">];
}

def ScheduleCopies : Pass<"gpu-schedule-copies", "::mlir::func::FuncOp"> {
  let summary = "decides which operands of products are copied ahead to shared memory (software pipelining)";
  let description = [{
    A load in a loop is copied if its tile is an operand of a product and nothing writes its view. The loop gets as many slots (pipeline
    stages) as `tile.stages` says. Without that attribute it gets `stages` slots, or as many as fit. One slot changes nothing. A product
    with `simt.wgmma` reads operands from their slots. Loads after a loop of such products may move before it. SimtDialect.cpp has the
    attributes.

    ```mlir
    scf.for %k = … { %0 = tile.load %a[%m, %k] : … -> tensor<128x64xbf16, #loaded> // becomes
    scf.for %k = … {
      %0 = tile.load %a[%m, %k] {simt.engine = "cp.async", simt.slot = #shared, simt.copy_vector = 8, …} : …
    } {simt.slots = 3, simt.distance = 2}
    ```
  }];
  let options = [Option<"limit", "limit", "UpTo<1 << 30>", "166912", "bytes of shared memory that a program may use">,
                 Option<"stages", "stages", "UpTo<64>", "3", "slots for loops of kernels that do not set the number">,
                 Option<"capability", "capability", "UpTo<999>", "80", "compute capability of the GPU, times 10">];
}

def ExpandPipeline : Pass<"gpu-expand-pipeline", "::mlir::func::FuncOp"> {
  let summary = "makes the software pipeline that the attributes of gpu-schedule-copies state";
  let description = [{
    ```mlir
    scf.for %k = … { %0 = tile.load %a[%m, %k] {simt.engine = "cp.async", …} : …, %1 = simt.convert %0 : … // becomes
    simt.fetch %a[%m, %first] to %ring[%c0] slot [0, 3] by 8 in #shared …
    simt.commit_copies
    scf.for %k = … iter_args(%slot = %c0) { simt.wait_copies 1
      simt.fetch %a[%m, %later] to %ring[%free] slot [2, 3] by 8 in #shared if %isThere … // a group, too
      %1 = simt.read %ring[%at] slot [0, 3] by rows in #shared : … -> tensor<128x64xbf16, #operand>
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
  let options = [Option<"capability", "capability", "UpTo<999>", "80", "compute capability of the GPU, times 10">];
}

def ExpandExchanges : Pass<"gpu-expand-exchanges", "::mlir::func::FuncOp"> {
  let summary = "implements transfers between warps by writes to and reads from shared memory";
  let description = [{
    Such transfers are layout conversions for which shuffles within a warp are impossible or more expensive, reductions along an axis that
    several warps share, operands of outer products, and reshapes that move elements.

    ```mlir
    %0 = simt.convert %x : tensor<8x32xf32, #a> -> tensor<8x32xf32, #b> // becomes
    %1 = simt.buffer : memref<1024xi8, 3>
    simt.write %x, %1 by vectors in #simt.shared_layout<8x32xf32, d0 [128, 256, 512], d1 [4, 8, 16, 32, 64]> : …
    %0 = simt.read %1 by vectors in #simt.shared_layout<8x32xf32, d0 [128, 256, 512], d1 [4, 8, 16, 32, 64]> : …
    ```
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::scf::SCFDialect"];
  let options = [Option<"storeMatrix", "store-matrix", "bool", "false", "whether the GPU has stmatrix (from sm_90 on)">,
                 Option<"maxBytes", "max-bytes", "UpTo<1 << 30>", "1 << 30", "bytes of a layout conversion; larger ones take rounds">];
}

def AllocateShared : Pass<"gpu-allocate-shared", "::mlir::func::FuncOp"> {
  let summary = "places every buffer in the program's shared memory";
  let description = [{
    Buffers whose lifetimes do not overlap share bytes; some are in `idle` slots of a ring. The pass sets the `offset` of each buffer and
    the function's total, `simt.shared_bytes`. For the PTX, `simt.shared_parts` has offset, bytes and source line of each.
  }];
  let options = [Option<"limit", "limit", "UpTo<1 << 30>", "166912", "bytes that a program may use">];
}

def InsertBarriers : Pass<"gpu-insert-barriers", "::mlir::func::FuncOp"> {
  let summary = "inserts a barrier between accesses of one program that must not be reordered";
  let description = [{
    Such accesses are two of which one writes. In shared memory they have overlapping bytes; in global memory, different threads may access
    one element. A thread needs no barrier to read a tile that it wrote in the same layout. The text of a barrier names the hazard.

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
  let summary = "turns tiles into the vectors of elements that one thread holds";
  let description = [{
    The only pass from tiles to threads. A tile becomes a vector of the elements that its layout assigns to a thread. Loads, stores,
    reductions, products and conversions become operations of one thread, with addresses, predicates and shuffles.
  }];
  let dependentDialects = ["::kiln::simt::SimtDialect", "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect"];
}

def LowerMath : Pass<"gpu-lower-math", "::mlir::func::FuncOp"> {
  let summary = "expands functions of floats to arithmetic";
  let description = [{
    The polynomials are those of the CPU, with the error bounds of dialect/NUMERICS.md. A function with `tile.accuracy = "fast"`
    becomes an approximate instruction of the GPU. `rsqrt` does too, with a correction that keeps its bound:

    ```mlir
    %0 = math.exp2 %x {tile.accuracy = "fast"} : f32 // becomes
    %0 = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def LowerKernelArguments : Pass<"gpu-lower-kernel-arguments", "::mlir::ModuleOp"> {
  let summary = "turns the kernel into the entry function that lowering/Abi.h describes";
  let description = [{
    Each slot of the argument block becomes a parameter of 8 bytes. Operations such as `tile.dim` read them or special registers.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::arith::ArithDialect"];
}

def LowerToPtx : Pass<"gpu-lower-to-ptx", "::mlir::ModuleOp"> {
  let summary = "writes the operations of one thread as LLVM intrinsics and inline PTX";
  let description = [{
    ```mlir
    %0 = simt.ld global %address + 16 if %p else %other : vector<2xf32> : i64, vector<2xf32> // becomes
    %1 = llvm.inline_asm "mov.b32 $0, $4; … @$3 ld.global.v2.b32 {$0, $1}, [$2 + 16];" …
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // KILN_GPU_PASSES

#endif // KILN_LOWERING_PASSES_TD
