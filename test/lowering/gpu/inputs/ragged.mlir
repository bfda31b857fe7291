// Rows of 50257 elements that begin at multiples of 16 elements: f32 rows are read, and bf16 rows are written.
#rows = strided<[?, 1]>
func.func @ragged(%x: memref<?x50257xf32, #rows> {tile.align = 16 : i64, tile.strides_by_16},
                  %y: memref<?x50257xbf16, #rows> {tile.align = 16 : i64, tile.strides_by_16})
    attributes {tile.kernel, tile.warps = 8 : i64} {
  %c32 = arith.constant 32 : i64 %c256 = arith.constant 256 : i64
  %p = tile.program_id 0
  %q = tile.program_id 1
  %m = arith.muli %p, %c32 : i64
  %n = arith.muli %q, %c256 : i64
  %0 = tile.load %x[%m, %n] : memref<?x50257xf32, #rows> -> tensor<32x256xf32>
  %1 = arith.truncf %0 : tensor<32x256xf32> to tensor<32x256xbf16>
  tile.store %1, %y[%m, %n] : tensor<32x256xbf16>, memref<?x50257xbf16, #rows>
  return
}
