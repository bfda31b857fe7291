// A constant tile of several values becomes a load of a read-only table. Equal tiles share one.
// RUN: kiln-opt %s --tile-place-constants --split-input-file | FileCheck %s

// CHECK: memref.global "private" constant @table_0 : memref<12xi8> = dense<[1, 0, 0, 0, 2, 0, 0, 0, -1, -1, -1, -1]> {alignment = 64 : i64}
// CHECK-NOT: memref.global
// CHECK-LABEL: @late
// CHECK: scf.for
// CHECK: }
// CHECK-DAG: %[[BYTES:.*]] = memref.get_global @table_0 : memref<12xi8>
// CHECK-DAG: %[[VIEW:.*]] = memref.view %[[BYTES]][%{{.*}}][] : memref<12xi8> to memref<3xi32>
// CHECK: %[[TILE:.*]] = tile.load %[[VIEW]][%{{.*}}] : memref<3xi32> -> tensor<3xi32>
// CHECK-NEXT: tile.store %[[TILE]]
// CHECK: memref.get_global @table_0
// CHECK: scf.if
// CHECK-NEXT: tile.store
// CHECK-NOT: dense
func.func @late(%x: memref<?xi32, strided<[1]>>, %yes: i1) attributes {tile.kernel} {
  %0 = arith.constant dense<[1, 2, -1]> : tensor<3xi32>
  %1 = arith.constant dense<[1, 2, -1]> : tensor<3xi32>
  %unused = arith.constant dense<[5, 6]> : tensor<2xi64>
  %same = arith.constant dense<7> : tensor<3xi32>
  %c0 = arith.constant 0 : i64
  %c8 = arith.constant 8 : i64
  scf.for %i = %c0 to %c8 step %c8 : i64 {
    tile.store %same, %x[%i] : tensor<3xi32>, memref<?xi32, strided<[1]>>
  }
  tile.store %0, %x[%c0] : tensor<3xi32>, memref<?xi32, strided<[1]>>
  scf.if %yes {
    tile.store %1, %x[%c8] : tensor<3xi32>, memref<?xi32, strided<[1]>>
  }
  return
}

// -----

// A bool takes a byte. A table's name is unused otherwise. Vectors of parts that are lowered already stay.
// CHECK: memref.global "private" constant @table_2 : memref<4xi8> = dense<[-128, 63, 0, -64]>
// CHECK: memref.global "private" constant @table_0 : memref<4xi8> = dense<[1, 0, 0, 1]>
// CHECK: @table_1
// CHECK: arith.constant dense<[1, 2]> : vector<2xi64>
// CHECK: memref.view %{{.*}} : memref<4xi8> to memref<2x2xi8>
// CHECK: tile.load {{.*}} : memref<2x2xi8> -> tensor<2x2xi1>
// CHECK: tile.load {{.*}} : memref<2xbf16> -> tensor<2xbf16>
llvm.mlir.global internal constant @table_1("text")
func.func @narrow(%x: memref<?x?xi8, strided<[?, 1]>>, %y: memref<?xbf16, strided<[1]>>) attributes {tile.kernel} {
  %0 = arith.constant dense<[[true, false], [false, true]]> : tensor<2x2xi1>
  %1 = arith.constant dense<[1.0, -2.0]> : tensor<2xbf16>
  %2 = arith.constant dense<[1, 2]> : vector<2xi64>
  %c0 = arith.constant 0 : i64
  tile.store %0, %x[%c0, %c0] : tensor<2x2xi1>, memref<?x?xi8, strided<[?, 1]>>
  tile.store %1, %y[%c0] : tensor<2xbf16>, memref<?xbf16, strided<[1]>>
  return
}
