// RUN: kiln-opt %s --cpu-select-products='bf16-pairs=true i8-quads=true' --cpu-place-tiles --cpu-pack-operands --cpu-lower-tiles --canonicalize --cse | FileCheck %s
// RUN: kiln-opt %s --cpu-select-products='tiles=true' --cpu-place-tiles --cpu-pack-operands --cpu-lower-tiles --canonicalize --cse | FileCheck %s --check-prefix=TILES

// A right operand that is loop-invariant is packed before the loop, also if it is transposed inside.
// CHECK-LABEL: func @same_right_operand
// CHECK: %[[PANELS:.*]] = memref.alloca() {{.*}} : memref<2x64x32xf32>
// CHECK: vector.shuffle
// CHECK: vector.store {{.*}}, %[[PANELS]]
// CHECK: scf.for {{.*}} : i64 {
// CHECK-NOT: vector.shuffle
// CHECK: vector.load %[[PANELS]]
// CHECK: math.fma
func.func @same_right_operand(%a: memref<?x64xf32, strided<[64, 1]>>, %b: memref<64x64xf32, strided<[64, 1]>>,
                              %c: memref<?x64xf32, strided<[64, 1]>>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %y = tile.load %b[%c0, %c0] {cpu.view} : memref<64x64xf32, strided<[64, 1]>> -> tensor<64x64xf32>
  scf.for %m = %c0 to %n step %c64 : i64 {
    %x = tile.load %a[%m, %c0] {cpu.view} : memref<?x64xf32, strided<[64, 1]>> -> tensor<64x64xf32>
    %t = tile.transpose %y [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %d = tile.dot %x, %t, %zero : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
    tile.store %d, %c[%m, %c0] : tensor<64x64xf32>, memref<?x64xf32, strided<[64, 1]>>
  }
  return
}

// Blocks of rows above the diagonal are masked and not computed: the loop over rows begins at the panel's first column
// minus the limit.
// CHECK-LABEL: func @under_a_mask
// CHECK-SAME: %[[LIMIT:[a-z0-9]+]]: i32
// CHECK: %[[SHIFT:.*]] = arith.index_cast %[[LIMIT]] : i32 to index
// CHECK: scf.for %[[N:.*]] = %{{.*}} to %{{.*}} step %{{.*}} {
// CHECK: %[[FROM:.*]] = arith.subi %[[N]], %[[SHIFT]] : index
// CHECK: %[[CLAMPED:.*]] = arith.maxsi %[[FROM]]
// CHECK: %[[BLOCK:.*]] = arith.divui %[[CLAMPED]], %[[ROWS:.*]] : index
// CHECK: %[[BEGIN:.*]] = arith.muli %[[BLOCK]], %[[ROWS]]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to
// CHECK: math.fma
func.func @under_a_mask(%a: memref<64x64xf32, strided<[64, 1]>>, %b: memref<64x64xf32, strided<[64, 1]>>,
                        %c: memref<64x64xf32, strided<[64, 1]>>, %limit: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : memref<64x64xf32, strided<[64, 1]>> -> tensor<64x64xf32>
  %y = tile.load %b[%c0, %c0] {cpu.view} : memref<64x64xf32, strided<[64, 1]>> -> tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %x, %y, %zero : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %i = tile.iota : tensor<64xi32>
  %r = tile.reshape %i : tensor<64xi32> -> tensor<64x1xi32>
  %s = tile.reshape %i : tensor<64xi32> -> tensor<1x64xi32>
  %row = tile.broadcast %r : tensor<64x1xi32> -> tensor<64x64xi32>
  %column = tile.broadcast %s : tensor<1x64xi32> -> tensor<64x64xi32>
  %distance = arith.subi %column, %row : tensor<64x64xi32>
  %bound = tile.splat %limit : i32 -> tensor<64x64xi32>
  %mask = arith.cmpi sle, %distance, %bound : tensor<64x64xi32>
  %p = arith.select %mask, %d, %zero : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %p, %c[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// The first product that reads short rows prefetches them one step of the loop ahead. Long rows are not prefetched.
// CHECK-LABEL: func @next_step
// CHECK-SAME: %[[SHORT:[a-z0-9]+]]: memref<?x64xf32, strided<[?, 1]>>, %[[LONG:[a-z0-9]+]]: memref<?x256xf32
// CHECK: scf.for %[[K:[a-z0-9]+]] = %{{.*}} to %{{.*}} step %[[STEP:[a-z0-9_]+]] : i64 {
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %[[STEP]] : i64
// CHECK: %[[ROW:.*]] = arith.index_cast %[[NEXT]] : i64 to index
// CHECK: %[[AHEAD:.*]] = arith.addi %[[ROW]], %{{.*}} : index
// CHECK: memref.prefetch %[[SHORT]][%[[AHEAD]], %{{.*}}], read
// CHECK-NOT: memref.prefetch %[[LONG]]
// CHECK: return
func.func @next_step(%a: memref<?x64xf32, strided<[?, 1]>>, %b: memref<?x256xf32, strided<[?, 1]>>,
                     %c: memref<64x64xf32, strided<[64, 1]>>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c256 = arith.constant 256 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %n step %c256 iter_args(%acc = %zero) -> tensor<64x64xf32> : i64 {
    %x = tile.load %b[%c0, %k] {cpu.view} : memref<?x256xf32, strided<[?, 1]>> -> tensor<64x256xf32>
    %y = tile.load %a[%k, %c0] {cpu.view} : memref<?x64xf32, strided<[?, 1]>> -> tensor<256x64xf32>
    %d = tile.dot %x, %y, %acc : tensor<64x256xf32>, tensor<256x64xf32>, tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  tile.store %sum, %c[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// A left operand with further extents of 1 is read in place, without a copy, like one of rank 2.
// CHECK-LABEL: func @of_rank_three
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<8x64x64xf32
// CHECK-NOT: vector.store
// CHECK: memref.subview %[[A]][%{{.*}}, 0, 0] [1, 64, 64]
func.func @of_rank_three(%a: memref<8x64x64xf32, strided<[4096, 64, 1]>>, %b: memref<64x64xf32, strided<[64, 1]>>,
                         %c: memref<64x64xf32, strided<[64, 1]>>, %z: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%z, %c0, %c0] {cpu.view} : memref<8x64x64xf32, strided<[4096, 64, 1]>> -> tensor<1x64x64xf32>
  %l = tile.reshape %x : tensor<1x64x64xf32> -> tensor<64x64xf32>
  %y = tile.load %b[%c0, %c0] {cpu.view} : memref<64x64xf32, strided<[64, 1]>> -> tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %l, %y, %zero : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  tile.store %d, %c[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// Pairs along k are words. Those of b are built while packing; those of a are read in place.
// CHECK-LABEL: func @pairs
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<?x64xbf16
// CHECK: %[[PANEL:.*]] = memref.alloca() {{.*}} : memref<1x32x32xi32>
// CHECK: %[[ROWS:.*]] = vector.interleave {{.*}} : vector<16xbf16> -> vector<32xbf16>
// CHECK: %[[WORDS:.*]] = vector.bitcast %[[ROWS]] : vector<32xbf16> to vector<16xi32>
// CHECK: vector.store %[[WORDS]], %[[PANEL]]
// CHECK: vector.load %{{.*}} : memref<64x64xbf16, strided<[?, 1], offset: ?>>, vector<2xbf16>
// CHECK: x86vector.avx512.dot
// On AMX there are four accumulator tiles, and memory for two blocks of accumulators and two panels. Before the tiles
// of a step, a share of the next panel is packed and a share of the previous block is stored. The rest of the block
// follows its loop.
// TILES-LABEL: func @pairs
// TILES-SAME: %[[A:[a-z0-9]+]]: memref<?x64xbf16
// TILES: %[[PANELS:.*]] = memref.alloca() {{.*}} : memref<2x32x32xi32>
// TILES: %[[SUMS:.*]] = memref.alloca() {{.*}} : memref<64x32xf32>
// TILES: scf.for {{.*}} iter_args(%[[PACKED:.*]] = %c0) -> (index)
// TILES: scf.for %{{.*}} = %[[PACKED]] to %c32
// TILES-COUNT-2: vector.store {{.*}}, %[[PANELS]]
// TILES-COUNT-4: amx.tile_zero : !amx.tile<16x16xf32>
// TILES: scf.for {{.*}} -> (!amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>, !amx.tile<16x16xf32>, index, index)
// TILES: scf.for
// TILES-COUNT-2: vector.store {{.*}}, %[[PANELS]]
// TILES: scf.for
// TILES-COUNT-2: vector.load %[[SUMS]]
// TILES: amx.tile_load %[[PANELS]]{{.*}} : memref<2x32x32xi32> into !amx.tile<16x32xbf16>
// TILES: amx.tile_load {{.*}} : memref<64x64xbf16, strided<[?, 1], offset: ?>> into !amx.tile<16x32xbf16>
// TILES-COUNT-4: amx.tile_store %[[SUMS]]
// TILES: scf.for
// TILES-COUNT-2: vector.load %[[SUMS]]
func.func @pairs(%a: memref<?x64xbf16, strided<[64, 1]>>, %b: memref<64x64xbf16, strided<[64, 1]>>,
                 %c: memref<?x64xf32, strided<[64, 1]>>, %m: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%m, %c0] {cpu.view} : memref<?x64xbf16, strided<[64, 1]>> -> tensor<64x64xbf16>
  %y = tile.load %b[%c0, %c0] {cpu.view} : memref<64x64xbf16, strided<[64, 1]>> -> tensor<64x64xbf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  tile.store %d, %c[%m, %c0] : tensor<64x64xf32>, memref<?x64xf32, strided<[64, 1]>>
  return
}

// Quads of a are made unsigned by a bias. The bias adds 128 times each column of b, which is subtracted before.
// CHECK-LABEL: func @quads
// CHECK: %[[BIAS:.*]] = arith.constant dense<-2139062144> : vector<16xi32>
// CHECK: scf.for
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
// CHECK: %[[START:.*]] = arith.subi
// CHECK: arith.xori %{{.*}}, %[[BIAS]]
// CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"
func.func @quads(%a: memref<?x64xi8, strided<[64, 1]>>, %b: memref<64x64xi8, strided<[64, 1]>>,
                 %c: memref<?x64xi32, strided<[64, 1]>>, %m: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%m, %c0] {cpu.view} : memref<?x64xi8, strided<[64, 1]>> -> tensor<64x64xi8>
  %y = tile.load %b[%c0, %c0] {cpu.view} : memref<64x64xi8, strided<[64, 1]>> -> tensor<64x64xi8>
  %zero = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %x, %y, %zero : tensor<64x64xi8>, tensor<64x64xi8>, tensor<64x64xi32>
  tile.store %d, %c[%m, %c0] : tensor<64x64xi32>, memref<?x64xi32, strided<[64, 1]>>
  return
}
