// The operations of one thread become LLVM's intrinsics and inline PTX.
// RUN: kiln-opt %s --split-input-file --gpu-lower-to-ptx | FileCheck %s

// A load under a predicate leaves its registers unchanged if it is false, so the other value is tied to them. Elements
// are loaded as words of 32 bits.
// CHECK-LABEL: @predicated
// CHECK: llvm.bitcast %arg2 : vector<4xf32> to vector<4xi32>
// CHECK: llvm.inline_asm has_side_effects "@$5 ld.global.v4.b32 {$0, $1, $2, $3}, [$4 + 16];", "=r,=r,=r,=r,l,b,0,1,2,3" %arg0, %arg1,
// CHECK: llvm.inline_asm has_side_effects "@$5 st.global.v4.b32 [$4 + -16], {$0, $1, $2, $3};", "r,r,r,r,l,b" {{.*}}, %arg0, %arg1 :
llvm.func @predicated(%a: i64, %p: i1, %other: vector<4xf32>) {
  %0 = simt.ld global %a + 16 if %p else %other : vector<4xf32> : i64, vector<4xf32>
  simt.st global %0, %a + -16 if %p : vector<4xf32>, i64
  llvm.return
}

// Read-only memory is loaded by ld.global.nc, which LLVM may move.
// CHECK-LABEL: @readonly
// CHECK: llvm.inline_asm "ld.global.nc.b32 $0, [$1];", "=r,l" %arg0 : (i64) -> i32
// CHECK-NOT: st.global
llvm.func @readonly(%a: i64) -> vector<2xbf16> {
  %0 = simt.ld global %a + 0 {readonly} : i64, vector<2xbf16>
  llvm.return %0 : vector<2xbf16>
}

// Matrices are vectors of words, even of one word. A store has the warp's predicate.
// CHECK-LABEL: @matrices
// CHECK: llvm.inline_asm has_side_effects "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4 + 512];", "=r,=r,=r,=r,r" %arg0
// CHECK: llvm.inline_asm has_side_effects "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {$0}, [$1];", "=r,r" %arg0
// CHECK: llvm.inline_asm has_side_effects "@$3 stmatrix.sync.aligned.m8n8.x2.shared.b16 [$2 + 16], {$0, $1};", "r,r,r,b"
// CHECK: llvm.inline_asm has_side_effects "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [$1], {$0};", "r,r"
llvm.func @matrices(%a: i32, %x: vector<2xi32>, %p: i1) -> vector<4xi32> {
  %0 = simt.ldmatrix %a + 512 : vector<4xi32>
  %1 = simt.ldmatrix %a + 0 transposed : vector<1xi32>
  simt.stmatrix %x, %a + 16 if %p : vector<2xi32>
  simt.stmatrix %1, %a + 0 transposed : vector<1xi32>
  llvm.return %0 : vector<4xi32>
}

// An address with a number of strides added.
// CHECK-LABEL: @address
// CHECK: llvm.inline_asm "{ .reg .b64 far; mul.wide.u32 far, $2, 48; add.s64 $0, $1, far; }", "=l,l,r" %arg0, %arg1
llvm.func @address(%base: i64, %stride: i32) -> i64 {
  %0 = simt.address %base + %stride * 48
  llvm.return %0 : i64
}

// Asynchronous copies: 16 bytes bypass the L1 cache. Bytes beyond the size are zeros.
// CHECK-LABEL: @copies
// CHECK: llvm.inline_asm has_side_effects "cp.async.cg.shared.global [$0 + 64], [$1 + 128], 16;", "r,l,~{memory}" %arg0, %arg1
// CHECK: llvm.inline_asm has_side_effects "@$3 cp.async.ca.shared.global [$0], [$1], 8, $2;", "r,l,r,b,~{memory}" %arg0, %arg1, %arg2, %arg3
// CHECK: llvm.inline_asm has_side_effects "{ .reg .b32 size; selp.b32 size, 16, 0, $2; cp.async.cg.shared.global [$0], [$1], 16, size; }", "r,l,b,~{memory}" %arg0, %arg1, %arg3
// CHECK: llvm.inline_asm has_side_effects "{ .reg .b32 size; selp.b32 size, $2, 0, $3; @$4 cp.async.ca.shared.global [$0], [$1], 4, size; }", "r,l,r,b,b,~{memory}" %arg0, %arg1, %arg2, %arg3, %arg3
// CHECK: llvm.inline_asm has_side_effects "cp.async.commit_group;", "~{memory}"
// CHECK: llvm.inline_asm has_side_effects "cp.async.wait_group 2;", "~{memory}"
llvm.func @copies(%to: i32, %from: i64, %size: i32, %p: i1) {
  simt.cp_async 16 to %to + 64 from %from + 128
  simt.cp_async 8 to %to + 0 from %from + 0 size %size if %p
  simt.cp_async 16 to %to + 0 from %from + 0 inside %p
  simt.cp_async 4 to %to + 0 from %from + 0 size %size inside %p if %p
  simt.commit_copies
  simt.wait_copies 2
  llvm.return
}

// Addresses of shared memory have 32 bits. A byte is in a 16-bit register. Two 64-bit words are a vector.
// CHECK-LABEL: @shared
// CHECK: llvm.inline_asm has_side_effects "ld.shared.b8 $0, [$1];", "=h,r" %arg0 : (i32) -> i16
// CHECK: llvm.inline_asm has_side_effects "ld.shared.v2.b64 {$0, $1}, [$2 + 16];", "=l,=l,r"
// CHECK: llvm.inline_asm has_side_effects "st.shared.b8 [$1], $0;", "h,r"
// CHECK: llvm.inline_asm has_side_effects "st.shared.v2.b64 [$2 + 16], {$0, $1};", "l,l,r"
// CHECK: llvm.inline_asm has_side_effects "st.shared.b16 [$1], $0;", "h,r"
llvm.func @shared(%a: i32, %x: vector<1xf16>) {
  %0 = simt.ld shared %a + 0 : i32, vector<1xi8>
  %1 = simt.ld shared %a + 16 : i32, vector<2xf64>
  simt.st shared %0, %a + 0 : vector<1xi8>, i32
  simt.st shared %1, %a + 16 : vector<2xf64>, i32
  simt.st shared %x, %a + 0 : vector<1xf16>, i32
  llvm.return
}

// An atomic addition with an unused result is `red`. A used result is 0 if the predicate is false.
// CHECK-LABEL: @atomics
// CHECK: llvm.inline_asm has_side_effects "@$2 red.global.add.f32 [$0 + 4], $1;", "l,f,b" %arg0, %arg1, %arg3
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i64)
// CHECK: llvm.inline_asm has_side_effects "@$3 atom.global.add.u64 $0, [$1 + 8], $2;", "=l,l,l,b,0" %arg0, %arg2, %arg3, %[[ZERO]]
// CHECK: llvm.inline_asm has_side_effects "red.global.add.u32 [$0], $1;", "l,r"
// CHECK: llvm.inline_asm has_side_effects "red.global.add.f64 [$0], $1;", "l,d"
llvm.func @atomics(%a: i64, %x: f32, %n: i64, %p: i1, %m: i32, %y: f64) -> i64 {
  %0 = simt.atomic_rmw add %x, %a + 4 if %p : f32
  %1 = simt.atomic_rmw add %n, %a + 8 if %p : i64
  %2 = simt.atomic_rmw add %m, %a + 0 : i32
  %3 = simt.atomic_rmw add %y, %a + 0 : f64
  llvm.return %1 : i64
}

// Atomics with a PTX instruction become that instruction; the others become loops of compare-and-exchange.
// CHECK-LABEL: @atomicKinds
// CHECK: "red.global.max.s32 [$0], $1;", "l,r"
// CHECK: "atom.global.exch.b32 $0, [$1], $2;", "=f,l,f"
// CHECK: "red.global.add.noftz.f16 [$0], $1;", "l,h"
// CHECK: "@$4 atom.global.cas.b64 $0, [$1 + 8], $2, $3;", "=l,l,l,l,b,0"
// CHECK: "{ .reg .pred %go; .reg .b32 %was, %now; @!$3 bra done; ld.relaxed.gpu.global.b32 $0, [$1]; again: mov.b32 %was, $0; min.f32 %now, %was, $2; atom.global.cas.b32 $0, [$1], %was, %now; setp.ne.b32 %go, $0, %was; @%go bra again; done: }", "=&f,l,f,b,0"
// CHECK: cvt.rn.bf16.f32 %now, %x; atom.global.cas.b16
// CHECK: "@$2 ld.relaxed.gpu.global.b32 $0, [$1];"
// CHECK: "st.relaxed.gpu.global.b32 [$1], $0;"
llvm.func @atomicKinds(%a: i64, %x: f32, %n: i64, %p: i1, %m: i32, %h: f16, %b: bf16, %v: vector<1xf32>) -> f32 {
  %0 = simt.atomic_rmw max %m, %a + 0 : i32
  %1 = simt.atomic_rmw exchange %x, %a + 0 : f32
  %2 = simt.atomic_rmw add %h, %a + 0 : f16
  %3 = simt.atomic_cas %n to %n, %a + 8 if %p : i64
  %4 = simt.atomic_rmw min %x, %a + 0 if %p : f32
  %5 = simt.atomic_rmw add %b, %a + 0 : bf16
  %6 = simt.ld global %a + 0 if %p else %v : vector<1xf32> {strong} : i64, vector<1xf32>
  simt.st global %6, %a + 0 {strong} : vector<1xf32>, i64
  llvm.return %1 : f32
}

// An atomic with an order has it in its PTX, and LLVM moves no access across it. `red` can release, but not acquire, so
// an atomic that acquires or is followed by a fence is `atom`. In a loop, the exchange has the order.
// CHECK-LABEL: @orders
// CHECK: "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l,~{memory}"
// CHECK: "st.release.gpu.global.b32 [$1], $0;", "r,l,~{memory}"
// CHECK: "red.release.gpu.global.add.u32 [$0], $1;", "l,r,~{memory}"
// CHECK: "@$3 atom.acquire.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,b,0,~{memory}"
// CHECK: "atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"
// CHECK: "atom.release.gpu.global.exch.b32 $0, [$1], $2;", "=r,l,r,~{memory}"
// CHECK: "atom.global.add.u32 $0, [$1], $2;", "=r,l,r"
// CHECK: "atom.acquire.gpu.global.cas.b32 $0, [$1 + 8], $2, $3;", "=r,l,r,r,~{memory}"
// CHECK: ld.relaxed.gpu.global.b32 $0, [$1]; {{.*}}atom.acq_rel.gpu.global.cas.b32 $0{{.*}}, "=&f,l,f,~{memory}"
llvm.func @orders(%a: i64, %x: f32, %p: i1, %m: i32) {
  %0 = simt.ld global %a + 0 {simt.order = "acquire", strong} : i64, vector<1xf32>
  simt.st global %0, %a + 0 {simt.order = "release", strong} : vector<1xf32>, i64
  %1 = simt.atomic_rmw add %m, %a + 0 {simt.order = "release"} : i32
  %2 = simt.atomic_rmw add %m, %a + 0 if %p {simt.order = "acquire"} : i32
  %3 = simt.atomic_rmw add %m, %a + 0 {simt.order = "acq_rel"} : i32
  %4 = simt.atomic_rmw exchange %m, %a + 0 {simt.order = "release"} : i32
  %5 = simt.atomic_rmw add %m, %a + 0 {simt.fenced} : i32
  %6 = simt.atomic_cas %m to %m, %a + 8 {simt.order = "acquire"} : i32
  %7 = simt.atomic_rmw max %x, %a + 0 {simt.order = "acq_rel"} : f32
  llvm.return
}

// A scope is written with the order, also for a relaxed access. The default is the GPU.
// CHECK-LABEL: @scopes
// CHECK: "ld.acquire.sys.global.b32 $0, [$1];", "=r,l,~{memory}"
// CHECK: "st.relaxed.cta.global.b32 [$1], $0;", "r,l"
// CHECK: "red.relaxed.cta.global.add.u32 [$0], $1;", "l,r"
// CHECK: "atom.acq_rel.sys.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"
// CHECK: "atom.relaxed.sys.global.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r"
// CHECK: ld.relaxed.cta.global.b32 $0, [$1]; {{.*}}atom.release.cta.global.cas.b32 $0{{.*}}, "=&f,l,f,~{memory}"
// CHECK: "fence.acq_rel.cta;", "~{memory}"
// CHECK: "fence.acq_rel.sys;", "~{memory}"
llvm.func @scopes(%a: i64, %x: f32, %m: i32) {
  %0 = simt.ld global %a + 0 {simt.order = "acquire", strong, tile.scope = "system"} : i64, vector<1xf32>
  simt.st global %0, %a + 0 {strong, tile.scope = "block"} : vector<1xf32>, i64
  %1 = simt.atomic_rmw add %m, %a + 0 {tile.scope = "block"} : i32
  %2 = simt.atomic_rmw add %m, %a + 0 {simt.order = "acq_rel", tile.scope = "system"} : i32
  %3 = simt.atomic_cas %m to %m, %a + 0 {tile.scope = "system"} : i32
  %4 = simt.atomic_rmw max %x, %a + 0 {simt.order = "release", tile.scope = "block"} : f32
  simt.fence {tile.scope = "block"}
  simt.fence {tile.scope = "system"}
  llvm.return
}

// A cache hint is an L2 policy, and for L1 a modifier if the instruction has one.
// CHECK-LABEL: @caches
// CHECK: "{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0; @$2 ld.global.nc.L1::no_allocate.L2::cache_hint.b32 $0, [$1 + 16], policy; }", "=r,l,b,0"
// CHECK: "{ .reg .b64 policy; createpolicy.fractional.L2::evict_last.b64 policy, 1.0; st.global.L1::evict_last.L2::cache_hint.b32 [$1], $0, policy; }", "r,l"
// CHECK: "{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0; cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, policy; }", "r,l,~{memory}"
// CHECK: evict_last.b64 policy, 1.0; { .reg .b32 size; selp.b32 size, $2, 0, $3; cp.async.cg.shared.global.L2::cache_hint [$0], [$1], 16, size, policy; } }"
llvm.func @caches(%a: i64, %to: i32, %p: i1, %n: i32, %v: vector<1xf32>) {
  %0 = simt.ld global %a + 16 if %p else %v : vector<1xf32> {readonly, tile.cache = "stream"} : i64, vector<1xf32>
  simt.st global %0, %a + 0 {tile.cache = "keep"} : vector<1xf32>, i64
  simt.cp_async 16 to %to + 0 from %a + 0 {tile.cache = "stream"}
  simt.cp_async 16 to %to + 0 from %a + 0 size %n inside %p {tile.cache = "keep"}
  llvm.return
}

// CHECK-LABEL: @threads
// CHECK: llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.tid.x"
// CHECK: %[[MASK:.*]] = llvm.mlir.constant(16 : i32)
// CHECK: %[[ALL:.*]] = llvm.mlir.constant(-1 : i32)
// CHECK: %[[LAST:.*]] = llvm.mlir.constant(31 : i32)
// CHECK: llvm.call_intrinsic "llvm.nvvm.shfl.sync.bfly.i32"(%[[ALL]], %arg0, %[[MASK]], %[[LAST]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.shfl.sync.idx.i32"({{.*}}, %arg0, %arg1, {{.*}})
// CHECK: llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"
// CHECK: llvm.inline_asm has_side_effects "fence.acq_rel.gpu;", "~{memory}"
llvm.func @threads(%x: i32, %lane: i32) -> (i32) {
  %0 = simt.thread {warps = 4 : i64}
  %1 = simt.shuffle %x xor 16 : i32
  %2 = simt.shuffle_from %x, %lane : i32
  simt.barrier "global memory written, then read"
  simt.fence
  llvm.return %0 : i32
}

// The format of 8-bit floats is in the intrinsic's name, for each operand.
// CHECK-LABEL: @byteProducts
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32)
llvm.func @byteProducts(%a: vector<16xi8>, %b: vector<8xi8>, %c: vector<4xf32>) -> vector<4xf32> {
  %0 = simt.mma %a, %b, %c {tile.factors = [f8E4M3FN, f8E5M2]} : vector<16xi8>, vector<8xi8>, vector<4xf32>
  llvm.return %0 : vector<4xf32>
}

// Tensor cores take 32-bit words, pairs of f16, and f32 scaled up by the mean error of their truncation to tf32.
// CHECK-LABEL: @products
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"({{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32)
// CHECK: %[[LARGER:.*]] = llvm.mlir.constant(1.00034618 : f32)
// CHECK-NEXT: llvm.fmul %{{.*}}, %[[LARGER]] : f32
// CHECK-NEXT: llvm.bitcast {{.*}} : f32 to i32
// CHECK-COUNT-5: llvm.fmul
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.s8"({{.*}}) : (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
llvm.func @products(%a: vector<8xbf16>, %b: vector<4xbf16>, %c: vector<4xf32>, %d: vector<8xf16>, %e: vector<4xf16>,
                    %f: vector<4xf32>, %g: vector<2xf32>, %h: vector<16xi8>, %i: vector<8xi8>, %j: vector<4xi32>) {
  %0 = simt.mma %a, %b, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
  %1 = simt.mma %d, %e, %c : vector<8xf16>, vector<4xf16>, vector<4xf32>
  %2 = simt.mma %f, %g, %c : vector<4xf32>, vector<2xf32>, vector<4xf32>
  %3 = simt.mma %h, %i, %j : vector<16xi8>, vector<8xi8>, vector<4xi32>
  llvm.return
}

// -----

// Shared memory up to 48 KiB is a variable of that size.
// CHECK: llvm.mlir.global internal @kiln_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<49152 x i8>
// CHECK-LABEL: @static
// CHECK: llvm.mlir.addressof @kiln_shared : !llvm.ptr<3>
llvm.func @static() -> i32 {
  %0 = simt.shared_base {bytes = 49152 : i64}
  llvm.return %0 : i32
}

// -----

// A larger size is set at the launch, so the variable has no size.
// CHECK: llvm.mlir.global external @kiln_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: @dynamic
llvm.func @dynamic() -> i32 {
  %0 = simt.shared_base {bytes = 49153 : i64}
  llvm.return %0 : i32
}

// -----

// The console is one zero-initialised variable of the module. One thread writes a report, under a lock.
// CHECK: llvm.mlir.global external @kiln_console() {addr_space = 1 : i32, alignment = 8 : i64}
// CHECK: llvm.mlir.zero
// CHECK-NOT: llvm.mlir.global
// CHECK-LABEL: @console
// CHECK: llvm.mlir.addressof @kiln_console : !llvm.ptr<1>
// CHECK: llvm.inline_asm has_side_effects "{{.*}}mov.u32 %held, %tid.x; setp.eq.and.u32 %told, %held, 0, $3;{{.*}}atom.acquire.gpu.global.cas.b32 %held, [$0 + 8], 0, 1;{{.*}}atom.release.gpu.global.exch.b32 %held, [$0 + 8], 0;{{.*}}", "l,l,l,b,n,n,~{memory}"
llvm.func @console(%element: i64, %program: i64, %p: i1) -> i64 {
  simt.report element %element of %program message 3 where 4 if %p
  %0 = simt.console : i64
  llvm.return %0 : i64
}

// -----

// CHECK-LABEL: llvm.func @pinned
// CHECK: llvm.inline_asm has_side_effects "", "=f,=f,0,1,~{memory}"
llvm.func @pinned(%a: vector<2xf32>) -> vector<2xf32> {
  %0 = simt.pin %a : vector<2xf32>
  llvm.return %0 : vector<2xf32>
}

// An f32 is split into the large part that tensor cores read and the remainder, which is scaled up, too.
// CHECK-LABEL: llvm.func @parts
// CHECK: %[[LARGER:.*]] = llvm.fmul %[[X:.*]], %{{.*}} : f32
// CHECK: %[[LARGE:.*]] = llvm.bitcast %[[LARGER]] : f32 to i32
// CHECK: %[[KEPT:.*]] = llvm.mlir.constant(-8192 : i32)
// CHECK: %[[CUT:.*]] = llvm.and %[[LARGE]], %[[KEPT]] : i32
// CHECK: %[[SEEN:.*]] = llvm.bitcast %[[CUT]] : i32 to f32
// CHECK: %[[REST:.*]] = llvm.fsub %[[X]], %[[SEEN]] : f32
// CHECK: llvm.fmul %[[REST]], %{{.*}} : f32
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"
// CHECK: %[[PAIR:.*]] = llvm.fptrunc %[[XY:.*]] : vector<2xf32> to vector<2xbf16>
// CHECK: %[[WIDE:.*]] = llvm.fpext %[[PAIR]] : vector<2xbf16> to vector<2xf32>
// CHECK: %[[RESTS:.*]] = llvm.fsub %[[XY]], %[[WIDE]] : vector<2xf32>
// CHECK: llvm.fptrunc %[[RESTS]] : vector<2xf32> to vector<2xbf16>
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"
llvm.func @parts(%a: vector<4xf32>, %b: vector<2xf32>, %c: vector<8xf32>, %d: vector<4xf32>) {
  %0 = simt.mma small of %a, large of %b, %d : vector<4xf32>, vector<2xf32>, vector<4xf32>
  %1 = simt.mma small of %c, large of %d, %d : vector<8xf32>, vector<4xf32>, vector<4xf32>
  llvm.return
}

// -----

// The accumulator is tied to the registers of wgmma, of its fence and of its wait. Shared memory is aligned to a period
// of the swizzle. A proxy fence after the wait makes copied data visible to wgmma.
// CHECK: llvm.mlir.global internal @kiln_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: @groups
// CHECK: llvm.inline_asm has_side_effects "cp.async.wait_group 2; fence.proxy.async.shared::cta;", "~{memory}" : () -> ()
// CHECK: llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;", "=f,=f,=f,=f,0,1,2,3,~{memory}" %{{.*}} : (f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: llvm.inline_asm has_side_effects "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, $8, $9, 1, 1, 1, 0, 1;", "=f,=f,=f,=f,0,1,2,3,l,l,~{memory}"
// CHECK: llvm.inline_asm has_side_effects "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {$0, $1, $2, $3}, $8, $9, 1, 1, 1, 1, 0;"
// CHECK: llvm.inline_asm has_side_effects "wgmma.commit_group.sync.aligned;", "~{memory}"
// CHECK: llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 1;", "=f,=f,=f,=f,0,1,2,3,~{memory}"
llvm.func @groups(%a: i64, %b: i64, %sums: vector<4xf32>) -> vector<4xf32> {
  %base = simt.shared_base {bytes = 4096 : i64}
  simt.wait_copies 2 shown
  %0 = simt.wgmma_fence %sums : vector<4xf32>
  %1 = simt.wgmma bf16 %a, %b transposed, %0 : vector<4xf32>
  %2 = simt.wgmma f16 %a transposed, %b, %1 : vector<4xf32>
  simt.wgmma_commit
  %3 = simt.wgmma_wait 1, %2 : vector<4xf32>
  llvm.return %3 : vector<4xf32>
}

// -----

// Rows in registers: fence, products and commit are one inline assembly. An accumulator that begins at 0 has registers
// of its own, which the first product does not read.
// CHECK: llvm.mlir.global internal @kiln_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK-LABEL: @rows
// CHECK: llvm.inline_asm has_side_effects "{ .reg .b64 b<2>; .reg .pred adds; add.u64 b1, $16, 2; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, $16, 1, 1, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$12, $13, $14, $15}, b1, 1, 1, 1, 0; wgmma.commit_group.sync.aligned; }", "=f,=f,=f,=f,0,1,2,3,r,r,r,r,r,r,r,r,l,~{memory}"
// CHECK: llvm.inline_asm has_side_effects "{ .reg .b64 b<2>; .reg .pred adds; setp.ne.u64 adds, $12, $12; add.u64 b1, $12, 64; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$4, $5, $6, $7}, $12, adds, 1, 1, 1; wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {$0, $1, $2, $3}, {$8, $9, $10, $11}, b1, 1, 1, 1, 1; {{.*}}", "=&f,=&f,=&f,=&f,r,r,r,r,r,r,r,r,l,~{memory}"
llvm.func @rows(%a: vector<16xbf16>, %b: i64, %sums: vector<4xf32>) -> vector<4xf32> {
  %base = simt.shared_base {bytes = 4096 : i64}
  %0 = simt.wgmma_rows %a, %b steps [0, 2] plus %sums : vector<4xf32> : vector<16xbf16> -> vector<4xf32>
  %1 = simt.wgmma_rows %a, %b transposed steps [0, 64] : vector<16xbf16> -> vector<4xf32>
  llvm.return %1 : vector<4xf32>
}
