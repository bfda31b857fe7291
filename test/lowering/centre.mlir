// The kernel that lowering/README.md follows through the pipeline; each RUN line shows one of the stages printed there.
//
// RUN: kiln-opt %s --kiln="target=x86-64-v4 until=loops" --mlir-print-ir-after=cpu-forward-loads -o /dev/null 2>&1 | FileCheck %s --check-prefix=FORWARD
// RUN: kiln-opt %s --kiln="target=x86-64-v4 until=loops" --mlir-print-ir-before=cpu-allocate-scratch -o /dev/null 2>&1 | FileCheck %s --check-prefix=TILES
// RUN: kiln-opt %s --kiln="target=x86-64-v4 until=loops" | FileCheck %s --check-prefix=LOOPS
// RUN: kiln-opt %s --kiln="target=x86-64-v3 until=loops" | FileCheck %s --check-prefix=AVX2
// RUN: kiln-opt %s --kiln="target=x86-64-v4" | FileCheck %s --check-prefix=LLVM
// RUN: kiln-opt %s --kiln="target=cpu:generic until=loops" --mlir-print-ir-after=generic-lower-to-linalg -o /dev/null 2>&1 | FileCheck %s --check-prefix=LINALG

// Subtracts from each row its mean, in place. Each program has four rows.
func.func @centre(%x: memref<?x16xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c4 = arith.constant 4 : i64
  %width = arith.constant dense<16.0> : tensor<4xf32>
  %p = tile.program_id 0
  %m = arith.muli %p, %c4 : i64
  %rows = tile.load %x[%m, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<4x16xf32>
  %sum = tile.reduce sum %rows axis 1 : tensor<4x16xf32> -> tensor<4xf32>
  %mean = arith.divf %sum, %width : tensor<4xf32>
  %column = tile.reshape %mean : tensor<4xf32> -> tensor<4x1xf32>
  %means = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x16xf32>
  %y = arith.subf %rows, %means : tensor<4x16xf32>
  tile.store %y, %x[%m, %c0] : tensor<4x16xf32>, memref<?x16xf32, strided<[?, 1]>>
  return
}

// FORWARD: tile.load {{.*}} {cpu.view}

// TILES: memref.alloca() {alignment = 64 : i64} : memref<16xf32>
// TILES: scf.for
// TILES: vector.maskedload %arg0
// TILES: memref.store
// TILES: scf.for
// TILES: vector.maskedstore %arg0
// TILES-NOT: tensor<

// LOOPS: llvm.mlir.global external constant @centre_scratch_bytes(64 : i64)
// LOOPS: func.func @centre(%{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: i64 {{.*}}, %{{.*}}: !llvm.ptr
// LOOPS-NOT: tile.
// LOOPS-NOT: memref.alloc
// LOOPS: memref.view
// LOOPS: vector.maskedload {{.*}} into vector<16xf32>

// AVX2: vector.maskedload {{.*}} into vector<8xf32>
// AVX2-NOT: vector<16xf32>

// LLVM: llvm.func @centre(
// LLVM-NOT: unrealized_conversion_cast
// LLVM: llvm.intr.masked.load
// LLVM: llvm.intr.masked.store

// LINALG: linalg.generic
// LINALG: arith.subf
