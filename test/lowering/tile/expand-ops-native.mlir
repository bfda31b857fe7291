// If the target's instructions round narrow floats once, they are used. Otherwise f32 is used in between.
// RUN: kiln-opt %s --tile-expand-ops=native-narrow | FileCheck %s
// RUN: kiln-opt %s --tile-expand-ops='native-narrow byte-products' | FileCheck %s --check-prefix=BYTES
// RUN: kiln-opt %s --tile-expand-ops='native-narrow byte-products coarse' | FileCheck %s --check-prefix=COARSE
// RUN: kiln-opt %s --tile-expand-ops | FileCheck %s --check-prefix=DETOUR

// CHECK-LABEL: @arithmetic
// CHECK: arith.addf %{{.*}} : tensor<4xbf16>
// CHECK: math.fma %{{.*}} : tensor<4xbf16>
// CHECK: arith.maxnumf %{{.*}} : tensor<4xbf16>
// CHECK: arith.cmpf olt, %{{.*}} : tensor<4xbf16>
// DETOUR-LABEL: @arithmetic
// DETOUR-NOT: {{(addf|fma|maxnumf|cmpf).*}}bf16
// DETOUR: return
func.func @arithmetic(%a: tensor<4xbf16>, %b: tensor<4xbf16>) -> tensor<4xi1> {
  %0 = arith.addf %a, %b : tensor<4xbf16>
  %1 = math.fma %0, %b, %a : tensor<4xbf16>
  %2 = arith.maxnumf %1, %b : tensor<4xbf16>
  %3 = arith.cmpf olt, %2, %b : tensor<4xbf16>
  return %3 : tensor<4xi1>
}

// A quotient has no such instruction.
// CHECK-LABEL: @quotient
// CHECK: arith.divf %{{.*}} : tensor<4xf32>
func.func @quotient(%a: tensor<4xf16>, %b: tensor<4xf16>) -> tensor<4xf16> {
  %0 = arith.divf %a, %b : tensor<4xf16>
  return %0 : tensor<4xf16>
}

// CHECK-LABEL: @to_half
// CHECK: arith.truncf %arg0 : tensor<4xf64> to tensor<4xf16>
// CHECK: arith.sitofp %arg1 : tensor<4xi64> to tensor<4xf16>
// DETOUR-LABEL: @to_half
// DETOUR-NOT: tensor<4xf64> to tensor<4xf16>
// DETOUR-NOT: tensor<4xi64> to tensor<4xf16>
// DETOUR: return
func.func @to_half(%a: tensor<4xf64>, %b: tensor<4xi64>) -> (tensor<4xf16>, tensor<4xf16>) {
  %0 = tile.cast %a : tensor<4xf64> to tensor<4xf16>
  %1 = tile.cast %b : tensor<4xi64> to tensor<4xf16>
  return %0, %1 : tensor<4xf16>, tensor<4xf16>
}

// An integer that is cast to f64 first is rounded twice, as the program states.
// CHECK-LABEL: @twice
// CHECK: %[[WIDE:.*]] = arith.sitofp %arg0 : tensor<4xi64> to tensor<4xf64>
// CHECK: %[[SETTLED:.*]] = math.copysign %[[WIDE]], %[[WIDE]]
// CHECK: arith.truncf %[[SETTLED]]
func.func @twice(%a: tensor<4xi64>) -> tensor<4xf16> {
  %0 = tile.cast %a : tensor<4xi64> to tensor<4xf64>
  %1 = tile.cast %0 : tensor<4xf64> to tensor<4xf16>
  return %1 : tensor<4xf16>
}

// Not every target has an instruction that rounds f64 to bf16.
// CHECK-LABEL: @to_bfloat
// CHECK-NOT: tensor<4xf64> to tensor<4xbf16>
// CHECK: return
func.func @to_bfloat(%a: tensor<4xf64>) -> tensor<4xbf16> {
  %0 = tile.cast %a : tensor<4xf64> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// If a target multiplies 8-bit floats, they stay bytes. Less precise sums must be permitted by the `dot`.
// BYTES-LABEL: @bytes
// BYTES: tile.dot {{[^{]*}} {tile.factors = [f8E4M3FN, f8E5M2]} : tensor<32x32xi8>, tensor<32x32xi8>, tensor<32x32xf32>
// BYTES: tile.dot {{.*}} precision tf32 {tile.factors = [f8E4M3FN, f8E5M2]} : tensor<32x32xi8>
// COARSE-LABEL: @bytes
// COARSE: tile.dot {{[^{]*}} : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32>
// COARSE: tile.dot {{.*}} precision tf32 {tile.coarse, tile.factors = [f8E4M3FN, f8E5M2]} : tensor<32x32xi8>
// DETOUR-LABEL: @bytes
// DETOUR: tile.dot {{.*}} : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32>
// DETOUR: tile.dot {{.*}} precision tf32 : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32>
func.func @bytes(%a: tensor<32x32xf8E4M3FN>, %b: tensor<32x32xf8E5M2>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = tile.dot %a, %b, %c : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E5M2>, tensor<32x32xf32>
  %1 = tile.dot %a, %b, %0 precision tf32 : tensor<32x32xf8E4M3FN>, tensor<32x32xf8E5M2>, tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}
