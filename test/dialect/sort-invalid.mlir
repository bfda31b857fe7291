// Errors of the verifiers of sorts, takes and histograms.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.sort' op expected an axis from 0 to 1, but got 2}}
  %0:2 = tile.sort %x axis 2 : tensor<4x8xf32> -> tensor<4x8xf32>, tensor<4x8xi32>
  return
}

// -----

func.func @more(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.sort' op expected a result like its source with no more along the axis, but got 'tensor<4x8xf32>' and 'tensor<4x9xf32>'}}
  %0:2 = tile.sort %x axis 1 : tensor<4x8xf32> -> tensor<4x9xf32>, tensor<4x9xi32>
  return
}

// -----

func.func @positions(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.sort' op expected positions of i32, one for each of 'tensor<4x2xf32>', but got 'tensor<4x2xi64>'}}
  %0:2 = tile.sort %x axis 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
  return
}

// -----

func.func @keys(%x: tensor<8xf32>, %y: tensor<8xi32>) {
  // expected-error@+1 {{'tile.sort' op expected i32 or i64 in ascending order where 'by' is given, but got 'tensor<8xf32>'}}
  %0:2 = tile.sort %x by %y axis 0 : tensor<8xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xi32>
  return
}

// -----

func.func @ties(%x: tensor<8xi64>, %y: tensor<4xi32>) {
  // expected-error@+1 {{'tile.sort' op expected numbers of i32 for each of 'tensor<8xi64>', but got 'tensor<4xi32>'}}
  %0:2 = tile.sort %x by %y axis 0 : tensor<8xi64>, tensor<4xi32> -> tensor<8xi64>, tensor<8xi32>
  return
}

// -----

func.func @take_axis(%x: tensor<8xf32>, %y: tensor<4xi32>) {
  // expected-error@+1 {{'tile.take' op expected an axis from 0 to 0, but got -1}}
  %0 = tile.take %x[%y] axis -1 : tensor<8xf32>, tensor<4xi32> -> tensor<4xf32>
  return
}

// -----

func.func @take_extents(%x: tensor<3x8xf32>, %y: tensor<2x4xi32>) {
  // expected-error@+1 {{'tile.take' op expected extents that agree except along axis 1, but got 'tensor<3x8xf32>' and 'tensor<2x4xi32>'}}
  %0 = tile.take %x[%y] axis 1 : tensor<3x8xf32>, tensor<2x4xi32> -> tensor<2x4xf32>
  return
}

// -----

func.func @take_result(%x: tensor<8xf32>, %y: tensor<4xi32>) {
  // expected-error@+1 {{'tile.take' op expected a result of elements of 'tensor<8xf32>' for each of 'tensor<4xi32>', but got 'tensor<4xi32>'}}
  %0 = tile.take %x[%y] axis 0 : tensor<8xf32>, tensor<4xi32> -> tensor<4xi32>
  return
}

// -----

func.func @counts(%x: tensor<8xi32>) {
  // expected-error@+1 {{'tile.histogram' op expected counts of i32 in a tile of rank 1, but got 'tensor<2x4xi32>'}}
  %0 = tile.histogram %x : tensor<8xi32> -> tensor<2x4xi32>
  return
}

// -----

func.func @mask(%x: tensor<8xi32>, %m: tensor<4xi1>) {
  // expected-error@+1 {{'tile.histogram' op expected a mask for 'tensor<8xi32>', but got 'tensor<4xi1>'}}
  %0 = tile.histogram %x if %m : tensor<8xi32>, tensor<4xi1> -> tensor<16xi32>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
func.func @stages(%x: tensor<64xi32, #row>) {
  // expected-error@+1 {{'simt.sort' op expected stages [from, to] up to 21, but got [0, 22]}}
  %0 = simt.sort %x axis 0 stages [0, 22] : (tensor<64xi32, #row>) -> tensor<64xi32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>
func.func @warps(%x: tensor<64xi32, #row>) {
  // expected-error@+1 {{'simt.sort' op expected stages that warps do alone, but got 15}}
  %0 = simt.sort %x axis 0 stages [0, 21] : (tensor<64xi32, #row>) -> tensor<64xi32, #row>
  return
}

// -----

#row = #simt.layout<48, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp []>
func.func @power(%x: tensor<48xi32, #row>) {
  // expected-error@+1 {{'simt.sort' op expected a power of two along the axis, but got 48}}
  %0 = simt.sort %x axis 0 stages [0, 1] : (tensor<48xi32, #row>) -> tensor<48xi32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
func.func @simt_axis(%x: tensor<64xi32, #row>) {
  // expected-error@+1 {{'simt.sort' op expected an axis from 0 to 0, but got 1}}
  %0 = simt.sort %x axis 1 stages [0, 1] : (tensor<64xi32, #row>) -> tensor<64xi32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
func.func @simt_integers(%x: tensor<64xf32, #row>) {
  // expected-error@+1 {{'simt.sort' op expected integers in one layout, but got 'tensor<64xf32}}
  %0 = simt.sort %x axis 0 stages [0, 1] : (tensor<64xf32, #row>) -> tensor<64xf32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
func.func @simt_results(%x: tensor<64xi32, #row>) {
  // expected-error@+1 {{'simt.sort' op expected one tile or two, and results of their types}}
  %0 = simt.sort %x axis 0 stages [0, 1] : (tensor<64xi32, #row>) -> tensor<64xi64, #row>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
func.func @places(%buffer: memref<256xi8, 3>, %x: tensor<64xi64, #row>) {
  // expected-error@+1 {{'simt.count' op expected places of i32, but got 'tensor<64xi64}}
  simt.count %buffer[%x] : memref<256xi8, 3>, tensor<64xi64, #row>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
#other = #simt.layout<64, reg [d0:32], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
func.func @look_up(%buffer: memref<256xi8, 3>, %x: tensor<64xi32, #row>) {
  // expected-error@+1 {{'simt.look_up' op expected a place for each element in its layout, but got}}
  %0 = simt.look_up %buffer[%x] : memref<256xi8, 3>, tensor<64xi32, #row> -> tensor<64xf32, #other>
  return
}
