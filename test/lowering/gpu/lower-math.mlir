// Transcendental functions in arithmetic, and shifts that LLVM cannot mistake.
// RUN: kiln-opt %s --gpu-lower-math | FileCheck %s

// The polynomials of every machine, of the same degrees.
// CHECK-LABEL: @exp2
// CHECK-COUNT-5: math.fma {{.*}} : vector<4xf32>
// CHECK: arith.shli
// CHECK-NOT: math.exp2
// CHECK: return
func.func @exp2(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.exp2 %x : vector<4xf32>
  return %0 : vector<4xf32>
}

// CHECK-LABEL: @functions
// CHECK-NOT: math.{{exp|log|tanh|erf|rsqrt}}
// CHECK: return
func.func @functions(%x: vector<2xf64>, %y: f32) -> (vector<2xf64>, f32) {
  %0 = math.exp %x : vector<2xf64>
  %1 = math.log %0 : vector<2xf64>
  %2 = math.log2 %1 : vector<2xf64>
  %3 = math.tanh %2 : vector<2xf64>
  %4 = math.erf %3 : vector<2xf64>
  %5 = math.rsqrt %4 : vector<2xf64>
  %6 = math.exp %y : f32
  return %5, %6 : vector<2xf64>, f32
}

// A square root is taken exactly and divided by, exactly.
// CHECK-LABEL: @rsqrt
// CHECK: %[[ROOT:.*]] = math.sqrt %arg0
// CHECK: arith.divf %{{.*}}, %[[ROOT]]
func.func @rsqrt(%x: f32) -> f32 {
  %0 = math.rsqrt %x : f32
  return %0 : f32
}

// What PTX has stays, extremes as LLVM has them.
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

// An amount of 64 bits is masked, so that LLVM keeps the select behind the shift: PTX clamps amounts, but looks at 32 bits.
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

// 32 bits need no mask, nor does an amount that is known or masked already.
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
