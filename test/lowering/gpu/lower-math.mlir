// Transcendental functions become arithmetic, and shifts are written so that LLVM preserves their results.
// RUN: kiln-opt %s --gpu-lower-math | FileCheck %s

// The polynomials have the same degrees on every machine.
// CHECK-LABEL: @exp2
// CHECK-COUNT-5: math.fma {{.*}} : vector<4xf32>
// CHECK: arith.shli
// CHECK-NOT: math.exp2
// CHECK: return
func.func @exp2(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.exp2 %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// In f64, an exact square root is followed by an exact division. In f32, a Newton step makes the approximation as
// accurate, except for 0, infinity and NaN, where the step would give NaN.
// CHECK-LABEL: @rsqrt
// CHECK-SAME: (%[[WIDE:.*]]: f64, %[[X:.*]]: f32)
// CHECK: %[[ROOT:.*]] = math.sqrt %[[WIDE]]
// CHECK: arith.divf %{{.*}}, %[[ROOT]]
// CHECK: %[[Y:.*]] = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%[[X]])
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[X]], %[[Y]]
// CHECK: %[[MINUS:.*]] = arith.negf %[[PRODUCT]]
// CHECK: %[[REST:.*]] = math.fma %[[MINUS]], %[[Y]], %cst
// CHECK: %[[HALF:.*]] = arith.mulf %[[Y]], %cst
// CHECK: %[[BETTER:.*]] = math.fma %[[HALF]], %[[REST]], %[[Y]]
// CHECK: %[[END:.*]] = arith.cmpf uno, %[[REST]], %[[REST]]
// CHECK: arith.select %[[END]], %[[Y]], %[[BETTER]]
func.func @rsqrt(%w: f64, %x: f32) -> (f64, f32) {
  %0 = math.rsqrt %w : f64
  %1 = math.rsqrt %x : f32
  return %0, %1 : f64, f32
}

// If approximation is permitted, one instruction computes each element.
// CHECK-LABEL: @fast
// CHECK: %[[PARTS:.*]]:2 = vector.to_elements %arg0 : vector<2xf32>
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[PARTS]]#0)
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[PARTS]]#1)
// CHECK: vector.from_elements
// CHECK: llvm.intr.tanh(%arg1) {fastmathFlags = #llvm.fastmath<afn>}
// CHECK: %[[LOG:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
// CHECK: %[[EXPONENT:.*]] = arith.mulf %[[LOG]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz"(%[[EXPONENT]])
// CHECK: %[[LN:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.ftz.f"
// CHECK: %[[PRODUCT:.*]] = arith.mulf %[[LN]]
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%[[PRODUCT]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.div.approx.ftz.f"
func.func @fast(%x: vector<2xf32>, %y: f32) -> (vector<2xf32>, f32) {
  %0 = math.exp2 %x {tile.accuracy = "fast"} : vector<2xf32>
  %1 = math.tanh %y {tile.accuracy = "fast"} : f32
  %2 = math.log2 %1 {tile.accuracy = "fast"} : f32
  %3 = math.exp %2 {tile.accuracy = "fast"} : f32
  %4 = math.log %3 {tile.accuracy = "fast"} : f32
  %5 = math.rsqrt %4 {tile.accuracy = "fast"} : f32
  %6 = arith.divf %5, %y {tile.accuracy = "fast"} : f32
  return %0, %6 : vector<2xf32>, f32
}

// A division of 1 is a reciprocal, which is not multiplied.
// CHECK-LABEL: @reciprocals
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK-NOT: div
func.func @reciprocals(%x: vector<2xf32>) -> vector<2xf32> {
  %one = arith.constant dense<1.0> : vector<2xf32>
  %0 = arith.divf %one, %x {tile.accuracy = "fast"} : vector<2xf32>
  return %0 : vector<2xf32>
}

// There is no such instruction in f64. The permission is removed.
// CHECK-LABEL: @fast_wide
// CHECK-NOT: tile.accuracy
// CHECK: arith.divf
// CHECK-NOT: {{call_intrinsic|tile.accuracy}}
// CHECK: return
func.func @fast_wide(%x: f64) -> f64 {
  %0 = arith.divf %x, %x {tile.accuracy = "fast"} : f64
  %1 = math.exp2 %0 {tile.accuracy = "fast"} : f64
  return %1 : f64
}

// Operations that PTX has are kept; minima and maxima become LLVM intrinsics.
// CHECK-LABEL: @kept
// CHECK-DAG: math.sqrt
// CHECK-DAG: math.fma
// CHECK-DAG: math.floor
// CHECK-DAG: llvm.intr.maxnum
// CHECK-DAG: arith.extf %{{.*}} : bf16 to f32
// CHECK: return
func.func @kept(%x: vector<4xf32>, %y: bf16) -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, f32) {
  %0 = math.sqrt %x : vector<4xf32>
  %1 = math.fma %x, %x, %x : vector<4xf32>
  %2 = math.floor %x : vector<4xf32>
  %3 = arith.maxnumf %x, %x : vector<4xf32>
  %4 = arith.extf %y : bf16 to f32
  return %0, %1, %2, %3, %4 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>, f32
}

// A 64-bit amount is masked, so that LLVM keeps the select after the shift: PTX clamps amounts, but reads only 32 bits.
// CHECK-LABEL: @shift
// CHECK-SAME: (%[[X:.*]]: i64, %[[N:.*]]: i64
// CHECK: %[[AMOUNT:.*]] = arith.andi %[[N]], %c63_i64
// CHECK: arith.shli %[[X]], %[[AMOUNT]] : i64
// CHECK: arith.andi %{{.*}}, %{{.*}} : vector<2xi64>
// CHECK-NEXT: arith.shrui
func.func @shift(%x: i64, %n: i64, %y: vector<2xi64>, %m: vector<2xi64>) -> (i64, vector<2xi64>) {
  %0 = arith.shli %x, %n : i64
  %1 = arith.shrui %y, %m : vector<2xi64>
  return %0, %1 : i64, vector<2xi64>
}

// A 32-bit amount needs no mask, nor does a known or masked one.
// CHECK-LABEL: @shift_kept
// CHECK-COUNT-1: arith.andi
// CHECK-NOT: arith.andi
// CHECK: return
func.func @shift_kept(%x: i64, %n: i64, %y: i32, %m: i32) -> (i32, i64, i64) {
  %c3 = arith.constant 3 : i64
  %0 = arith.shli %y, %m : i32
  %1 = arith.shli %x, %c3 : i64
  %low = arith.andi %n, %c3 : i64
  %2 = arith.shli %x, %low : i64
  return %0, %1, %2 : i32, i64, i64
}
