// RUN: kiln-opt %s --cpu-lower-kernel-arguments | FileCheck %s

// The function has three arguments for every kernel. A constant has the scratch bytes. No kernel attribute remains.

// CHECK: llvm.mlir.global external constant @empty_scratch_bytes(192 : i64)
// CHECK-LABEL: func.func @empty(
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.align = 8 : i64, llvm.noalias, llvm.noundef, llvm.readonly},
// CHECK-SAME: %{{.*}}: i64 {llvm.noundef},
// CHECK-SAME: %{{.*}}: !llvm.ptr {llvm.align = 64 : i64, llvm.noalias, llvm.noundef}) {
func.func @empty(%scratch: memref<?xi8>) attributes {tile.kernel, tile.disjoint = [], cpu.scratch_bytes = 192 : i64} {
  return
}

// A view takes a slot for its pointer, then one for each dynamic extent, then one for each dynamic stride. Slots 0 to 2
// are the grid. Static extents and strides take none.

// CHECK-LABEL: func.func @views(
// CHECK-SAME: %[[ARGS:[a-z0-9]*]]: !llvm.ptr
func.func @views(%a: memref<?x64x?xf32, strided<[?, ?, 1]>>, %b: memref<8xi32, strided<[1]>>, %scratch: memref<?xi8>)
    attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  // CHECK: %[[P3:.*]] = llvm.getelementptr %[[ARGS]][3] : (!llvm.ptr) -> !llvm.ptr, i64
  // CHECK: %[[DATA:.*]] = llvm.load %[[P3]] invariant {alignment = 8 : i64} : !llvm.ptr -> !llvm.ptr
  // CHECK: llvm.getelementptr %[[ARGS]][4]
  // CHECK: %[[E0:.*]] = arith.index_cast
  // CHECK: llvm.getelementptr %[[ARGS]][5]
  // CHECK: %[[E2:.*]] = arith.index_cast
  // CHECK: llvm.getelementptr %[[ARGS]][6]
  // CHECK: %[[S0:.*]] = arith.index_cast
  // CHECK: llvm.getelementptr %[[ARGS]][7]
  // CHECK: %[[S1:.*]] = arith.index_cast
  // CHECK: llvm.insertvalue %[[DATA]]
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [%[[E0]], 64, %[[E2]]], strides: [%[[S0]], %[[S1]], 1] : memref<f32> to memref<?x64x?xf32, strided<[?, ?, 1]>>
  // CHECK: llvm.getelementptr %[[ARGS]][8]
  // CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [8], strides: [1] : memref<i32> to memref<8xi32, strided<[1]>>
  // CHECK-NOT: llvm.getelementptr
  // CHECK: return
  %c0 = arith.constant 0 : index
  %x = memref.load %a[%c0, %c0, %c0] : memref<?x64x?xf32, strided<[?, ?, 1]>>
  %y = memref.load %b[%c0] : memref<8xi32, strided<[1]>>
  return
}

// A scalar takes one slot and is read with its own type. A bool is a byte, and true if that is not 0.

// CHECK-LABEL: func.func @scalars(
func.func @scalars(%a: f32, %b: i1, %c: bf16, %d: i64, %out: memref<4xf32, strided<[1]>>, %scratch: memref<?xi8>)
    attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  // CHECK: llvm.load {{.*}} -> f32
  // CHECK: getelementptr %{{.*}}[4]
  // CHECK: %[[BYTE:.*]] = llvm.load {{.*}} -> i8
  // CHECK: arith.cmpi ne, %[[BYTE]], %c0_i8
  // CHECK: getelementptr %{{.*}}[5]
  // CHECK: llvm.load {{.*}} -> bf16
  // CHECK: getelementptr %{{.*}}[6]
  // CHECK: llvm.load {{.*}} -> i64
  // CHECK: getelementptr %{{.*}}[7]
  return
}

// The scratch memory's extent is the number of bytes.

// CHECK-LABEL: func.func @scratch(
// CHECK-SAME: %[[S:[a-z0-9]*]]: !llvm.ptr {llvm.align = 64
func.func @scratch(%scratch: memref<?xi8>) attributes {tile.kernel, cpu.scratch_bytes = 4096 : i64} {
  // CHECK: llvm.insertvalue %[[S]]
  // CHECK: %[[M:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [4096], strides: [1] : memref<i8> to memref<?xi8>
  // CHECK: memref.view %[[M]]
  %c0 = arith.constant 0 : index
  %v = memref.view %scratch[%c0][] : memref<?xi8> to memref<1024xf32>
  %x = memref.load %v[%c0] : memref<1024xf32>
  return
}

// program = x + grid[0] * (y + grid[1] * z).

// CHECK-LABEL: func.func @program(
// CHECK-SAME: %[[ARGS:[a-z0-9]*]]: !llvm.ptr {{[^%]*}}, %[[P:[a-z0-9]*]]: i64
func.func @program(%scratch: memref<?xi8>) attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  // CHECK: llvm.getelementptr %[[ARGS]][0]
  // CHECK: %[[G0:.*]] = llvm.load
  // CHECK: %[[YZ:.*]] = arith.divui %[[P]], %[[G0]] : i64
  // CHECK: llvm.getelementptr %[[ARGS]][1]
  // CHECK: %[[G1:.*]] = llvm.load
  // CHECK: %[[Y:.*]] = arith.remui %[[YZ]], %[[G1]] : i64
  // CHECK: %[[X:.*]] = arith.remui %[[P]], %[[G0]] : i64
  // CHECK: call @use(%[[Y]], %[[X]], %[[G1]], %[[Y]])
  %y = tile.program_id 1
  %x = tile.program_id 0
  %ny = tile.num_programs 1
  %again = tile.program_id 1
  func.call @use(%y, %x, %ny, %again) : (i64, i64, i64, i64) -> ()
  return
}
func.func private @use(i64, i64, i64, i64)

// The extent of a view is the value of its slot; a static one is a constant.

// CHECK-LABEL: func.func @dim(
func.func @dim(%v: memref<?x64xf32, strided<[?, 1]>>, %scratch: memref<?xi8>)
    attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  // CHECK: memref.reinterpret_cast {{.*}}, sizes: [%[[D:.*]], 64], {{.*}} to memref<?x64xf32
  // CHECK-DAG: %[[N:.*]] = arith.index_cast %[[D]] : index to i64
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
  // CHECK-DAG: %[[M:.*]] = arith.index_cast %[[C64]] : index to i64
  // CHECK: call @use2(%[[N]], %[[M]])
  %n = tile.dim %v, 0 : memref<?x64xf32, strided<[?, 1]>>
  %m = tile.dim %v, 1 : memref<?x64xf32, strided<[?, 1]>>
  func.call @use2(%n, %m) : (i64, i64) -> ()
  return
}
func.func private @use2(i64, i64)
