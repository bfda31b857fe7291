func.func @rows(%x: memref<?x16xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %rows = tile.load %x[%c0, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<4x16xf32>
  %sum = tile.reduce sum %rows axis 1 : tensor<4x16xf32> -> tensor<4xf32>
  %e = math.exp2 %sum : tensor<4xf32>
  %column = tile.reshape %e : tensor<4xf32> -> tensor<4x1xf32>
  %means = tile.broadcast %column : tensor<4x1xf32> -> tensor<4x16xf32>
  %y = arith.subf %rows, %means : tensor<4x16xf32>
  tile.store %y, %x[%c0, %c0] : tensor<4x16xf32>, memref<?x16xf32, strided<[?, 1]>>
  return
}
