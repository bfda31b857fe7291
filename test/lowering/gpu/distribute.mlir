// Tiles become vectors of the values that one thread holds. Accesses become a thread's addresses and predicates.
// RUN: kiln-opt %s --split-input-file --gpu-distribute | FileCheck %s

#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>

// A thread's position is composed of its register, lane and warp. Known numbers fold: here 2 · lane + 64 · warp + {0,
// 1}.
// CHECK-LABEL: func @positions
// CHECK: %[[THREAD:.*]] = simt.thread {warps = 4 : i64}
// CHECK: %[[LANE:.*]] = arith.andi %[[THREAD]], %c31
// CHECK: %[[WARP:.*]] = arith.shrui %[[THREAD]], %c5
// CHECK: %[[LANES:.*]] = arith.andi %[[LANE]], %c31
// CHECK: %[[L:.*]] = arith.shli %[[LANES]], %c1_i32
// CHECK: %[[WARPS:.*]] = arith.andi %[[WARP]], %c3_i32
// CHECK: %[[W:.*]] = arith.shli %[[WARPS]], %c6_i32
// CHECK: %[[SHARE:.*]] = arith.ori %[[L]], %[[W]]
// CHECK: %[[KNOWN:.*]] = arith.constant dense<[0, 1]> : vector<2xi32>
// CHECK: %[[ALL:.*]] = vector.broadcast %[[SHARE]] : i32 to vector<2xi32>
// CHECK: arith.addi %[[KNOWN]], %[[ALL]] : vector<2xi32>
func.func @positions() attributes {tile.kernel} {
  %0 = tile.iota : tensor<256xi32, #pairs>
  return
}

// Elementwise operations, loops and branches are unchanged, with vectors.
// CHECK-LABEL: func @elementwise
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : vector<2xf32>
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[X:.*]] = %[[ONE]]) -> (vector<2xf32>)
// CHECK: %[[NEXT:.*]] = arith.addf %[[X]], %[[X]] : vector<2xf32>
// CHECK: scf.yield %[[NEXT]] : vector<2xf32>
// CHECK: scf.if {{.*}} -> (vector<2xf32>) {
// CHECK: scf.yield %[[ONE]]
// CHECK: } else {
// CHECK: scf.yield %[[SUM]]
func.func @elementwise(%n: i64, %p: i1) attributes {tile.kernel} {
  %one = arith.constant dense<1.0> : tensor<256xf32, #pairs>
  %0 = scf.for %i = %n to %n step %n iter_args(%x = %one) -> (tensor<256xf32, #pairs>) : i64 {
    %1 = arith.addf %x, %x : tensor<256xf32, #pairs>
    scf.yield %1 : tensor<256xf32, #pairs>
  }
  %2 = scf.if %p -> tensor<256xf32, #pairs> {
    scf.yield %one : tensor<256xf32, #pairs>
  } else {
    scf.yield %0 : tensor<256xf32, #pairs>
  }
  return
}

#halves = #simt.layout<256, reg [d0:1 d0:128], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64]>

// Vectors of two elements are wholly inside or outside: one predicate each, and one address for all, 512 bytes apart.
// CHECK-LABEL: func @vectors
// CHECK: %[[EXTENT:.*]] = tile.dim %arg0, 0
// CHECK: arith.minsi %arg1, %[[EXTENT]]
// CHECK: %[[PAD:.*]] = arith.constant dense<0xFF800000> : vector<2xf32>
// CHECK: %[[LOW:.*]] = simt.ld global %[[ADDRESS:.*]] + 0 if %{{.*}} else %[[PAD]] : vector<2xf32> : i64, vector<2xf32>
// CHECK: %[[HIGH:.*]] = simt.ld global %[[ADDRESS]] + 512 if %{{.*}} else %[[PAD]] : vector<2xf32> : i64, vector<2xf32>
// CHECK-NOT: simt.ld
// CHECK-COUNT-2: simt.st global {{.*}} if %{{.*}} : vector<2xf32>, i64
// CHECK-NOT: simt.st
// CHECK: return
func.func @vectors(%v: memref<?xf32>, %n: i64) attributes {tile.kernel, tile.warps = 2 : i64} {
  %0 = tile.load %v[%n] pad neg_inf {simt.vector = 2 : i64} : memref<?xf32> -> tensor<256xf32, #halves>
  tile.store %0, %v[%n] {simt.vector = 2 : i64} : tensor<256xf32, #halves>, memref<?xf32>
  return
}

#quads = #simt.layout<8x64, reg [d1:1 d1:2 d0:4], lane [d1:4 d1:8 d1:16 d1:32 d0:1], warp [d0:2]>

// The view may end within a vector. One comparison for each vector tests whether it is whole, below the last multiple
// of four inside. The partial vector follows in a branch that all threads test, and one for the thread that holds it.
// Each of its elements has a predicate; at most three are inside. A load gives the others the vector's value.
// CHECK-LABEL: func @ragged
// CHECK: %[[REST:.*]] = arith.andi %[[HIGH:.*]], %c3_i32
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %[[REST]], %c0_i32
// CHECK: %[[HERE:.*]] = arith.cmpi ult, %[[HIGH]], %c64_i32
// CHECK: %[[CUT:.*]] = arith.andi %[[SOME]], %[[HERE]]
// CHECK: %[[DOWN:.*]] = arith.andi %[[HIGH]], %c-4_i32
// CHECK: %[[OWN:.*]] = arith.subi %[[DOWN]], %{{.*}} overflow<nsw>
// CHECK: %[[BELOW:.*]] = arith.cmpi sgt, %[[OWN]], %c0_i32
// CHECK-COUNT-2: simt.ld global %{{.*}} if %{{.*}} else %{{.*}} : vector<4xf32> : i64, vector<4xf32>
// CHECK: %[[BOTH:.*]]:2 = scf.if %[[CUT]] -> (vector<4xf32>, vector<4xf32>) {
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[OWN]], %c0_i32
// CHECK: scf.if %[[MINE]] -> (vector<4xf32>, vector<4xf32>) {
// CHECK: arith.cmpi sgt, %[[REST]], %c0_i32
// CHECK: simt.ld global %[[ADDRESS:.*]] + 0 if %{{.*}} else %{{.*}} : vector<1xf32> : i64, vector<1xf32>
// CHECK: arith.cmpi sgt, %[[REST]], %c1_i32
// CHECK: simt.ld global %[[ADDRESS]] + 4 if
// CHECK: arith.cmpi sgt, %[[REST]], %c2_i32
// CHECK: simt.ld global %[[ADDRESS]] + 8 if
// CHECK-COUNT-3: simt.ld {{.*}} : vector<1xf32> : i64, vector<1xf32>
// CHECK-NOT: simt.ld
// CHECK-COUNT-2: simt.st global %{{.*}} if %{{.*}} : vector<4xf32>, i64
// CHECK: scf.if
// CHECK: scf.if
// CHECK-COUNT-6: simt.st global %{{.*}} if %{{.*}} : vector<1xf32>, i64
// CHECK-NOT: simt.st
// CHECK: return
func.func @ragged(%v: memref<?x?xf32, strided<[?, 1]>>, %w: memref<?x?xf32, strided<[?, 1]>>, %m: i64)
    attributes {tile.kernel, tile.warps = 2 : i64} {
  %c64 = arith.constant 64 : i64
  %n = arith.muli %m, %c64 : i64
  %0 = tile.load %v[%m, %n] {simt.ragged, simt.vector = 4 : i64} : memref<?x?xf32, strided<[?, 1]>> -> tensor<8x64xf32, #quads>
  tile.store %0, %w[%m, %n] {simt.ragged, simt.vector = 4 : i64} : tensor<8x64xf32, #quads>, memref<?x?xf32, strided<[?, 1]>>
  return
}

// -----

#halves = #simt.layout<64, reg [d0:1 d0:2 d0:4], lane [d0:8 d0:16 d0:32 * *], warp []>

// If the extent is known, so is the partial vector: one element of 8. The branch yields words.
// CHECK-LABEL: func @rest
// CHECK: %[[VECTOR:.*]] = simt.ld global {{.*}} : i64, vector<4xi32>
// CHECK: scf.if %{{.*}} -> (vector<4xi32>) {
// CHECK: scf.if %{{.*}} -> (vector<4xi32>) {
// CHECK: %[[PARTS:.*]] = vector.bitcast %[[VECTOR]] : vector<4xi32> to vector<8xbf16>
// CHECK: simt.ld global %{{.*}} + 0 {readonly} : i64, vector<1xbf16>
// CHECK-NOT: simt.ld
// CHECK: return
func.func @rest(%v: memref<50257xbf16>, %p: i64) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c64 = arith.constant 64 : i64
  %n = arith.muli %p, %c64 : i64
  %0 = tile.load %v[%n] {simt.ragged, simt.vector = 8 : i64} : memref<50257xbf16> -> tensor<64xbf16, #halves>
  return
}

// -----

#halves = #simt.layout<256, reg [d0:1 d0:128], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64]>

// If a view's extents are small, the distance to its end is one subtraction. Negative values stay negative in 32 bits.
// CHECK-LABEL: func @small
// CHECK: %[[EXTENT:.*]] = tile.dim %arg0, 0
// CHECK: %[[LEFT:.*]] = arith.subi %[[EXTENT]], %[[BEGIN:.*]] : i64
// CHECK: %[[LOW:.*]] = arith.trunci %[[LEFT]] : i64 to i32
// CHECK: %[[SIGN:.*]] = arith.shrsi %[[LEFT]], %c63
// CHECK: %[[HIGH:.*]] = arith.trunci %[[SIGN]] : i64 to i32
// CHECK: arith.ori %[[LOW]], %[[HIGH]] : i32
// CHECK-NOT: arith.minsi
// CHECK-NOT: arith.maxsi
// CHECK: return
func.func @small(%v: memref<?xf32> {tile.fits_32}) attributes {tile.kernel, tile.warps = 2 : i64} {
  %c256 = arith.constant 256 : i64
  %program = tile.program_id 0
  %n = arith.divui %program, %c256 : i64
  %0 = tile.load %v[%n] {simt.vector = 2 : i64} : memref<?xf32> -> tensor<256xf32, #halves>
  return
}

// The program's number times a constant is computed in 32 bits. The number is limited so that the position is still
// past the end of every such view: 5242880 · 256 + 4 is more than 2³⁰. The address then takes one multiplication.
// CHECK-LABEL: func @programs
// CHECK: %[[EXTENT:.*]] = tile.dim %arg0, 0
// CHECK: %[[NUMBER:.*]] = arith.minui %{{.*}}, %c5242880_i64
// CHECK: %[[NARROW:.*]] = arith.trunci %[[NUMBER]] : i64 to i32
// CHECK: %[[PRODUCT:.*]] = arith.muli %[[NARROW]], %c256_i32
// CHECK: %[[BEGIN:.*]] = arith.addi %[[PRODUCT]], %
// CHECK: %[[END:.*]] = arith.trunci %[[EXTENT]] : i64 to i32
// CHECK: arith.subi %[[END]], %[[BEGIN]] overflow<nsw> : i32
// CHECK: %[[WIDE:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: arith.muli %[[WIDE]], %c4_i64
// CHECK: return
func.func @programs(%v: memref<?xf32> {tile.fits_32}) attributes {tile.kernel, tile.warps = 2 : i64} {
  %c4 = arith.constant 4 : i64
  %c256 = arith.constant 256 : i64
  %program = tile.program_id 0
  %m = arith.muli %program, %c256 : i64
  %n = arith.addi %m, %c4 : i64
  %0 = tile.load %v[%n] {simt.vector = 2 : i64} : memref<?xf32> -> tensor<256xf32, #halves>
  return
}

#row = #simt.layout<1x64, reg [d1:1], lane [d1:2 d1:4 d1:8 d1:16 d1:32], warp []>

// For an extent of 1, one unsigned comparison tests the offset, in 32 bits if the view's extents fit.
// CHECK-LABEL: func @rows
// CHECK: %[[ROW:.*]] = arith.extsi %arg2 : i32 to i64
// CHECK: %[[ROWS:.*]] = tile.dim %arg0, 0
// CHECK: %[[NARROW:.*]] = arith.trunci %[[ROW]] : i64 to i32
// CHECK: %[[COUNT:.*]] = arith.trunci %[[ROWS]] : i64 to i32
// CHECK: arith.cmpi ult, %[[NARROW]], %[[COUNT]] : i32
// CHECK: %[[OTHERS:.*]] = tile.dim %arg1, 0
// CHECK: arith.cmpi ult, %[[ROW]], %[[OTHERS]] : i64
// CHECK: return
func.func @rows(%v: memref<?x64xf32> {tile.fits_32}, %w: memref<?x64xf32>, %i: i32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %row = arith.extsi %i : i32 to i64
  %0 = tile.load %v[%row, %c0] {simt.vector = 2 : i64} : memref<?x64xf32> -> tensor<1x64xf32, #row>
  %1 = tile.load %w[%row, %c0] {simt.vector = 2 : i64} : memref<?x64xf32> -> tensor<1x64xf32, #row>
  return
}

#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>

// A tile that is known to be inside its view needs no predicate. Loads of memory that the kernel does not write are
// readonly.
// CHECK-LABEL: func @inside
// CHECK: simt.ld global %{{.*}} + 0 {readonly} : i64, vector<2xf32>
// CHECK: simt.ld global %{{.*}} + 0 : i64, vector<2xf32>
// CHECK: simt.st global %{{.*}}, %{{.*}} + 0 : vector<2xf32>, i64
func.func @inside(%v: memref<512xf32>, %w: memref<512xf32>) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %n = arith.constant 256 : i64
  %0 = tile.load %v[%n] {simt.vector = 2 : i64} : memref<512xf32> -> tensor<256xf32, #pairs>
  %1 = tile.load %w[%n] {simt.vector = 2 : i64} : memref<512xf32> -> tensor<256xf32, #pairs>
  tile.store %0, %w[%n] {simt.vector = 2 : i64} : tensor<256xf32, #pairs>, memref<512xf32>
  return
}

// One element further, it may reach past the end.
// CHECK-LABEL: func @outside
// CHECK: simt.ld global %{{.*}} + 0 if
func.func @outside(%v: memref<512xf32>) attributes {tile.kernel} {
  %n = arith.constant 257 : i64
  %0 = tile.load %v[%n] : memref<512xf32> -> tensor<256xf32, #pairs>
  return
}

#rows = #simt.layout<2x64, reg [d0:1 d1:32], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [* *]>

// Each row of unknown stride has its own address; elements along it have displacements.
// CHECK-LABEL: func @strides
// CHECK: memref.extract_strided_metadata %arg0
// CHECK: simt.ld global %[[FIRST:.*]] + 0 if
// CHECK: %[[SECOND:.*]] = arith.addi %[[FIRST]], %
// CHECK: simt.ld global %[[SECOND]] + 0 if
// CHECK: simt.ld global %[[FIRST]] + 128 if
// CHECK: simt.ld global %[[SECOND]] + 128 if
func.func @strides(%v: memref<?x?xf32, strided<[?, 1]>>, %m: i64, %n: i64) attributes {tile.kernel} {
  %0 = tile.load %v[%m, %n] : memref<?x?xf32, strided<[?, 1]>> -> tensor<2x64xf32, #rows>
  return
}

#numbers = #simt.layout<2, reg [d0:1], lane [* * * * *], warp [* *]>

// A gathered row is at the position that its index gives. A row outside the view, on either side, is padding: the
// comparison is unsigned.
// CHECK-LABEL: func @gather
// CHECK: %[[ROWS:.*]] = tile.dim %arg0, 0
// CHECK: %[[ROW:.*]] = arith.extsi %{{.*}} : i32 to i64
// CHECK: arith.cmpi ult, %[[ROW]], %[[ROWS]] : i64
// CHECK-COUNT-4: simt.ld global
func.func @gather(%v: memref<?x64xf32>, %r: i32, %n: i64) attributes {tile.kernel} {
  %rows = tile.splat %r : i32 -> tensor<2xi32, #numbers>
  %0 = tile.gather %v[%rows, %n] : memref<?x64xf32>, tensor<2xi32, #numbers> -> tensor<2x64xf32, #rows>
  return
}

#same = #simt.layout<16, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp [* *]>

// If several threads hold an element, the one whose other bits are 0 stores it.
// CHECK-LABEL: func @owner
// CHECK: %[[LANE_BIT:.*]] = arith.andi %[[LANE:.*]], %c16_i32
// CHECK: %[[FIRST_LANE:.*]] = arith.cmpi eq, %[[LANE_BIT]], %c0_i32
// CHECK: %[[WARP_BITS:.*]] = arith.andi %{{.*}}, %c3_i32
// CHECK: %[[FIRST_WARP:.*]] = arith.cmpi eq, %[[WARP_BITS]], %c0_i32
// CHECK: %[[OWNER:.*]] = arith.andi %[[FIRST_LANE]], %[[FIRST_WARP]]
// CHECK: simt.st global %{{.*}}, %{{.*}} + 0 if %[[OWNER]] : vector<1xf32>, i64
func.func @owner(%v: memref<16xf32>, %s: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.splat %s : f32 -> tensor<16xf32, #same>
  tile.store %x, %v[%c0] : tensor<16xf32, #same>, memref<16xf32>
  return
}

#single = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// Any byte except 0 in memory is true, and true is stored as 1.
// CHECK-LABEL: func @bool
// CHECK: %[[BYTE:.*]] = simt.ld global %{{.*}} + 0 : i64, vector<1xi8>
// CHECK: arith.cmpi ne, %{{.*}}, %{{.*}} : vector<1xi8>
// CHECK: arith.extui %{{.*}} : vector<1xi1> to vector<1xi8>
// CHECK: simt.st global %{{.*}} : vector<1xi8>, i64
func.func @bool(%v: memref<32xi8>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0] : memref<32xi8> -> tensor<32xi1, #single>
  tile.store %0, %v[%c0] : tensor<32xi1, #single>, memref<32xi8>
  return
}

// An atomic instruction has its own order, and needs no fences.
// CHECK-LABEL: func @atomic
// CHECK-NOT: simt.fence
// CHECK: simt.atomic_rmw add %{{.*}} : f32
// CHECK: simt.atomic_rmw add %{{.*}} {simt.order = "release"} : f32
// CHECK: simt.atomic_rmw add %{{.*}} {simt.order = "acquire"} : f32
// CHECK: simt.atomic_rmw add %{{.*}} {simt.order = "acq_rel"} : f32
// CHECK: simt.atomic_cas %{{.*}} {simt.order = "acq_rel"} : f32
// CHECK: simt.ld global %{{.*}} {simt.order = "acquire", strong}
// CHECK: simt.st global %{{.*}} {simt.order = "release", strong}
// CHECK: simt.ld global %{{.*}} {strong}
// CHECK: simt.st global %{{.*}} {strong}
// CHECK-NOT: simt.fence
// CHECK: return
func.func @atomic(%v: memref<32xf32>, %s: f32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %x = tile.splat %s : f32 -> tensor<32xf32, #single>
  %0 = tile.atomic_rmw add relaxed %x, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  %1 = tile.atomic_rmw add release %x, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  %2 = tile.atomic_rmw add acquire %x, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  %3 = tile.atomic_rmw add acq_rel %x, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  %4 = tile.atomic_cas acq_rel %x to %x, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  %5 = tile.atomic_load acquire %v[%c0] : memref<32xf32> -> tensor<32xf32, #single>
  tile.atomic_store release %5, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  %6 = tile.atomic_load relaxed %v[%c0] : memref<32xf32> -> tensor<32xf32, #single>
  tile.atomic_store relaxed %6, %v[%c0] : tensor<32xf32, #single>, memref<32xf32>
  return
}

#double = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>

// With two elements a thread, one fence orders both. An acquiring update is read even if its result is unused.
// CHECK-LABEL: func @fenced
// CHECK: simt.fence
// CHECK: simt.atomic_rmw add %{{.*}} + 0 : f32
// CHECK: simt.atomic_rmw add %{{.*}} + 4 : f32
// CHECK-NOT: simt.fence
// CHECK: simt.atomic_rmw add %{{.*}} + 0 {simt.fenced} : f32
// CHECK: simt.atomic_rmw add %{{.*}} + 4 {simt.fenced} : f32
// CHECK: simt.fence
// CHECK: simt.fence
// CHECK: simt.atomic_rmw add %{{.*}} + 0 {simt.fenced} : f32
// CHECK: simt.atomic_rmw add %{{.*}} + 4 {simt.fenced} : f32
// CHECK: simt.fence
// CHECK-NOT: simt.fence
// CHECK: return
func.func @fenced(%v: memref<64xf32>, %s: f32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %x = tile.splat %s : f32 -> tensor<64xf32, #double>
  %0 = tile.atomic_rmw add release %x, %v[%c0] : tensor<64xf32, #double>, memref<64xf32>
  %1 = tile.atomic_rmw add acquire %x, %v[%c0] : tensor<64xf32, #double>, memref<64xf32>
  %2 = tile.atomic_rmw add acq_rel %x, %v[%c0] : tensor<64xf32, #double>, memref<64xf32>
  return
}

// An atomic keeps its scope, and so do its fences.
// CHECK-LABEL: func @scoped
// CHECK: simt.fence {tile.scope = "block"}
// CHECK-COUNT-2: simt.atomic_rmw add %{{.*}} {simt.fenced, tile.scope = "block"} : f32
// CHECK: simt.fence {tile.scope = "block"}
// CHECK: simt.atomic_cas %{{.*}} {simt.order = "release", tile.scope = "system"} : f32
// CHECK: simt.ld global %{{.*}} {strong, tile.scope = "system"}
// CHECK: simt.st global %{{.*}} {simt.order = "release", strong, tile.scope = "block"}
func.func @scoped(%v: memref<64xf32>, %s: f32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %x = tile.splat %s : f32 -> tensor<64xf32, #double>
  %y = tile.splat %s : f32 -> tensor<32xf32, #single>
  %0 = tile.atomic_rmw add acq_rel %x, %v[%c0] {tile.scope = "block"} : tensor<64xf32, #double>, memref<64xf32>
  %1 = tile.atomic_cas release %y to %y, %v[%c0] {tile.scope = "system"} : tensor<32xf32, #single>, memref<64xf32>
  %2 = tile.atomic_load relaxed %v[%c0] {tile.scope = "system"} : memref<64xf32> -> tensor<32xf32, #single>
  tile.atomic_store release %2, %v[%c0] {tile.scope = "block"} : tensor<32xf32, #single>, memref<64xf32>
  return
}

#one = #simt.layout<64, reg [d0:1 d0:32], lane [d0:2 d0:4 d0:8 d0:16 *], warp [* *]>
#other = #simt.layout<64, reg [d0:32 d0:1], lane [d0:2 d0:4 d0:8 d0:16 *], warp [* *]>

// A conversion between registers renames them.
// CHECK-LABEL: func @convert
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 2, 1, 3] : vector<4xf32>, vector<4xf32>
func.func @convert(%v: memref<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0] : memref<64xf32> -> tensor<64xf32, #one>
  %1 = simt.convert %0 : tensor<64xf32, #one> -> tensor<64xf32, #other>
  return
}

#square = #simt.layout<2x64, reg [d0:1 d1:32], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [* *]>
#transposed = #simt.layout<64x2, reg [d0:32 d1:1], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [* *]>
#column = #simt.layout<2x1, reg [d0:1], lane [* * * * *], warp [* *]>

// Transpositions and broadcasts also rename registers.
// CHECK-LABEL: func @moves
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 2, 1, 3] : vector<4xf32>, vector<4xf32>
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 0, 1] : vector<2xi64>, vector<2xi64>
func.func @moves(%v: memref<2x64xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0, %c0] : memref<2x64xf32> -> tensor<2x64xf32, #square>
  %1 = tile.transpose %0 [1, 0] : tensor<2x64xf32, #square> -> tensor<64x2xf32, #transposed>
  %2 = tile.splat %n : i64 -> tensor<2x1xi64, #column>
  %3 = tile.broadcast %2 : tensor<2x1xi64, #column> -> tensor<2x64xi64, #square>
  return
}

// A cache hint applies to each access of a thread.
// CHECK-LABEL: func @caches
// CHECK: simt.ld global %{{.*}} {tile.cache = "stream"}
// CHECK: simt.ld global %{{.*}} {tile.cache = "keep"}
// CHECK: simt.st global %{{.*}} {tile.cache = "stream"}
// CHECK: simt.st global %{{[^{]*}} : vector
func.func @caches(%v: memref<?xf32>, %w: memref<?xf32>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0] {tile.cache = "stream"} : memref<?xf32> -> tensor<32xf32, #single>
  %1 = tile.load %w[%c0] {tile.cache = "keep"} : memref<?xf32> -> tensor<32xf32, #single>
  tile.store %0, %w[%c0] {tile.cache = "stream"} : tensor<32xf32, #single>, memref<?xf32>
  tile.store %1, %v[%c0] : tensor<32xf32, #single>, memref<?xf32>
  return
}
