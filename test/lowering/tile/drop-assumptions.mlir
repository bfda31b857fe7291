// An assumption is removed, with the operations that only it used. Other users of its condition stay.
// RUN: kiln-opt %s --tile-drop-assumptions --canonicalize | FileCheck %s

// CHECK-LABEL: @assumed
// CHECK-NOT: tile.assume
// CHECK-NOT: arith.remsi
// CHECK: arith.cmpi sgt
// CHECK-NOT: tile.assume
// CHECK: return
func.func @assumed(%n: i64) -> i1 attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c16 = arith.constant 16 : i64
  %rest = arith.remsi %n, %c16 : i64
  %whole = arith.cmpi eq, %rest, %c0 : i64
  %positive = arith.cmpi sgt, %n, %c0 : i64
  tile.assume %whole
  scf.if %whole {
    tile.assume %positive
  }
  return %positive : i1
}
