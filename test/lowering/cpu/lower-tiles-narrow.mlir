// RUN: kiln-opt %s --cpu-place-tiles --cpu-lower-tiles --canonicalize --cse | FileCheck %s

// Rows of three elements: if both views are inside and contiguous, which is tested once, vectors continue from row to
// row. Otherwise each row is accessed separately.
// CHECK-LABEL: func @doubled
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}:2, %[[STRIDE:.*]]:2 = memref.extract_strided_metadata %arg0
// CHECK: %[[FOLLOWS:.*]] = arith.cmpi eq, %[[STRIDE]]#0, %c3
// CHECK: %[[BOTH:.*]] = arith.andi %{{.*}}, %[[FOLLOWS]]
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c256 step %c16 {
// CHECK-COUNT-3: vector.load
// CHECK-NOT: vector.maskedload
// CHECK-COUNT-3: vector.store
// CHECK: } else {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c256 step %c1 {
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
// CHECK: return
func.func @doubled(%x: memref<?x3xf32, strided<[?, 1]>>, %y: memref<?x3xf32, strided<[3, 1]>>)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<?x3xf32, strided<[?, 1]>> -> tensor<256x3xf32>
  %1 = arith.addf %0, %0 : tensor<256x3xf32>
  tile.store %1, %y[%c0, %c0] : tensor<256x3xf32>, memref<?x3xf32, strided<[3, 1]>>
  return
}

// Bytes take fewer vectors than as many f32. Their vectors continue from row to row, too.
// CHECK-LABEL: func @bytes
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c64 {
// CHECK-COUNT-3: vector.store {{.*}} vector<64xi8>
// CHECK-NOT: vector.maskedstore
// CHECK: return
func.func @bytes(%x: memref<256x3xi8, strided<[3, 1]>>, %y: memref<256x3xi8, strided<[3, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<256x3xi8, strided<[3, 1]>> -> tensor<256x3xi8>
  %1 = arith.addi %0, %0 : tensor<256x3xi8>
  tile.store %1, %y[%c0, %c0] : tensor<256x3xi8>, memref<256x3xi8, strided<[3, 1]>>
  return
}

// Sixteen rows of two are two vectors. Shuffles separate the first and the second elements of the rows.
// CHECK-LABEL: func @summed
// CHECK: scf.for %{{.*}} = %c0 to %c512 step %c16 {
// CHECK-COUNT-2: vector.load
// CHECK: vector.shuffle {{.*}} [16, 18, 20, 22, 24, 26, 28, 30,
// CHECK: %[[FIRST:.*]] = vector.shuffle
// CHECK: vector.shuffle {{.*}} [17, 19, 21, 23, 25, 27, 29, 31,
// CHECK: %[[SECOND:.*]] = vector.shuffle
// CHECK: arith.addf %[[FIRST]], %[[SECOND]]
// CHECK: return
func.func @summed(%x: memref<512x2xf32, strided<[2, 1]>>, %y: memref<512xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<512x2xf32, strided<[2, 1]>> -> tensor<512x2xf32>
  %1 = tile.reduce sum %0 axis 1 : tensor<512x2xf32> -> tensor<512xf32>
  tile.store %1, %y[%c0] : tensor<512xf32>, memref<512xf32, strided<[1]>>
  return
}

// Columns are summed by lanes of contiguous rows; three vectors end with a row. A column's lanes are added at the end.
// CHECK-LABEL: func @columns
// CHECK: %[[LINE:.*]]:3 = scf.for %{{.*}} = %c0 to %c256 step %c16
// CHECK-COUNT-3: arith.addf
// CHECK-NEXT: scf.yield
// CHECK: vector.shuffle %[[LINE]]#0, %[[LINE]]#0 [0, 1, 2,
// CHECK: vector.shuffle %[[LINE]]#0, %[[LINE]]#1 [15, 16, 17,
// CHECK-COUNT-15: arith.addf
// CHECK-NOT: arith.addf
// CHECK: return
func.func @columns(%x: memref<256x3xf32, strided<[3, 1]>>, %y: memref<3xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<256x3xf32, strided<[3, 1]>> -> tensor<256x3xf32>
  %1 = tile.reduce sum %0 axis 0 : tensor<256x3xf32> -> tensor<3xf32>
  tile.store %1, %y[%c0] : tensor<3xf32>, memref<3xf32, strided<[1]>>
  return
}

// Rows that are known not to be contiguous are read one at a time.
// CHECK-LABEL: func @apart
// CHECK-NOT: scf.if
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c1 {
// CHECK-NEXT: vector.maskedload
// CHECK: return
func.func @apart(%x: memref<256x3xf32, strided<[4, 1]>>, %y: memref<256x3xf32, strided<[3, 1]>>)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<256x3xf32, strided<[4, 1]>> -> tensor<256x3xf32>
  tile.store %0, %y[%c0, %c0] : tensor<256x3xf32>, memref<256x3xf32, strided<[3, 1]>>
  return
}
