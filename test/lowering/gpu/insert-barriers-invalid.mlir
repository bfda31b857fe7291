// An access that meets a copy which nobody has waited for is no matter of barriers.
// RUN: kiln-opt %s --split-input-file --gpu-insert-barriers --verify-diagnostics

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @unawaited(%a: memref<?xf32>, %n: i64) attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<384xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %at = arith.constant 0 : i32
  scf.for %i = %c0 to %n step %c1 : i64 {
    simt.wait_copies 2
    // expected-note@+1 {{which begin here}}
    simt.fetch %a[%i] to %ring[%at] slot [2, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
        : memref<?xf32>, memref<384xi8, 3>
    // expected-error@+1 {{'simt.read' op expected a wait for the copies that it meets}}
    %1 = simt.read %ring[%at] slot [0, 3] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
        : memref<384xi8, 3> -> tensor<32xf32, #row>
  }
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// Copies of the last rounds, which nobody reads, are under way still.
func.func @undrained(%a: memref<?xf32>, %n: i64, %t: tensor<32xf32, #row>)
    attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<256xi8, 3>
  %after = simt.buffer {offset = 0 : i64} : memref<128xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %at = arith.constant 0 : i32
  scf.for %i = %c0 to %n step %c1 : i64 {
    simt.wait_copies 0
    // expected-note@+1 {{which begin here}}
    simt.fetch %a[%i] to %ring[%at] slot [1, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
        : memref<?xf32>, memref<256xi8, 3>
  }
  // expected-error@+1 {{'simt.write' op expected a wait for the copies that it meets}}
  simt.write %t, %after by vectors in <32xf32, d0 [4, 8, 16, 32, 64]> : tensor<32xf32, #row>, memref<128xi8, 3>
  return
}
