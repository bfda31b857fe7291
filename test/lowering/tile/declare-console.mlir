// The texts of checks and prints become constants of the module; equal texts share one.
// RUN: kiln-opt %s --tile-declare-console | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @[[MESSAGE:text_[0-9]+]]("out of range\00")
// CHECK-DAG: llvm.mlir.global internal constant @[[LABEL:text_[0-9]+]]("x\00")
// CHECK-DAG: func.func private @kiln_check_failed(!llvm.ptr, !llvm.ptr, i64, i64)
// CHECK-DAG: func.func private @kiln_print(!llvm.ptr, i64, i32, i64, !llvm.ptr, !llvm.ptr)

// CHECK-LABEL: func.func @k
// CHECK: tile.check %arg0, "out of range" {tile.message = @[[MESSAGE]], tile.where = @{{text_[0-9]+}}}
// CHECK: tile.check %arg0, "out of range" {tile.message = @[[MESSAGE]]
// CHECK: tile.print "x", %arg1 {tile.label = @[[LABEL]]}
func.func @k(%ok: i1, %x: tensor<4xf32>) {
  tile.check %ok, "out of range" : i1
  tile.check %ok, "out of range" : i1
  tile.print "x", %x : tensor<4xf32>
  return
}
