// RUN: kiln-opt %s --cpu-select-products | FileCheck %s
// RUN: kiln-opt %s --cpu-select-products='bf16-pairs=true i8-quads=true' | FileCheck %s --check-prefix=UNITS
// RUN: kiln-opt %s --cpu-select-products='bf16-pairs=true i8-quads=true tiles=true' | FileCheck %s --check-prefix=TILES

// CHECK-LABEL: func @bf16
// CHECK: %[[A:.*]] = arith.extf %{{.*}} : tensor<8x16xbf16> to tensor<8x16xf32>
// CHECK: %[[B:.*]] = arith.extf %{{.*}} : tensor<16x32xbf16> to tensor<16x32xf32>
// CHECK: tile.dot %[[A]], %[[B]], %{{.*}} : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
// UNITS-LABEL: func @bf16
// UNITS-NOT: arith.extf
// UNITS: tile.dot %{{.*}} {cpu.unit = "bf16_pairs"} : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>
// TILES-LABEL: func @bf16
// TILES: tile.dot %{{.*}} {cpu.unit = "bf16_tiles"}
func.func @bf16(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = tile.dot %a, %b, %c : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// A tile that only dot-product units read is rounded like their operands. A tile that is also stored keeps its
// denormals.
// CHECK-LABEL: func @rounded
// CHECK-NOT: cpu.flushes
// CHECK: return
// UNITS-LABEL: func @rounded
// UNITS: arith.truncf %arg0 {cpu.flushes} : tensor<16x8xf32> to tensor<16x8xbf16>
// UNITS: arith.truncf %arg1 : tensor<16x32xf32> to tensor<16x32xbf16>
// UNITS: return
func.func @rounded(%x: tensor<16x8xf32>, %y: tensor<16x32xf32>, %c: tensor<8x32xf32>, %v: memref<16x32xbf16, strided<[32, 1]>>) -> tensor<8x32xf32> {
  %c0 = arith.constant 0 : i64
  %a = arith.truncf %x : tensor<16x8xf32> to tensor<16x8xbf16>
  %b = arith.truncf %y : tensor<16x32xf32> to tensor<16x32xbf16>
  %t = tile.transpose %a [1, 0] : tensor<16x8xbf16> -> tensor<8x16xbf16>
  %0 = tile.dot %t, %b, %c : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>
  tile.store %b, %v[%c0, %c0] : tensor<16x32xbf16>, memref<16x32xbf16, strided<[32, 1]>>
  return %0 : tensor<8x32xf32>
}

// No dot-product unit takes f16.
// UNITS-LABEL: func @f16
// UNITS-COUNT-2: arith.extf
// UNITS: tile.dot %{{[^{]*}} : tensor<8x16xf32>
func.func @f16(%a: tensor<8x16xf16>, %b: tensor<16x32xf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = tile.dot %a, %b, %c : tensor<8x16xf16>, tensor<16x32xf16>, tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// A transposed operand is widened before it is transposed.
// CHECK-LABEL: func @transposed
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<16x8xf16> to tensor<16x8xf32>
// CHECK: %[[TURNED:.*]] = tile.transpose %[[WIDE]] [1, 0]
// CHECK: tile.dot %[[TURNED]]
func.func @transposed(%a: tensor<16x8xf16>, %b: tensor<16x32xf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %t = tile.transpose %a [1, 0] : tensor<16x8xf16> -> tensor<8x16xf16>
  %0 = tile.dot %t, %b, %c : tensor<8x16xf16>, tensor<16x32xf16>, tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// CHECK-LABEL: func @integers
// CHECK-COUNT-2: arith.extsi {{.*}} to tensor<8x8xi32>
// CHECK: tile.dot {{.*}} : tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>
// UNITS-LABEL: func @integers
// UNITS-NOT: arith.extsi
// UNITS: tile.dot %{{.*}} {cpu.unit = "i8_quads"}
// TILES-LABEL: func @integers
// TILES: tile.dot %{{.*}} {cpu.unit = "i8_tiles"}
func.func @integers(%a: tensor<8x8xi8>, %c: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %0 = tile.dot %a, %a, %c : tensor<8x8xi8>, tensor<8x8xi8>, tensor<8x8xi32>
  return %0 : tensor<8x8xi32>
}

// The depth is no multiple of a word.
// UNITS-LABEL: func @part_of_a_word
// UNITS-COUNT-2: arith.extf {{.*}} to tensor<7x7xf32>
// UNITS-COUNT-2: arith.extsi {{.*}} to tensor<6x6xi32>
// UNITS-NOT: cpu.unit
// UNITS: return
func.func @part_of_a_word(%a: tensor<7x7xbf16>, %b: tensor<7x7xf32>, %c: tensor<6x6xi8>, %d: tensor<6x6xi32>)
    -> (tensor<7x7xf32>, tensor<6x6xi32>) {
  %0 = tile.dot %a, %a, %b : tensor<7x7xbf16>, tensor<7x7xbf16>, tensor<7x7xf32>
  %1 = tile.dot %c, %c, %d : tensor<6x6xi8>, tensor<6x6xi8>, tensor<6x6xi32>
  return %0, %1 : tensor<7x7xf32>, tensor<6x6xi32>
}

// Operands of the accumulator's type are unchanged.
// CHECK-LABEL: func @wide
// CHECK-NOT: arith.ext
// CHECK: return
func.func @wide(%a: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %0 = tile.dot %a, %a, %a : tensor<8x8xf64>, tensor<8x8xf64>, tensor<8x8xf64>
  return %0 : tensor<8x8xf64>
}

// In a batched product, the last dimension of a is the summed one; the one before it is odd.
// UNITS-LABEL: func @batched
// UNITS: tile.dot %{{.*}} {cpu.unit = "bf16_pairs"} : tensor<2x3x16xbf16>
func.func @batched(%a: tensor<2x3x16xbf16>, %b: tensor<2x16x32xbf16>, %c: tensor<2x3x32xf32>) -> tensor<2x3x32xf32> {
  %0 = tile.dot %a, %b, %c : tensor<2x3x16xbf16>, tensor<2x16x32xbf16>, tensor<2x3x32xf32>
  return %0 : tensor<2x3x32xf32>
}
