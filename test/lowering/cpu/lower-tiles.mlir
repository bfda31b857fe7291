// RUN: kiln-opt %s --cpu-select-products --cpu-place-tiles --cpu-pack-operands --cpu-lower-tiles --canonicalize --cse | FileCheck %s
// RUN: kiln-opt %s --cpu-select-products --cpu-place-tiles --cpu-pack-operands='vector-bits=256 registers=16' --cpu-lower-tiles='vector-bits=256 registers=16' --canonicalize --cse | FileCheck %s --check-prefix=AVX2

// An elementwise chain is one loop that writes only the result. If the whole tile is inside the view, it has no masks
// and four vectors a step. Otherwise a step is one vector.
// CHECK-LABEL: func @chain
// CHECK-NOT: memref.alloca
// CHECK: %[[LAST:.*]] = arith.subi %{{.*}}, %c1024
// CHECK: %[[BELOW:.*]] = arith.cmpi sle, %[[N:.*]], %[[LAST]]
// CHECK: %[[ABOVE:.*]] = arith.cmpi sge, %[[N]], %c0
// CHECK: %[[INSIDE:.*]] = arith.andi %[[BELOW]], %[[ABOVE]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[INSIDE]], %{{.*}} : i1
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c1024 step %c64 {
// CHECK-NOT: masked
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK: } else {
// CHECK: scf.for %{{.*}} = %c0 to %c1024 step %c16 {
// CHECK: vector.maskedload
// CHECK: arith.mulf {{.*}} : vector<16xf32>
// CHECK: vector.maskedstore
// CHECK-NOT: vector.masked
// CHECK: return
// AVX2-LABEL: func @chain
// AVX2: arith.mulf {{.*}} : vector<8xf32>
func.func @chain(%v: memref<?xf32, strided<[1]>>, %n: i64) attributes {tile.kernel} {
  %x = tile.load %v[%n] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  %y = arith.mulf %x, %x : tensor<1024xf32>
  %z = arith.addf %y, %x : tensor<1024xf32>
  tile.store %z, %v[%n] : tensor<1024xf32>, memref<?xf32, strided<[1]>>
  return
}

// Static bounds that hold need no mask.
// CHECK-LABEL: func @inside
// CHECK-NOT: masked
// CHECK: vector.store
func.func @inside(%v: memref<2048xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1024 = arith.constant 1024 : i64
  %x = tile.load %v[%c0] {cpu.view} : memref<2048xf32, strided<[1]>> -> tensor<1024xf32>
  tile.store %x, %v[%c1024] : tensor<1024xf32>, memref<2048xf32, strided<[1]>>
  return
}

// Rows past the end of a view are masked, with the address of its first row, which is valid memory.
// CHECK-LABEL: func @rows
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %[[ROW:.*]], %{{.*}} : index
// CHECK: %[[AT:.*]] = arith.select %[[INSIDE]], %[[ROW]], %c0 : index
// CHECK: vector.maskedload %{{.*}}[%[[AT]], %c0]
// CHECK: vector.maskedstore %{{.*}}[%[[AT]], %c0]
func.func @rows(%v: memref<?x16xf32, strided<[16, 1]>>, %m: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%m, %c0] {cpu.view} : memref<?x16xf32, strided<[16, 1]>> -> tensor<8x16xf32>
  %y = arith.addf %x, %x : tensor<8x16xf32>
  tile.store %y, %v[%m, %c0] : tensor<8x16xf32>, memref<?x16xf32, strided<[16, 1]>>
  return
}

// Both versions of a sum add equal vectors to equal partial sums. A tile of few vectors has one version.
// CHECK-LABEL: func @sum_of_rows
// CHECK: %[[SUM:.*]] = scf.if %{{.*}} -> (vector<16xf32>) {
// CHECK: %[[FAST:.*]]:4 = scf.for %{{.*}} step %c64 iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}}, %[[D:.*]] = %{{.*}}) ->
// CHECK: %[[A4:.*]] = arith.addf %[[A]], %
// CHECK: %[[B4:.*]] = arith.addf %[[B]], %
// CHECK: %[[C4:.*]] = arith.addf %[[C]], %
// CHECK: %[[D4:.*]] = arith.addf %[[D]], %
// CHECK: scf.yield %[[A4]], %[[B4]], %[[C4]], %[[D4]]
// CHECK: %[[LAST0:.*]] = arith.addf %[[FAST]]#0, %
// CHECK: %[[LAST1:.*]] = arith.addf %[[FAST]]#1, %
// CHECK: arith.addf %[[LAST0]], %[[FAST]]#2
// CHECK: arith.addf %[[LAST1]], %[[FAST]]#3
// CHECK: } else {
// CHECK: %[[SLOW:.*]]:4 = scf.for %{{.*}} = %c0 to %c288 step %c16 iter_args(%[[E:.*]] = %{{.*}}, %[[F:.*]] = %{{.*}}, %[[G:.*]] = %{{.*}}, %[[H:.*]] = %{{.*}}) ->
// CHECK: vector.maskedload
// CHECK: %[[E1:.*]] = arith.addf %[[E]], %
// CHECK: scf.yield %[[F]], %[[G]], %[[H]], %[[E1]]
// The partial sums rotate: after 18 vectors, the first one is the loop's third result.
// CHECK: arith.addf %[[SLOW]]#2, %[[SLOW]]#0
// CHECK: arith.addf %[[SLOW]]#3, %[[SLOW]]#1
// CHECK-NOT: scf.if
// CHECK: vector.maskedload
// CHECK: return
func.func @sum_of_rows(%v: memref<?xf32, strided<[1]>>, %o: memref<1xf32, strided<[1]>>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%n] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<288xf32>
  %s = tile.reduce sum %x axis 0 : tensor<288xf32> -> f32
  %few = tile.load %v[%n] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<32xf32>
  %t = tile.reduce sum %few axis 0 : tensor<32xf32> -> f32
  %r = arith.addf %s, %t : f32
  %u = tile.splat %r : f32 -> tensor<1xf32>
  tile.store %u, %o[%c0] : tensor<1xf32>, memref<1xf32, strided<[1]>>
  return
}

// Memory that an earlier loop nest has read is in the cache. Outside of loops it is read again with masks only.
// CHECK-LABEL: func @read_again
// CHECK: scf.if
// CHECK: vector.load
// CHECK: } else {
// CHECK: vector.maskedload
// CHECK: vector.shuffle
// CHECK-NOT: scf.if
// CHECK: vector.maskedload
// CHECK: scf.for {{.*}} : i64 {
// CHECK: scf.if
// CHECK: vector.load
// CHECK: } else {
// CHECK: vector.maskedload
// CHECK: return
func.func @read_again(%v: memref<?xf32, strided<[1]>>, %o: memref<1024xf32, strided<[1]>>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %x = tile.load %v[%n] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  %s = tile.reduce sum %x axis 0 : tensor<1024xf32> -> f32
  %b = tile.splat %s : f32 -> tensor<1024xf32>
  %d = arith.divf %x, %b : tensor<1024xf32>
  tile.store %d, %o[%c0] : tensor<1024xf32>, memref<1024xf32, strided<[1]>>
  scf.for %i = %c0 to %n step %c1 : i64 {
    tile.store %x, %o[%c0] : tensor<1024xf32>, memref<1024xf32, strided<[1]>>
  }
  return
}

// A test before the reads shows whether gathered rows are inside. If they are, four are read at a time.
// CHECK-LABEL: func @rows_by_name
// CHECK: %[[ROWS:.*]] = scf.for %[[I:.*]] = %c0 to %c8 step %c1 iter_args(%[[ALL:.*]] = %true) -> (i1) {
// CHECK: %[[NAME:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK: %[[NAMED:.*]] = arith.index_cast %[[NAME]]
// CHECK: %[[LIES:.*]] = arith.cmpi ult, %[[NAMED]], %
// CHECK: %[[SO_FAR:.*]] = arith.andi %[[ALL]], %[[LIES]]
// CHECK: scf.yield %[[SO_FAR]]
// CHECK: arith.andi %[[ROWS]], %
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c4 {
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c16 {
// CHECK-COUNT-4: vector.load
// CHECK-COUNT-4: vector.store
// CHECK: } else {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK: arith.cmpi ult
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c16 {
// CHECK: vector.maskedload
// CHECK-NEXT: vector.store
func.func @rows_by_name(%v: memref<?x?xf32, strided<[?, 1]>>, %rows: memref<8xi32, strided<[1]>>, %o: memref<8x64xf32, strided<[?, 1]>>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %r = tile.load %rows[%c0] {cpu.view} : memref<8xi32, strided<[1]>> -> tensor<8xi32>
  %x = tile.gather %v[%r, %n] {cpu.view} : memref<?x?xf32, strided<[?, 1]>>, tensor<8xi32> -> tensor<8x64xf32>
  tile.store %x, %o[%c0, %c0] : tensor<8x64xf32>, memref<8x64xf32, strided<[?, 1]>>
  return
}

// Two reductions of one shape share a loop; a third that needs the first's result does not.
// CHECK-LABEL: func @siblings
// CHECK: scf.for {{.*}} iter_args
// CHECK: arith.addf
// CHECK-NOT: scf.for
// CHECK: arith.maxnumf
// CHECK: scf.for {{.*}} iter_args
func.func @siblings(%v: memref<1024xf32, strided<[1]>>, %o: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%c0] {cpu.view} : memref<1024xf32, strided<[1]>> -> tensor<1024xf32>
  %s = tile.reduce sum %x axis 0 : tensor<1024xf32> -> f32
  %m = tile.reduce max %x axis 0 : tensor<1024xf32> -> f32
  %b = tile.splat %s : f32 -> tensor<1024xf32>
  %d = arith.subf %x, %b : tensor<1024xf32>
  %q = tile.reduce sum %d axis 0 : tensor<1024xf32> -> f32
  %r = arith.addf %q, %m : f32
  %t = tile.splat %r : f32 -> tensor<1xf32>
  tile.store %t, %o[%c0] : tensor<1xf32>, memref<?xf32, strided<[1]>>
  return
}

// If the lanes do not divide a row, its last vector takes part in a reduction with its valid lanes only.
// CHECK-LABEL: func @ragged
// CHECK: arith.select {{.*}} : vector<16xi1>, vector<16xf32>
func.func @ragged(%v: memref<19xf32, strided<[1]>>, %o: memref<1xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%c0] {cpu.view} : memref<19xf32, strided<[1]>> -> tensor<19xf32>
  %s = tile.reduce sum %x axis 0 : tensor<19xf32> -> f32
  %t = tile.splat %s : f32 -> tensor<1xf32>
  tile.store %t, %o[%c0] : tensor<1xf32>, memref<1xf32, strided<[1]>>
  return
}

// A product keeps 8 x 2 accumulator vectors in registers on AVX-512, and 6 x 2 on AVX2.
// CHECK-LABEL: func @product
// CHECK: %{{.*}}:16 = scf.for
// AVX2-LABEL: func @product
// AVX2: %{{.*}}:12 = scf.for
func.func @product(%v: memref<?x?xf32, strided<[?, 1]>>, %n: i64) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<48x64xf32>
  %a = tile.load %v[%n, %n] {cpu.view} : memref<?x?xf32, strided<[?, 1]>> -> tensor<48x32xf32>
  %b = tile.load %v[%n, %n] {cpu.view} : memref<?x?xf32, strided<[?, 1]>> -> tensor<32x64xf32>
  %d = tile.dot %a, %b, %zero : tensor<48x32xf32>, tensor<32x64xf32>, tensor<48x64xf32>
  tile.store %d, %v[%n, %n] : tensor<48x64xf32>, memref<?x?xf32, strided<[?, 1]>>
  return
}

// Two loop-carried tiles are swapped: one is kept in its own buffer while the other is overwritten.
// CHECK-LABEL: func @swap
// CHECK-COUNT-2: memref.alloca() {{.*}} memref<32xf32>
// CHECK: scf.for
// CHECK: memref.alloca() {{.*}} memref<32xf32>
func.func @swap(%v: memref<?xf32, strided<[1]>>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %x = tile.load %v[%c0] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<32xf32>
  %y = tile.load %v[%n] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<32xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %y) -> (tensor<32xf32>, tensor<32xf32>) : i64 {
    scf.yield %q, %p : tensor<32xf32>, tensor<32xf32>
  }
  tile.store %r#0, %v[%c0] : tensor<32xf32>, memref<?xf32, strided<[1]>>
  tile.store %r#1, %v[%n] : tensor<32xf32>, memref<?xf32, strided<[1]>>
  return
}

// If every second element is read, whole vectors are loaded up to the last element and shuffled. At the view's edge
// each element is tested separately.
// CHECK-LABEL: func @every_second
// CHECK: scf.if %{{.*}} -> (vector<16xf32>) {
// CHECK: vector.load %[[LINE:.*]][%{{.*}}] : memref<?xf32, strided<[1], offset: ?>>, vector<16xf32>
// CHECK: vector.load %[[LINE]][%c15]
// CHECK: vector.shuffle {{.*}} [0, 1, 2, 3, 4, 5, 6, 7, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK: } else {
// CHECK: scf.for
func.func @every_second(%v: memref<?x?xf32, strided<[?, 2]>>, %o: memref<16xf32, strided<[1]>>, %m: i64, %n: i64)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%m, %n] {cpu.view} : memref<?x?xf32, strided<[?, 2]>> -> tensor<1x16xf32>
  %y = tile.reshape %x : tensor<1x16xf32> -> tensor<16xf32>
  tile.store %y, %o[%c0] : tensor<16xf32>, memref<16xf32, strided<[1]>>
  return
}

// Narrow elements are loaded and stored by vectors of 64 bytes. 16 bytes with a stride of 5 span 76: two vectors.

// CHECK-LABEL: func @narrow_apart
// CHECK-COUNT-2: vector.load %{{.*}} : memref<{{.*}}>, vector<64xi8>
// CHECK-NOT: vector.load
// CHECK-COUNT-2: vector.maskedstore %{{.*}} : memref<{{.*}}>, vector<64xi1>, vector<64xi8>
// CHECK-NOT: vector.maskedstore
// CHECK: return
func.func @narrow_apart(%v: memref<16xi8, strided<[5]>>, %o: memref<16xi8, strided<[5]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%c0] {cpu.view} : memref<16xi8, strided<[5]>> -> tensor<16xi8>
  tile.store %x, %o[%c0] : tensor<16xi8>, memref<16xi8, strided<[5]>>
  return
}

// If the triangle covers the tile, no mask is tested. Otherwise vectors outside of the triangle are skipped: P is 0.
// CHECK-LABEL: func @triangle
// CHECK: scf.if
// CHECK-NOT: arith.select
// CHECK: math.exp2
// CHECK: else
// CHECK: scf.if
// CHECK-NOT: math.exp2
// CHECK: vector.store
// CHECK: else
// CHECK: math.exp2
// CHECK: arith.select
// CHECK: vector.store
func.func @triangle(%v: memref<32x32xf32, strided<[32, 1]>>, %limit: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %iota = tile.iota : tensor<32xi32>
  %row = tile.reshape %iota : tensor<32xi32> -> tensor<32x1xi32>
  %column = tile.reshape %iota : tensor<32xi32> -> tensor<1x32xi32>
  %rows = tile.broadcast %row : tensor<32x1xi32> -> tensor<32x32xi32>
  %columns = tile.broadcast %column : tensor<1x32xi32> -> tensor<32x32xi32>
  %distance = arith.subi %columns, %rows : tensor<32x32xi32>
  %limits = tile.splat %limit : i32 -> tensor<32x32xi32>
  %seen = arith.cmpi sle, %distance, %limits : tensor<32x32xi32>
  %x = tile.load %v[%c0, %c0] {cpu.view} : memref<32x32xf32, strided<[32, 1]>> -> tensor<32x32xf32>
  %e = math.exp2 %x : tensor<32x32xf32>
  %p = arith.select %seen, %e, %zero : tensor<32x32xi1>, tensor<32x32xf32>
  tile.store %p, %v[%c0, %c0] : tensor<32x32xf32>, memref<32x32xf32, strided<[32, 1]>>
  return
}

// For many short rows, one vector of each is left in memory. Then 16 of them are added over their lanes at once.
// CHECK-LABEL: func @together
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: vector.shuffle
// CHECK: vector.store
// CHECK: }
// CHECK-COUNT-30: vector.shuffle
// CHECK-NOT: vector.shuffle
// CHECK: vector.store
func.func @together(%v: memref<32x64xf32, strided<[64, 1]>>, %o: memref<32xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%c0, %c0] {cpu.view} : memref<32x64xf32, strided<[64, 1]>> -> tensor<32x64xf32>
  %s = tile.reduce sum %x axis 1 : tensor<32x64xf32> -> tensor<32xf32>
  tile.store %s, %o[%c0] : tensor<32xf32>, memref<32xf32, strided<[1]>>
  return
}

// Stores on both sides of an atomic have separate loop nests, in order. Without the atomic they would share one.
// CHECK-LABEL: func @atomic_between
// CHECK: vector.store {{.*}}, %arg0[
// CHECK: memref.atomic_rmw
// CHECK: vector.store {{.*}}, %arg1[
// CHECK: return
func.func @atomic_between(%v: memref<64xf32>, %w: memref<64xf32>, %f: memref<?xi32, strided<[1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %c0 = arith.constant 0 : i64
  %ones = arith.constant dense<1.0> : tensor<64xf32>
  %one = arith.constant dense<1> : tensor<1xi32>
  tile.store %ones, %v[%c0] : tensor<64xf32>, memref<64xf32>
  %0 = tile.atomic_rmw add release %one, %f[%c0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
  tile.store %ones, %w[%c0] : tensor<64xf32>, memref<64xf32>
  return
}

// Scans share a loop nest with the store, carry one vector each along a row, and need no memory. If only a row's last
// element is used, the others are not written.
// CHECK-LABEL: func @scan
// CHECK-NOT: memref.alloca() {{.*}} memref<8x128xf32>
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-4: vector.shuffle
// CHECK: vector.{{(masked)?}}store
func.func @scan(%v: memref<?x128xf32, strided<[128, 1]>>, %last: memref<8x1xf32, strided<[1, 1]>>, %m: i64)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %v[%m, %c0] {cpu.view} : memref<?x128xf32, strided<[128, 1]>> -> tensor<8x128xf32>
  %y = tile.scan sum %x axis 1 : (tensor<8x128xf32>) -> tensor<8x128xf32>
  tile.store %y, %v[%m, %c0] : tensor<8x128xf32>, memref<?x128xf32, strided<[128, 1]>>
  %z = tile.scan %x axis 1 by (%a: f32, %b: f32) {
    %both = arith.mulf %a, %b : f32
    tile.yield %both : f32
  } : (tensor<8x128xf32>) -> tensor<8x128xf32>
  %product = tile.extract %z begin [0, 127] steps [1, 1] : tensor<8x128xf32> -> tensor<8x1xf32>
  tile.store %product, %last[%c0, %c0] : tensor<8x1xf32>, memref<8x1xf32, strided<[1, 1]>>
  return
}
