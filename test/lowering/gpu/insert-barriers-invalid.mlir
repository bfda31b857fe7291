// A barrier cannot order an access that overlaps a copy or a product without a wait: that is an error.
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

// Copies of the last iterations are still in flight after the loop.
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

// -----

#copies = #simt.layout<64x16, reg [d1:1 d1:2 d1:4], lane [d1:8 d0:1 d0:2 d0:4 d0:8], warp [d0:16 d0:32]>
#sums = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// The copy fills one of three slots, which the previous iteration's product may still be reading.
func.func @multiplied(%a: memref<?x?xbf16>, %n: i64, %acc: tensor<64x64xf32, #sums>)
    attributes {tile.kernel, tile.warps = 4 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<6144xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %at = arith.constant 0 : i32
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %acc) -> (tensor<64x64xf32, #sums>) : i64 {
    simt.wait_copies 1 shown
    simt.barrier
    // expected-note@+1 {{which begin here}}
    %1 = simt.multiply %ring[%at] in <64x16xbf16, d0 [32, 64, 144, 256, 512, 1024], d1 [2, 4, 8, 16]>,
        %ring[%at] in <64x16xbf16, d0 [32, 64, 144, 256, 512, 1024], d1 [2, 4, 8, 16]> transposed, %sum slot [0, 3]
        : memref<6144xi8, 3>, memref<6144xi8, 3>, tensor<64x64xf32, #sums>
    // expected-error@+1 {{'simt.fetch' op expected a wait for the products that it meets}}
    simt.fetch %a[%i, %c0] to %ring[%at] slot [2, 3] by 8
        in <64x16xbf16, d0 [32, 64, 144, 256, 512, 1024], d1 [2, 4, 8, 16]> {layout = #copies}
        : memref<?x?xbf16>, memref<6144xi8, 3>
    simt.commit_copies
    %2 = simt.wait_multiply 1, %1 : tensor<64x64xf32, #sums>
    scf.yield %2 : tensor<64x64xf32, #sums>
  }
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// The copy to a constant slot meets the buffer that has its bytes.
func.func @slot(%a: memref<?xf32>, %n: i64, %t: tensor<32xf32, #row>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<256xi8, 3>
  %results = simt.buffer {offset = 128 : i64} : memref<128xi8, 3>
  %last = arith.constant 128 : i32
  // expected-note@+1 {{which begin here}}
  simt.fetch %a[%n] to %ring[%last] slot [0, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<256xi8, 3>
  // expected-error@+1 {{'simt.write' op expected a wait for the copies that it meets}}
  simt.write %t, %results by vectors in <32xf32, d0 [4, 8, 16, 32, 64]> : tensor<32xf32, #row>, memref<128xi8, 3>
  return
}

// -----

// An operation that is not known to access shared memory would get no barriers.
func.func @unknown(%at: index) -> i8 attributes {tile.kernel, tile.warps = 1 : i64} {
  %buffer = simt.buffer {offset = 0 : i64} : memref<256xi8, 3>
  // expected-error@+1 {{'memref.load' op expected an operation whose accesses of shared memory are known}}
  %0 = memref.load %buffer[%at] : memref<256xi8, 3>
  return %0 : i8
}
