// Masked bytes, each twice, are exchanged through shared memory in pairs and stored in fours.
func.func @bytes(%x: memref<?x37xi8, strided<[?, 1]>>, %k: memref<16x?xi16, strided<[?, 1]>> {tile.strides_by_16},
                 %y: memref<19x?xi8, strided<[?, 1]>> {tile.align = 64 : i64, tile.strides_by_16})
    attributes {tile.disjoint = [array<i64: 0, 2>, array<i64: 1, 2>], tile.kernel, tile.warps = 2 : i64} {
  %c0 = arith.constant 0 : i64
  %five = arith.constant dense<5> : tensor<16x24xi16>
  %0 = tile.load %k[%c0, %c0] : memref<16x?xi16, strided<[?, 1]>> -> tensor<16x24xi16>
  %1 = arith.cmpi ne, %0, %five : tensor<16x24xi16>
  %2 = tile.gather %x[%c0, %c0] if %1 : memref<?x37xi8, strided<[?, 1]>> -> tensor<16x24xi8>
  %3 = tile.reshape %2 : tensor<16x24xi8> -> tensor<16x24x1xi8>
  %4 = tile.broadcast %3 : tensor<16x24x1xi8> -> tensor<16x24x2xi8>
  %5 = tile.reshape %4 : tensor<16x24x2xi8> -> tensor<16x48xi8>
  tile.store %5, %y[%c0, %c0] : tensor<16x48xi8>, memref<19x?xi8, strided<[?, 1]>>
  return
}
