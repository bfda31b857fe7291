// Sorts are padded to powers of two with the largest number at the end, and the first elements are taken.
// RUN: kiln-opt %s --gpu-pad-sorts | FileCheck %s

// CHECK-LABEL: func @first
// CHECK-DAG: arith.constant dense<2147483647> : tensor<1x128x1xi32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x128x1xi1>, tensor<1x128x1xi32>
// CHECK: %[[SORTED:.*]], %{{.*}} = tile.sort %{{.*}} axis 0 : tensor<128xi32> -> tensor<128xi32>, tensor<128xi32>
// CHECK: tile.extract %[[SORTED]] begin [0] steps [1] : tensor<128xi32> -> tensor<40xi32>
func.func @first(%x: tensor<100xi32>) -> tensor<40xi32> {
  %0:2 = tile.sort %x axis 0 : tensor<100xi32> -> tensor<40xi32>, tensor<40xi32>
  return %0#0 : tensor<40xi32>
}

// Tiles that are sorted along with the keys are padded, too.
// CHECK-LABEL: func @ties
// CHECK: tile.sort %{{.*}} by %{{.*}} axis 1 : tensor<2x4x5xi64>, tensor<2x4x5xi32> -> tensor<2x4x5xi64>, tensor<2x4x5xi32>
// CHECK: tile.extract %{{.*}} begin [0, 0, 0] steps [1, 1, 1] : tensor<2x4x5xi32> -> tensor<2x3x5xi32>
func.func @ties(%x: tensor<2x3x5xi64>, %y: tensor<2x3x5xi32>) -> tensor<2x3x5xi32> {
  %0:2 = tile.sort %x by %y axis 1 : tensor<2x3x5xi64>, tensor<2x3x5xi32> -> tensor<2x3x5xi64>, tensor<2x3x5xi32>
  return %0#1 : tensor<2x3x5xi32>
}

// CHECK-LABEL: func @whole
// CHECK-NEXT: tile.sort
// CHECK-NEXT: return
func.func @whole(%x: tensor<64xi32>) -> tensor<64xi32> {
  %0:2 = tile.sort %x axis 0 : tensor<64xi32> -> tensor<64xi32>, tensor<64xi32>
  return %0#0 : tensor<64xi32>
}

// The smallest quarter is selected from sorted blocks of that size. Two blocks are compared, one of them reversed, and
// the smaller of each pair is kept. These are in bitonic order, which the last level of a sort puts in order.
// CHECK-LABEL: func @few
// CHECK: %[[BLOCKS:.*]] = tile.reshape %{{.*}} : tensor<2x32xi32> -> tensor<2x4x8x1xi32>
// CHECK: %[[LOW:.*]] = tile.extract %[[BLOCKS]] begin [0, 0, 0, 0] steps [1, 1, 1, 1] : tensor<2x4x8x1xi32> -> tensor<2x2x8x1xi32>
// CHECK: %[[A:.*]], %{{.*}} = tile.sort %[[LOW]] axis 2 {simt.layout = #simt.layout<2x2x8x1, reg [], lane [d2:1 d2:2 d2:4 d0:1 d1:1], warp [* *]>} : tensor<2x2x8x1xi32>
// CHECK: %[[HIGH:.*]] = tile.extract %[[BLOCKS]] begin [0, 2, 0, 0]
// CHECK: %[[OTHER:.*]] = arith.xori %[[HIGH]], %{{.*}}
// CHECK: %[[SORTED:.*]], %{{.*}} = tile.sort %[[OTHER]] axis 2 {simt.layout = {{.*}}} : tensor<2x2x8x1xi32>
// CHECK: %[[B:.*]] = arith.xori %[[SORTED]], %{{.*}}
// CHECK: %[[SMALLER:.*]] = arith.minsi %[[A]], %[[B]]
// CHECK: tile.extract %[[SMALLER]] {{.*}} -> tensor<2x1x8x1xi32>
// CHECK: tile.sort %{{.*}} axis 2 {simt.bitonic, simt.layout = {{.*}}} : tensor<2x1x8x1xi32>
// CHECK: tile.extract %[[SMALLER]] begin [0, 1, 0, 0]
// CHECK: tile.sort %{{.*}} axis 2 {simt.bitonic, {{.*}}
// CHECK: arith.minsi
// CHECK: %[[BEST:.*]], %{{.*}} = tile.sort %{{.*}} axis 2 {simt.bitonic, simt.layout = {{.*}}} : tensor<2x1x8x1xi32>
// CHECK: %[[LINES:.*]] = tile.reshape %[[BEST]] : tensor<2x1x8x1xi32> -> tensor<2x8xi32>
// CHECK: tile.extract %[[LINES]] begin [0, 0] steps [1, 1] : tensor<2x8xi32> -> tensor<2x5xi32>
func.func @few(%x: tensor<2x32xi32>) -> tensor<2x5xi32> {
  %0:2 = tile.sort %x axis 1 : tensor<2x32xi32> -> tensor<2x5xi32>, tensor<2x5xi32>
  return %0#0 : tensor<2x5xi32>
}

// If second keys order equal elements, both keys are reversed and selected.
// CHECK-LABEL: func @few_ties
// CHECK-COUNT-2: tile.sort %{{.*}} by %{{.*}} axis 2 {simt.layout = {{.*}}} : tensor<1x2x2x3xi64>
// CHECK: %[[EQUAL:.*]] = arith.cmpi eq
// CHECK: %[[LESS:.*]] = arith.cmpi slt
// CHECK: %[[TIE:.*]] = arith.cmpi slt
// CHECK: %[[BOTH:.*]] = arith.andi %[[EQUAL]], %[[TIE]]
// CHECK: %[[FIRST:.*]] = arith.ori %[[LESS]], %[[BOTH]]
// CHECK: arith.select %[[FIRST]]
// CHECK: arith.select %[[FIRST]]
// CHECK: tile.sort %{{.*}} by %{{.*}} axis 2 {simt.bitonic, simt.layout = {{.*}}} : tensor<1x1x2x3xi64>
func.func @few_ties(%x: tensor<8x3xi64>, %y: tensor<8x3xi32>) -> tensor<2x3xi32> {
  %0:2 = tile.sort %x by %y axis 0 : tensor<8x3xi64>, tensor<8x3xi32> -> tensor<2x3xi64>, tensor<2x3xi32>
  return %0#1 : tensor<2x3xi32>
}
