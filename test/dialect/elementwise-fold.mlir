// Operations on constants fold as their definitions state, and a cast of an exact cast is one cast.
// RUN: kiln-opt %s --canonicalize | FileCheck %s

// Float to integer truncates and saturates; NaN is 0.
// CHECK-LABEL: @saturate
func.func @saturate() -> (i8, i8, i32, i8) {
  %big = arith.constant 1.0e+10 : f32
  %low = arith.constant -300.5 : f32
  %nan = arith.constant 0x7FC00000 : f32
  %small = arith.constant -3.75 : f32
  %0 = tile.cast %big : f32 to i8
  %1 = tile.cast %low : f32 to i8
  %2 = tile.cast %nan : f32 to i32
  %3 = tile.cast %small : f32 to i8
  // CHECK-DAG: %[[MOST:.*]] = arith.constant 127 : i8
  // CHECK-DAG: %[[LEAST:.*]] = arith.constant -128 : i8
  // CHECK-DAG: %[[NONE:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[CUT:.*]] = arith.constant -3 : i8
  // CHECK: return %[[MOST]], %[[LEAST]], %[[NONE]], %[[CUT]]
  return %0, %1, %2, %3 : i8, i8, i32, i8
}

// Integers wrap. A bool widens to 0 or 1. Every number except 0 is true, and so is NaN.
// CHECK-LABEL: @integers
func.func @integers() -> (i8, i32, i1, i1, tensor<4xf32>) {
  %n = arith.constant 300 : i32
  %t = arith.constant true
  %nan = arith.constant 0x7FC00000 : f32
  %tile = arith.constant dense<true> : tensor<4xi1>
  %0 = tile.cast %n : i32 to i8
  %1 = tile.cast %t : i1 to i32
  %2 = tile.cast %n : i32 to i1
  %3 = tile.cast %nan : f32 to i1
  %4 = tile.cast %tile : tensor<4xi1> to tensor<4xf32>
  // CHECK-DAG: %[[LOW:.*]] = arith.constant 44 : i8
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK-DAG: %[[TRUE:.*]] = arith.constant true
  // CHECK-DAG: %[[TILE:.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
  // CHECK: return %[[LOW]], %[[ONE]], %[[TRUE]], %[[TRUE]], %[[TILE]]
  return %0, %1, %2, %3, %4 : i8, i32, i1, i1, tensor<4xf32>
}

// Ties go to even: 257 is between 256 and 258 in bf16.
// CHECK-LABEL: @nearest_even
func.func @nearest_even() -> bf16 {
  %x = arith.constant 257.0 : f32
  %0 = tile.cast %x : f32 to bf16
  // CHECK: arith.constant 2.560000e+02 : bf16
  return %0 : bf16
}

// CHECK-LABEL: @exact_casts
// CHECK-SAME: (%[[X:.*]]: tensor<4xbf16>, %[[N:.*]]: i8, %[[B:.*]]: i1)
func.func @exact_casts(%x: tensor<4xbf16>, %n: i8, %b: i1) -> (tensor<4xbf16>, i8, f32, i32) {
  %0 = tile.cast %x : tensor<4xbf16> to tensor<4xf32>
  %1 = tile.cast %0 : tensor<4xf32> to tensor<4xbf16>
  %2 = tile.cast %n : i8 to i64
  %3 = tile.cast %2 : i64 to i8
  // CHECK: %[[F:.*]] = tile.cast %[[B]] : i1 to f32
  %4 = tile.cast %b : i1 to i32
  %5 = tile.cast %4 : i32 to f32
  // CHECK: %[[I:.*]] = tile.cast %[[N]] : i8 to i32
  %6 = tile.cast %n : i8 to f32
  %7 = tile.cast %6 : f32 to i32
  // CHECK: return %[[X]], %[[N]], %[[F]], %[[I]]
  return %1, %3, %5, %7 : tensor<4xbf16>, i8, f32, i32
}

// The first cast rounds, wraps or saturates, so both stay.
// CHECK-LABEL: @inexact_casts
func.func @inexact_casts(%x: f32, %n: i32, %m: i64) -> (f32, i32, i8, f32) {
  // CHECK: tile.cast %{{.*}} : f32 to bf16
  // CHECK: tile.cast %{{.*}} : bf16 to f32
  %0 = tile.cast %x : f32 to bf16
  %1 = tile.cast %0 : bf16 to f32
  // CHECK: tile.cast %{{.*}} : i32 to f32
  // CHECK: tile.cast %{{.*}} : f32 to i32
  %2 = tile.cast %n : i32 to f32
  %3 = tile.cast %2 : f32 to i32
  // A cast of an integer to i8 takes the low bits; a cast of a float saturates.
  // CHECK: tile.cast %{{.*}} : i32 to f64
  // CHECK: tile.cast %{{.*}} : f64 to i8
  %4 = tile.cast %n : i32 to f64
  %5 = tile.cast %4 : f64 to i8
  // CHECK: tile.cast %{{.*}} : i64 to i32
  // CHECK: tile.cast %{{.*}} : i32 to f32
  %6 = tile.cast %m : i64 to i32
  %7 = tile.cast %6 : i32 to f32
  return %1, %3, %5, %7 : f32, i32, i8, f32
}

// x / 0 is 0, INT_MIN / -1 wraps, and the remainder has the dividend's sign.
// CHECK-LABEL: @division
func.func @division(%x: i32) -> (i32, i32, i32, i32, i32, i32) {
  %seven = arith.constant -7 : i32
  %two = arith.constant 2 : i32
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %least = arith.constant -2147483648 : i32
  %minus = arith.constant -1 : i32
  %0 = tile.div %seven, %two : i32
  %1 = tile.div %seven, %zero : i32
  %2 = tile.div %least, %minus : i32
  %3 = tile.rem %seven, %two : i32
  %4 = tile.rem %seven, %zero : i32
  %5 = tile.div %x, %one : i32
  // CHECK-DAG: %[[Q:.*]] = arith.constant -3 : i32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[LEAST:.*]] = arith.constant -2147483648 : i32
  // CHECK-DAG: %[[R:.*]] = arith.constant -1 : i32
  // CHECK-DAG: %[[SEVEN:.*]] = arith.constant -7 : i32
  // CHECK: return %[[Q]], %[[ZERO]], %[[LEAST]], %[[R]], %[[SEVEN]], %arg0
  return %0, %1, %2, %3, %4, %5 : i32, i32, i32, i32, i32, i32
}

// Shifts by the width or more, and by negative (huge, if unsigned) amounts, give 0 or the sign.
// CHECK-LABEL: @shifts
func.func @shifts(%x: tensor<4xi32>) -> (i32, i32, i32, i32, tensor<4xi32>) {
  %n = arith.constant -5 : i32
  %one = arith.constant 1 : i32
  %width = arith.constant 32 : i32
  %minus = arith.constant -1 : i32
  %none = arith.constant dense<0> : tensor<4xi32>
  %0 = tile.shl %n, %one : i32
  %1 = tile.shl %n, %width : i32
  %2 = tile.shr %n, %one : i32
  %3 = tile.shr %n, %minus : i32
  %4 = tile.shr %x, %none : tensor<4xi32>
  // CHECK-DAG: %[[TEN:.*]] = arith.constant -10 : i32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[HALF:.*]] = arith.constant -3 : i32
  // CHECK-DAG: %[[SIGN:.*]] = arith.constant -1 : i32
  // CHECK: return %[[TEN]], %[[ZERO]], %[[HALF]], %[[SIGN]], %arg0
  return %0, %1, %2, %3, %4 : i32, i32, i32, i32, tensor<4xi32>
}

// Division, shifts and casts of unsigned integers fold as unsigned.
// CHECK-LABEL: @unsigned
func.func @unsigned() -> (i8, i8, i8, i32, f32, i8) {
  %a = arith.constant -56 : i8
  %b = arith.constant 3 : i8
  %x = arith.constant 2.500000e+02 : f32
  %0 = tile.div %a, %b {tile.unsigned} : i8
  %1 = tile.rem %a, %b {tile.unsigned} : i8
  %2 = tile.shr %a, %b {tile.unsigned} : i8
  %3 = tile.cast %a {tile.unsigned} : i8 to i32
  %4 = tile.cast %a {tile.unsigned} : i8 to f32
  %5 = tile.cast %x {tile.unsigned} : f32 to i8
  // CHECK-DAG: %[[QUOTIENT:.*]] = arith.constant 66 : i8
  // CHECK-DAG: %[[REST:.*]] = arith.constant 2 : i8
  // CHECK-DAG: %[[SHIFTED:.*]] = arith.constant 25 : i8
  // CHECK-DAG: %[[WIDE:.*]] = arith.constant 200 : i32
  // CHECK-DAG: %[[REAL:.*]] = arith.constant 2.000000e+02 : f32
  // CHECK-DAG: %[[WHOLE:.*]] = arith.constant -6 : i8
  // CHECK: return %[[QUOTIENT]], %[[REST]], %[[SHIFTED]], %[[WIDE]], %[[REAL]], %[[WHOLE]]
  return %0, %1, %2, %3, %4, %5 : i8, i8, i8, i32, f32, i8
}

// A cast to an 8-bit float saturates at the largest finite number.
// CHECK-LABEL: @saturating_bytes
func.func @saturating_bytes(%z: tensor<4xi8>) -> (f8E4M3FN, f8E5M2, f8E4M3FN) {
  %x = arith.constant 1.000000e+06 : f32
  %y = arith.constant 0xFF800000 : f32
  %t = arith.constant 4.600000e+02 : f64
  %0 = tile.cast %x : f32 to f8E4M3FN
  %1 = tile.cast %y : f32 to f8E5M2
  %2 = tile.cast %t : f64 to f8E4M3FN
  // CHECK-DAG: %[[MOST:.*]] = arith.constant 4.480000e+02 : f8E4M3FN
  // CHECK-DAG: %[[LEAST:.*]] = arith.constant -5.734400e+04 : f8E5M2
  // CHECK: return %[[MOST]], %[[LEAST]], %[[MOST]]
  return %0, %1, %2 : f8E4M3FN, f8E5M2, f8E4M3FN
}

// A cast to a scale gives the nearest power of two. It has no zero, f16 has not all scales: such casts are not merged.
// CHECK-LABEL: @scales
func.func @scales(%s: f8E8M0FNU, %b: i1) -> (f8E8M0FNU, f8E8M0FNU, f8E8M0FNU, f8E8M0FNU, f32, f32, f32) {
  %tie = arith.constant 1.500000e+00 : f32
  %large = arith.constant 0x7F800000 : f32
  %negative = arith.constant -1.000000e+00 : bf16
  %most = arith.constant 6917529027641081855 : i64
  // CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f8E8M0FNU
  // CHECK-DAG: %[[MOST:.*]] = arith.constant 1.701410e+38 : f8E8M0FNU
  // CHECK-DAG: %[[NAN:.*]] = arith.constant 0xFF : f8E8M0FNU
  // CHECK-DAG: %[[BELOW:.*]] = arith.constant 4.611690e+18 : f8E8M0FNU
  %0 = tile.cast %tie : f32 to f8E8M0FNU
  %1 = tile.cast %large : f32 to f8E8M0FNU
  %2 = tile.cast %negative : bf16 to f8E8M0FNU
  %3 = tile.cast %most : i64 to f8E8M0FNU
  // CHECK: %[[ONE:.*]] = tile.cast %{{.*}} : i1 to f8E8M0FNU
  // CHECK: %[[REAL:.*]] = tile.cast %[[ONE]] : f8E8M0FNU to f32
  %4 = tile.cast %b : i1 to f8E8M0FNU
  %5 = tile.cast %4 : f8E8M0FNU to f32
  // CHECK: %[[HALF:.*]] = tile.cast %{{.*}} : f8E8M0FNU to f16
  // CHECK: %[[LIMITED:.*]] = tile.cast %[[HALF]] : f16 to f32
  %6 = tile.cast %s : f8E8M0FNU to f16
  %7 = tile.cast %6 : f16 to f32
  // CHECK: %[[KEPT:.*]] = tile.cast %{{.*}} : f8E8M0FNU to f32
  %8 = tile.cast %s : f8E8M0FNU to bf16
  %9 = tile.cast %8 : bf16 to f32
  // CHECK: return %[[TWO]], %[[MOST]], %[[NAN]], %[[BELOW]], %[[REAL]], %[[LIMITED]], %[[KEPT]]
  return %0, %1, %2, %3, %5, %7, %9 : f8E8M0FNU, f8E8M0FNU, f8E8M0FNU, f8E8M0FNU, f32, f32, f32
}
