// RUN: kiln-opt %s --cpu-place-tiles | FileCheck %s

!t = tensor<16x32xf32>
!v = memref<?x?xf32, strided<[?, 1]>>

// A load that cannot stay a view is copied; one that can is not.
// CHECK-LABEL: func @loads
// CHECK: tile.load {{.*}} {cpu.scratch}
// CHECK: tile.load {{.*}} {cpu.view} :
func.func @loads(%a: !v, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %y = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %z = arith.addf %x, %y : !t
  tile.store %z, %b[%c0, %c0] : !t, !v
  return
}

// Each reader recomputes a cheap operation. An exponential with two readers is computed once.
// CHECK-LABEL: func @twice
// CHECK: math.exp {{.*}} {cpu.scratch}
// CHECK-NOT: cpu.scratch
// CHECK: return
func.func @twice(%a: !v, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c16 = arith.constant 16 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %cheap = arith.addf %x, %x : !t
  %dear = math.exp %cheap : !t
  tile.store %dear, %b[%c0, %c0] : !t, !v
  tile.store %dear, %b[%c16, %c0] : !t, !v
  tile.store %cheap, %b[%c16, %c16] : !t, !v
  return
}

// Halves of a joined pair are recomputed for each element if they are cheap. An exponential gets scratch memory instead.
// CHECK-LABEL: func @pairs
// CHECK-NOT: cpu.scratch
// CHECK: math.exp {{.*}} {cpu.scratch}
// CHECK-NOT: cpu.scratch
// CHECK: return
func.func @pairs(%a: !v, %b: memref<?x?x?xf32, strided<[?, ?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %first = arith.constant dense<[[[true, false]]]> : tensor<1x1x2xi1>
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %y = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %little = arith.mulf %x, %y : !t
  %much = math.exp %y : !t
  %0 = tile.reshape %little : !t -> tensor<16x32x1xf32>
  %1 = tile.reshape %much : !t -> tensor<16x32x1xf32>
  %2 = tile.broadcast %0 : tensor<16x32x1xf32> -> tensor<16x32x2xf32>
  %3 = tile.broadcast %1 : tensor<16x32x1xf32> -> tensor<16x32x2xf32>
  %4 = tile.broadcast %first : tensor<1x1x2xi1> -> tensor<16x32x2xi1>
  %5 = arith.select %4, %2, %3 : tensor<16x32x2xi1>, tensor<16x32x2xf32>
  tile.store %5, %b[%c0, %c0, %c0] : tensor<16x32x2xf32>, memref<?x?x?xf32, strided<[?, ?, 1]>>
  return
}

// A row of narrow numbers that many rows use is widened once. A bias that a product's stores use is not.
// CHECK-LABEL: func @widened
// CHECK: arith.extf {{.*}} {cpu.scratch}
// CHECK: tile.dot
// CHECK-NOT: cpu.scratch
// CHECK: return
func.func @widened(%a: !v, %n: memref<?xbf16, strided<[1]>>, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<16x16xf32>
  %row = tile.load %n[%c0] {cpu.view} : memref<?xbf16, strided<[1]>> -> tensor<16xbf16>
  %wide = arith.extf %row : tensor<16xbf16> to tensor<16xf32>
  %0 = tile.reshape %wide : tensor<16xf32> -> tensor<1x16xf32>
  %1 = tile.broadcast %0 : tensor<1x16xf32> -> tensor<16x16xf32>
  %2 = arith.addf %x, %1 : tensor<16x16xf32>
  tile.store %2, %b[%c0, %c0] : tensor<16x16xf32>, !v
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %3 = tile.dot %x, %x, %zero {cpu.epilogue = array<i1: true>} : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
  %bias = arith.extf %row : tensor<16xbf16> to tensor<16xf32>
  %4 = tile.reshape %bias : tensor<16xf32> -> tensor<1x16xf32>
  %5 = tile.broadcast %4 : tensor<1x16xf32> -> tensor<16x16xf32>
  %6 = arith.addf %3, %5 : tensor<16x16xf32>
  tile.store %6, %b[%c0, %c0] : tensor<16x16xf32>, !v
  return
}

// The left operand of a product is in scratch memory, unless it is in a view already.
// CHECK-LABEL: func @left
// CHECK: arith.mulf {{.*}} {cpu.scratch}
// CHECK-NOT: cpu.scratch
// CHECK: return
func.func @left(%a: !v, %b: !v, %acc: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<16x16xf32>
  %two = arith.constant dense<2.0> : tensor<16x16xf32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %scaled = arith.mulf %x, %two : tensor<16x16xf32>
  %0 = tile.dot %scaled, %x, %zero : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
  %1 = tile.dot %x, %scaled, %zero : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
  %sum = arith.addf %0, %1 : tensor<16x16xf32>
  tile.store %sum, %acc[%c0, %c0] : tensor<16x16xf32>, !v
  return
}

// An epilogue is dropped if it reads a tile in scratch memory that is computed after the product.
// CHECK-LABEL: func @spoilt
// CHECK: tile.dot
// CHECK-NOT: cpu.epilogue
// CHECK: math.exp {{.*}} {cpu.scratch}
func.func @spoilt(%a: !v, %b: !v, %c: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<16x16xf32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tile.dot %x, %x, %zero {cpu.epilogue = array<i1: true>} : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
  %dear = math.exp %x : tensor<16x16xf32>
  %y = arith.addf %0, %dear : tensor<16x16xf32>
  tile.store %y, %b[%c0, %c0] : tensor<16x16xf32>, !v
  tile.store %dear, %c[%c0, %c0] : tensor<16x16xf32>, !v
  tile.store %dear, %c[%c64, %c0] : tensor<16x16xf32>, !v
  return
}

// Merged rows that are no multiple of a vector are copied without gaps. The copy is a reshape to the same shape.
// CHECK-LABEL: func @ragged_rows
// CHECK: %[[X:.*]] = tile.load {{.*}} {cpu.view} :
// CHECK-NEXT: %[[COPY:.*]] = tile.reshape %[[X]] {cpu.dense, cpu.scratch} : tensor<16x40xf32> -> tensor<16x40xf32>
// CHECK-NEXT: tile.reshape %[[COPY]] :
func.func @ragged_rows(%a: !v, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<16x40xf32>
  %y = tile.reshape %x : tensor<16x40xf32> -> tensor<640xf32>
  %z = arith.addf %y, %y : tensor<640xf32>
  tile.store %z, %b[%c0] : tensor<640xf32>, memref<?xf32, strided<[1]>>
  return
}

// Merged rows that are only stored are not copied.
// CHECK-LABEL: func @stored_rows
// CHECK-NOT: cpu.scratch
// CHECK: return
func.func @stored_rows(%a: !v, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<16x40xf32>
  %y = tile.reshape %x : tensor<16x40xf32> -> tensor<640xf32>
  tile.store %y, %b[%c0] : tensor<640xf32>, memref<?xf32, strided<[1]>>
  return
}

// Rows of 32 and of 4 are read in place, and so is the operand of a check.
// CHECK-LABEL: func @whole_rows
// CHECK-NOT: cpu.scratch
// CHECK: return
func.func @whole_rows(%a: !v, %b: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c512 = arith.constant 512 : i64
  %limit = arith.constant dense<1.0> : !t
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %y = tile.reshape %x : !t -> tensor<512xf32>
  tile.store %y, %b[%c0] : tensor<512xf32>, memref<?xf32, strided<[1]>>
  %z = tile.load %a[%c512, %c0] {cpu.view} : !v -> tensor<16x4xf32>
  %w = tile.reshape %z : tensor<16x4xf32> -> tensor<64xf32>
  tile.store %w, %b[%c512] : tensor<64xf32>, memref<?xf32, strided<[1]>>
  %fine = arith.cmpf olt, %x, %limit : !t
  tile.check %fine, "small" : tensor<16x32xi1>
  return
}

// A transposed tile is in scratch memory, so that it is transposed block by block, and so are its expensive operands. Tiles
// narrower than vectors, tiles transposed back, and operands of a product are not.
// CHECK-LABEL: func @transposed
// CHECK: tile.transpose {{.*}} {cpu.scratch}
// CHECK: math.exp {{.*}} {cpu.scratch}
// CHECK: tile.transpose {{.*}} {cpu.scratch}
func.func @transposed(%a: !v, %b: !v, %c: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %0 = tile.transpose %x [1, 0] : !t -> tensor<32x16xf32>
  tile.store %0, %b[%c0, %c0] : tensor<32x16xf32>, !v
  %y = math.exp %x : !t
  %1 = tile.transpose %y [1, 0] : !t -> tensor<32x16xf32>
  tile.store %1, %c[%c0, %c0] : tensor<32x16xf32>, !v
  return
}

// CHECK-LABEL: func @not_transposed
// CHECK-NOT: tile.transpose {{.*}} {cpu.scratch}
// CHECK: return
func.func @not_transposed(%a: !v, %b: !v, %c: !v, %d: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %narrow = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<4x32xf32>
  %0 = tile.transpose %narrow [1, 0] : tensor<4x32xf32> -> tensor<32x4xf32>
  tile.store %0, %b[%c0, %c0] : tensor<32x4xf32>, !v
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %1 = tile.transpose %x [1, 0] : !t -> tensor<32x16xf32>
  %2 = arith.addf %1, %1 : tensor<32x16xf32>
  %3 = tile.transpose %2 [1, 0] : tensor<32x16xf32> -> !t
  tile.store %3, %c[%c0, %c0] : !t, !v
  %4 = tile.transpose %x [1, 0] : !t -> tensor<32x16xf32>
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %5 = tile.dot %x, %4, %zero : !t, tensor<32x16xf32>, tensor<16x16xf32>
  tile.store %5, %d[%c0, %c0] : tensor<16x16xf32>, !v
  return
}

// Softmax of narrow rows: a tile that is read twice is in scratch memory without gaps. Values with one element per row, constants
// included, are computed as a row of them.
// CHECK-LABEL: func @softmax
// CHECK: %[[POWERS:.*]] = math.exp {{.*}} {cpu.dense, cpu.scratch} : tensor<128x4xf32>
// CHECK: %[[SUMS:.*]] = tile.reduce sum %[[POWERS]] axis 1
// CHECK: %[[FLAT:.*]] = arith.addf %[[SUMS]], %{{.*}} : tensor<128xf32>
// CHECK: %[[SHARES:.*]] = arith.divf %{{.*}}, %[[FLAT]] {cpu.scratch} : tensor<128xf32>
// CHECK: tile.reshape %[[SHARES]] : tensor<128xf32> -> tensor<128x1xf32>
func.func @softmax(%a: !v, %b: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<128x1xf32>
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<128x4xf32>
  %powers = math.exp %x : tensor<128x4xf32>
  %sums = tile.reduce sum %powers axis 1 : tensor<128x4xf32> -> tensor<128xf32>
  %column = tile.reshape %sums : tensor<128xf32> -> tensor<128x1xf32>
  %more = arith.addf %column, %one : tensor<128x1xf32>
  %shares = arith.divf %one, %more : tensor<128x1xf32>
  %all = tile.broadcast %shares : tensor<128x1xf32> -> tensor<128x4xf32>
  %0 = arith.mulf %powers, %all : tensor<128x4xf32>
  tile.store %0, %b[%c0, %c0] : tensor<128x4xf32>, !v
  return
}

// A product reads its left operand row by row, so that operand has gaps. A tile of few rows has gaps, too.
// CHECK-LABEL: func @with_gaps
// CHECK: math.exp {{.*}} {cpu.scratch} : tensor<128x4xf32>
// CHECK: math.exp {{.*}} {cpu.scratch} : tensor<8x4xf32>
func.func @with_gaps(%a: !v, %b: !v, %c: !v) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : tensor<128x16xf32>
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<128x4xf32>
  %w = tile.load %b[%c0, %c0] {cpu.view} : !v -> tensor<4x16xf32>
  %powers = math.exp %x : tensor<128x4xf32>
  %0 = tile.dot %powers, %w, %zero : tensor<128x4xf32>, tensor<4x16xf32>, tensor<128x16xf32>
  tile.store %0, %c[%c0, %c0] : tensor<128x16xf32>, !v
  %y = tile.load %a[%c0, %c0] {cpu.view} : !v -> tensor<8x4xf32>
  %few = math.exp %y : tensor<8x4xf32>
  %sums = tile.reduce sum %few axis 1 : tensor<8x4xf32> -> tensor<8xf32>
  %column = tile.reshape %sums : tensor<8xf32> -> tensor<8x1xf32>
  %all = tile.broadcast %column : tensor<8x1xf32> -> tensor<8x4xf32>
  %1 = arith.divf %few, %all : tensor<8x4xf32>
  tile.store %1, %c[%c0, %c0] : tensor<8x4xf32>, !v
  return
}

// A reshape that nothing reads gets no copy.
// CHECK-LABEL: func @unused
// CHECK-NOT: cpu.dense
// CHECK: return
func.func @unused(%x: memref<64x100xf32, strided<[100, 1]>>, %y: memref<64x100xf32, strided<[100, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] : memref<64x100xf32, strided<[100, 1]>> -> tensor<64x100xf32>
  %1 = tile.reshape %0 : tensor<64x100xf32> -> tensor<6400xf32>
  tile.store %0, %y[%c0, %c0] : tensor<64x100xf32>, memref<64x100xf32, strided<[100, 1]>>
  return
}

// Each step reads the sum before it at two positions. The third sum is placed, so that the first is not computed at
// sixteen.
// CHECK-LABEL: func @rolled
// CHECK-COUNT-2: arith.addf %{{[0-9]+}}, %{{[0-9]+}} :
// CHECK: arith.addf {{.*}} {cpu.scratch}
// CHECK-COUNT-2: arith.addf %{{[0-9]+}}, %{{[0-9]+}} :
// CHECK: return
func.func @rolled(%a: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0] {cpu.view} : memref<?xf32, strided<[1]>> -> tensor<64xf32>
  %0 = tile.rotate %x by 1 axis 0 : tensor<64xf32>
  %1 = arith.addf %x, %0 : tensor<64xf32>
  %2 = tile.rotate %1 by 2 axis 0 : tensor<64xf32>
  %3 = arith.addf %1, %2 : tensor<64xf32>
  %4 = tile.rotate %3 by 4 axis 0 : tensor<64xf32>
  %5 = arith.addf %3, %4 : tensor<64xf32>
  %6 = tile.rotate %5 by 8 axis 0 : tensor<64xf32>
  %7 = arith.addf %5, %6 : tensor<64xf32>
  %8 = tile.rotate %7 by 16 axis 0 : tensor<64xf32>
  %9 = arith.addf %7, %8 : tensor<64xf32>
  tile.store %9, %a[%c0] : tensor<64xf32>, memref<?xf32, strided<[1]>>
  return
}
