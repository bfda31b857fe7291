// The kernel becomes an entry with one 8-byte parameter for each slot of the argument block.
// RUN: kiln-opt %s --split-input-file --gpu-lower-kernel-arguments | FileCheck %s

// The parameters are three extents of the grid, then for each view its pointer, its dynamic extents and its dynamic
// strides. Static extents and strides take no slot.
// CHECK-LABEL: llvm.func ptx_kernelcc @views(
// CHECK-SAME: %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %[[A:.*]]: !llvm.ptr<1>, %[[E0:.*]]: i64, %[[E2:.*]]: i64, %[[S0:.*]]: i64, %[[S1:.*]]: i64, %[[B:.*]]: !llvm.ptr<1>)
func.func @views(%a: memref<?x64x?xf32, strided<[?, ?, 1]>>, %b: memref<8xi32, strided<[1]>>) attributes {tile.kernel} {
  // CHECK-DAG: llvm.ptrtoint %[[A]] : !llvm.ptr<1> to i64
  // CHECK-DAG: %[[BYTE:.*]] = llvm.ptrtoint %[[B]] : !llvm.ptr<1> to i64
  // CHECK-DAG: %[[ADDRESS:.*]] = arith.index_cast %[[BYTE]] : i64 to index
  // CHECK-DAG: %[[I0:.*]] = arith.index_cast %[[E0]] : i64 to index
  // CHECK-DAG: %[[I2:.*]] = arith.index_cast %[[E2]] : i64 to index
  // CHECK-DAG: %[[T0:.*]] = arith.index_cast %[[S0]] : i64 to index
  // CHECK-DAG: %[[T1:.*]] = arith.index_cast %[[S1]] : i64 to index
  // CHECK-DAG: %[[C64:.*]] = arith.constant 64 : index
  // CHECK-DAG: %[[D1:.*]] = arith.index_cast %[[C64]] : index to i64
  // CHECK-DAG: %[[D2:.*]] = arith.index_cast %[[I2]] : index to i64
  // CHECK: call @use(%[[ADDRESS]], %[[I0]], %[[T0]], %[[T1]], %[[D1]], %[[D2]])
  %base, %offset, %sizes:3, %strides:3 = memref.extract_strided_metadata %a : memref<?x64x?xf32, strided<[?, ?, 1]>>
      -> memref<f32>, index, index, index, index, index, index, index
  %address = memref.extract_aligned_pointer_as_index %b : memref<8xi32, strided<[1]>> -> index
  %n = tile.dim %a, 1 : memref<?x64x?xf32, strided<[?, ?, 1]>>
  %m = tile.dim %a, 2 : memref<?x64x?xf32, strided<[?, ?, 1]>>
  func.call @use(%address, %sizes#0, %strides#0, %strides#1, %n, %m) : (index, index, index, index, i64, i64) -> ()
  // CHECK: llvm.return
  return
}
func.func private @use(index, index, index, index, i64, i64)

// -----

// A scalar is in the low bytes of its slot. A bool is a byte, and true if that is not 0.
// CHECK-LABEL: llvm.func ptx_kernelcc @scalars(
// CHECK-SAME: %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64, %[[I32:.*]]: i64, %[[BF16:.*]]: i64, %[[F64:.*]]: i64, %[[BOOL:.*]]: i64, %[[I64:.*]]: i64)
func.func @scalars(%a: i32, %b: bf16, %c: f64, %d: i1, %e: i64) attributes {tile.kernel} {
  // CHECK-DAG: %[[A:.*]] = arith.trunci %[[I32]] : i64 to i32
  // CHECK-DAG: %[[WORD:.*]] = arith.trunci %[[BF16]] : i64 to i16
  // CHECK-DAG: %[[B:.*]] = arith.bitcast %[[WORD]] : i16 to bf16
  // CHECK-DAG: %[[C:.*]] = arith.bitcast %[[F64]] : i64 to f64
  // CHECK-DAG: %[[BYTE:.*]] = arith.trunci %[[BOOL]] : i64 to i8
  // CHECK-DAG: %[[D:.*]] = arith.cmpi ne, %[[BYTE]], %c0_i8
  // CHECK: call @use(%[[A]], %[[B]], %[[C]], %[[D]], %[[I64]])
  func.call @use(%a, %b, %c, %d, %e) : (i32, bf16, f64, i1, i64) -> ()
  return
}
func.func private @use(i32, bf16, f64, i1, i64)

// -----

// The grid's extents are parameters. The program's index is the thread block's, read once for each axis.
// CHECK-LABEL: llvm.func ptx_kernelcc @program(
// CHECK-SAME: %{{.*}}: i64, %{{.*}}: i64, %[[Z:.*]]: i64)
func.func @program() attributes {tile.kernel} {
  // CHECK: %[[Y:.*]] = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.y"() : () -> i32
  // CHECK-NEXT: %[[ID:.*]] = arith.extui %[[Y]] : i32 to i64
  // CHECK-NOT: ctaid
  // CHECK: call @use(%[[ID]], %[[ID]], %[[Z]])
  %y = tile.program_id 1
  %again = tile.program_id 1
  %nz = tile.num_programs 2
  func.call @use(%y, %again, %nz) : (i64, i64, i64) -> ()
  return
}
func.func private @use(i64, i64, i64)

// -----

// Comments of the PTX name the buffers in shared memory.
// CHECK-LABEL: module attributes {llvm.module_asm =
// CHECK-SAME: ["// kiln.shared shared 0 128 a.cc:12", "// kiln.shared shared 128 64 b.cc:7"]
func.func @shared() attributes {tile.kernel, simt.shared_bytes = 192 : i64,
                                simt.shared_parts = ["0 128 a.cc:12", "128 64 b.cc:7"]} {
  return
}

// -----

// A kernel has 32 threads for each warp. Its registers are limited so that an SM holds the requested programs.
// CHECK-LABEL: llvm.func ptx_kernelcc @usual(
// CHECK-SAME: ["nvvm.reqntid", "128"], ["nvvm.minctasm", "1"]
// CHECK-LABEL: llvm.func ptx_kernelcc @eight(
// CHECK-SAME: ["nvvm.reqntid", "256"], ["nvvm.minctasm", "2"]
func.func @usual() attributes {tile.kernel} {
  return
}
func.func @eight() attributes {tile.kernel, tile.programs = 2 : i64, tile.warps = 8 : i64} {
  return
}

// -----

// A launch must request shared memory beyond 48 KiB. A constant of the module has the size.
// CHECK-NOT: @small_shared_bytes
// CHECK: llvm.mlir.global external constant @large_shared_bytes(49280 : i64) {addr_space = 1 : i32
// CHECK-NOT: @small_shared_bytes
func.func @small() attributes {tile.kernel, simt.shared_bytes = 49152 : i64} {
  return
}
func.func @large() attributes {tile.kernel, simt.shared_bytes = 49280 : i64} {
  return
}

// -----

// A function that is not a kernel stays unchanged.
// CHECK-LABEL: func.func @other(%arg0: i32)
func.func @other(%n: i32) {
  return
}

// -----

// A table is in global memory at a known address, so it takes no slot.
// CHECK: llvm.mlir.global internal constant @table_0(dense<[1, 2, 3, 4]> : tensor<4xi8>) {addr_space = 1 : i32, alignment = 64 : i64} : !llvm.array<4 x i8>
// CHECK-LABEL: llvm.func ptx_kernelcc @table(%{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
memref.global "private" constant @table_0 : memref<4xi8> = dense<[1, 2, 3, 4]> {alignment = 64 : i64}
func.func @table() attributes {tile.kernel} {
  // CHECK: %[[TABLE:.*]] = llvm.mlir.addressof @table_0 : !llvm.ptr<1>
  // CHECK: %[[WORD:.*]] = llvm.ptrtoint %[[TABLE]] : !llvm.ptr<1> to i64
  // CHECK: %[[ADDRESS:.*]] = arith.index_cast %[[WORD]] : i64 to index
  // CHECK: call @use(%[[ADDRESS]])
  // CHECK-NOT: memref
  %c0 = arith.constant 0 : index
  %bytes = memref.get_global @table_0 : memref<4xi8>
  %view = memref.view %bytes[%c0][] : memref<4xi8> to memref<1xf32>
  %address = memref.extract_aligned_pointer_as_index %view : memref<1xf32> -> index
  func.call @use(%address) : (index) -> ()
  return
}
func.func private @use(index)

// -----

// A kernel for several problems has the parameters of each, after the launch's grid. Programs beyond the first
// problem's number use those of the second, and count from there in its grid.
// CHECK-LABEL: llvm.func ptx_kernelcc @problems(
// CHECK-SAME: i64, %arg1: i64, %arg2: i64, %[[X0:arg3]]: i64, %[[Y0:arg4]]: i64, %[[Z0:arg5]]: i64, %[[A0:arg6]]: !llvm.ptr<1>, %[[N0:arg7]]: i64,
// CHECK-SAME: %[[X1:arg8]]: i64, %[[Y1:arg9]]: i64, %[[Z1:arg10]]: i64, %[[A1:arg11]]: !llvm.ptr<1>, %[[N1:arg12]]: i64)
func.func @problems(%a: memref<?xi32>) attributes {tile.kernel, tile.problems = 2 : i64} {
  // CHECK: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK: %[[XY:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
  // CHECK: %[[XYZ:.*]] = arith.muli %[[XY]], %{{.*}} : i32
  // CHECK: %[[END:.*]] = arith.addi %[[ZERO]], %[[XYZ]] : i32
  // CHECK: %[[BLOCK:.*]] = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.ctaid.x"
  // CHECK: %[[LATER:.*]] = arith.cmpi uge, %[[BLOCK]], %[[END]] : i32
  // CHECK: %[[BEGIN:.*]] = arith.select %[[LATER]], %[[END]], %[[ZERO]] : i32
  // CHECK: %[[X:.*]] = arith.select %[[LATER]], %[[X1]], %[[X0]] : i64
  // CHECK: %[[Y:.*]] = arith.select %[[LATER]], %[[Y1]], %[[Y0]] : i64
  // CHECK: %[[A:.*]] = arith.select %[[LATER]], %[[A1]], %[[A0]] : !llvm.ptr<1>
  // CHECK: %[[N:.*]] = arith.select %[[LATER]], %[[N1]], %[[N0]] : i64
  // CHECK: %[[OWN:.*]] = arith.subi %[[BLOCK]], %[[BEGIN]] : i32
  // CHECK: %[[WIDE:.*]] = arith.trunci %[[X]] : i64 to i32
  // CHECK: %[[ROW:.*]] = arith.divui %[[OWN]], %[[WIDE]] : i32
  // CHECK: %[[HIGH:.*]] = arith.trunci %[[Y]] : i64 to i32
  // CHECK: %[[ID:.*]] = arith.remui %[[ROW]], %[[HIGH]] : i32
  // CHECK: %[[WORD:.*]] = arith.extui %[[ID]] : i32 to i64
  // CHECK: call @use(%[[WORD]], %[[Y]], %{{.*}}) : (i64, i64, i64) -> ()
  %y = tile.program_id 1
  %all = tile.num_programs 1
  %n = tile.dim %a, 0 : memref<?xi32>
  func.call @use(%y, %all, %n) : (i64, i64, i64) -> ()
  return
}
func.func private @use(i64, i64, i64)
