// Loops whose bounds fit 32 bits get a 32-bit counter.
// RUN: kiln-opt %s --gpu-narrow-loops | FileCheck %s

// The end is an extent that fits. The loop may begin at any position from 0 on, because past its end it has no
// iterations.
// CHECK-LABEL: func @extent
// CHECK: %[[FIRST:.*]] = arith.minui %[[ID:.*]], %{{.*}} : i64
// CHECK: %[[BEGIN:.*]] = arith.trunci %[[FIRST]] : i64 to i32
// CHECK: %[[LEAST:.*]] = arith.minui %{{.*}}, %{{.*}} : i64
// CHECK: %[[END:.*]] = arith.trunci %[[LEAST]] : i64 to i32
// CHECK: scf.for %[[I:.*]] = %[[BEGIN]] to %[[END]] step %c64_i32 : i32
// CHECK-NEXT: %[[WIDE:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK-NEXT: tile.load %{{.*}}[%[[WIDE]]]
func.func @extent(%x: memref<?xf32> {tile.fits_32}) attributes {tile.kernel} {
  %c64 = arith.constant 64 : i64
  %begin = tile.program_id 0
  %end = tile.dim %x, 0 : memref<?xf32>
  scf.for %i = %begin to %end step %c64 : i64 {
    %0 = tile.load %x[%i] : memref<?xf32> -> tensor<64xf32>
  }
  return
}

// Unchanged: an extent without known limits, a beginning that may be negative, a step that is unknown or passes the end
// by far, and a function that is no kernel.
// CHECK-LABEL: func @refused
// CHECK-COUNT-4: step %{{.*}} : i64
func.func @refused(%x: memref<?xf32>, %y: memref<?xf32> {tile.fits_32}, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %far = arith.constant 1073741824 : i64
  %any = tile.dim %x, 0 : memref<?xf32>
  %end = tile.dim %y, 0 : memref<?xf32>
  scf.for %i = %c0 to %any step %c64 : i64 {
  }
  scf.for %i = %n to %end step %c64 : i64 {
  }
  scf.for %i = %c0 to %end step %n : i64 {
  }
  scf.for %i = %c0 to %end step %far : i64 {
  }
  return
}
// CHECK-LABEL: func @other
// CHECK: step %{{.*}} : i64
func.func @other(%x: memref<?xf32> {tile.fits_32}) {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %end = tile.dim %x, 0 : memref<?xf32>
  scf.for %i = %c0 to %end step %c64 : i64 {
  }
  return
}
