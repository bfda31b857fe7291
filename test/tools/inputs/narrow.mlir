// Accesses that cannot move 16 bytes at a time, because of a width, of a stride, of a stride and an offset, or of the
// tile's own width.
#rows = strided<[1028, 1]>
func.func @narrow(%x: memref<?x100xf16, strided<[?, 1]>> {tile.align = 16 : i64},
                  %y: memref<?x1024xf16, #rows> {tile.align = 16 : i64}) attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64 %c12 = arith.constant 12 : i64
  %0 = tile.load %x[%c0, %c0] : memref<?x100xf16, strided<[?, 1]>> -> tensor<32x64xf16>
  %1 = tile.load %y[%c0, %c0] : memref<?x1024xf16, #rows> -> tensor<32x64xf16>
  %2 = tile.load %y[%c0, %c12] : memref<?x1024xf16, #rows> -> tensor<32x64xf16>
  %3 = tile.load %x[%c0, %c0] : memref<?x100xf16, strided<[?, 1]>> -> tensor<64x60xf16>
  tile.store %0, %x[%c0, %c0] : tensor<32x64xf16>, memref<?x100xf16, strided<[?, 1]>>
  tile.store %1, %x[%c0, %c0] : tensor<32x64xf16>, memref<?x100xf16, strided<[?, 1]>>
  tile.store %2, %x[%c0, %c0] : tensor<32x64xf16>, memref<?x100xf16, strided<[?, 1]>>
  tile.store %3, %x[%c0, %c0] : tensor<64x60xf16>, memref<?x100xf16, strided<[?, 1]>>
  return
}
