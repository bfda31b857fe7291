// A printed operation parses as an equal one, with every optional part of the syntax present and absent.
// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

// CHECK-LABEL: @programs
func.func @programs() -> (i64, i64) {
  // CHECK: tile.program_id 1
  // CHECK: tile.num_programs 2
  %0 = tile.program_id 1
  %1 = tile.num_programs 2
  return %0, %1 : i64, i64
}

// CHECK-LABEL: @elementwise
func.func @elementwise(%x: tensor<8xf32>, %n: tensor<8xi32>, %s: i64, %i: tensor<2x4xi64>) {
  // CHECK: tile.cast %{{.*}} : tensor<8xf32> to tensor<8xbf16>
  %0 = tile.cast %x : tensor<8xf32> to tensor<8xbf16>
  // CHECK: tile.cast %{{.*}} : i64 to f64
  %1 = tile.cast %s : i64 to f64
  // CHECK: tile.div %{{.*}}, %{{.*}} : tensor<8xi32>
  %2 = tile.div %n, %n : tensor<8xi32>
  // CHECK: tile.rem %{{.*}}, %{{.*}} : i64
  %3 = tile.rem %s, %s : i64
  // CHECK: tile.shl %{{.*}}, %{{.*}} : tensor<8xi32>
  %4 = tile.shl %n, %n : tensor<8xi32>
  // CHECK: tile.shr %{{.*}}, %{{.*}} : i64
  %5 = tile.shr %s, %s : i64
  // CHECK: tile.random %{{.*}}, %{{.*}} : tensor<2x4xi64> -> tensor<2x4xi32>
  %6 = tile.random %s, %i : tensor<2x4xi64> -> tensor<2x4xi32>
  // CHECK: tile.random %{{.*}}, %{{.*}} : i64 -> i32
  %7 = tile.random %s, %s : i64 -> i32
  // CHECK: tile.random %{{.*}}, %{{.*}} word 3 : i64 -> i32
  %word = tile.random %s, %s word 3 : i64 -> i32
  return
}

// CHECK-LABEL: @shapes
func.func @shapes(%s: bf16, %x: tensor<1x3xi1>, %one: tensor<1x1xf64>) {
  // CHECK: tile.iota : tensor<768xi64>
  %0 = tile.iota : tensor<768xi64>
  // CHECK: tile.splat %{{.*}} : bf16 -> tensor<1x2x3x4x5xbf16>
  %1 = tile.splat %s : bf16 -> tensor<1x2x3x4x5xbf16>
  // CHECK: tile.reshape %{{.*}} : tensor<1x2x3x4x5xbf16> -> tensor<120xbf16>
  %2 = tile.reshape %1 : tensor<1x2x3x4x5xbf16> -> tensor<120xbf16>
  // CHECK: tile.reshape %{{.*}} : tensor<1x1xf64> -> f64
  %3 = tile.reshape %one : tensor<1x1xf64> -> f64
  // CHECK: tile.broadcast %{{.*}} : tensor<1x3xi1> -> tensor<7x3xi1>
  %4 = tile.broadcast %x : tensor<1x3xi1> -> tensor<7x3xi1>
  // CHECK: tile.transpose %{{.*}} [2, 0, 1, 4, 3] : tensor<1x2x3x4x5xbf16> -> tensor<3x1x2x5x4xbf16>
  %5 = tile.transpose %1 [2, 0, 1, 4, 3] : tensor<1x2x3x4x5xbf16> -> tensor<3x1x2x5x4xbf16>
  // CHECK: tile.rotate %{{.*}} by 2 axis 1 : tensor<1x3xi1>
  %6 = tile.rotate %x by 2 axis 1 : tensor<1x3xi1>
  return
}

// CHECK-LABEL: @memory
func.func @memory(%v: memref<?x64xf32, strided<[?, 1]>>, %b: memref<?xi8, strided<[?]>>, %n: i64, %r: tensor<4xi64>) {
  // CHECK: tile.dim %{{.*}}, 1 : memref<?x64xf32, strided<[?, 1]>>
  %0 = tile.dim %v, 1 : memref<?x64xf32, strided<[?, 1]>>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] : memref<?x64xf32, strided<[?, 1]>> -> tensor<4x8xf32>
  %1 = tile.load %v[%n, %0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<4x8xf32>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] pad neg_zero :
  %2 = tile.load %v[%n, %n] pad neg_zero : memref<?x64xf32, strided<[?, 1]>> -> tensor<4x8xf32>
  // CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}] pad inf :
  %3 = tile.load %v[%n, %n] pad inf : memref<?x64xf32, strided<[?, 1]>> -> tensor<4x8xf32>
  // A tile of bool is loaded from a view of i8.
  // CHECK: tile.load %{{.*}}[%{{.*}}] : memref<?xi8, strided<[?]>> -> tensor<8xi1>
  %4 = tile.load %b[%n] : memref<?xi8, strided<[?]>> -> tensor<8xi1>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%{{.*}}] : tensor<8xi1>, memref<?xi8, strided<[?]>>
  tile.store %4, %b[%n] : tensor<8xi1>, memref<?xi8, strided<[?]>>
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}] pad nan : memref<?x64xf32, strided<[?, 1]>>, tensor<4xi64> -> tensor<4x8xf32>
  %5 = tile.gather %v[%r, %n] pad nan : memref<?x64xf32, strided<[?, 1]>>, tensor<4xi64> -> tensor<4x8xf32>
  // A gather from a view of rank 1 has elements as its rows.
  // CHECK: tile.gather %{{.*}}[%{{.*}}] : memref<?xi8, strided<[?]>>, tensor<4xi64> -> tensor<4xi8>
  %6 = tile.gather %b[%r] : memref<?xi8, strided<[?]>>, tensor<4xi64> -> tensor<4xi8>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<4x8xf32>, memref<?x64xf32, strided<[?, 1]>>, tensor<4xi64>
  tile.scatter %5, %v[%r, %n] : tensor<4x8xf32>, memref<?x64xf32, strided<[?, 1]>>, tensor<4xi64>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}}] : tensor<4xi8>, memref<?xi8, strided<[?]>>, tensor<4xi64>
  tile.scatter %6, %b[%r] : tensor<4xi8>, memref<?xi8, strided<[?]>>, tensor<4xi64>
  // CHECK: tile.atomic_rmw add relaxed %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] : tensor<4x8xf32>, memref<?x64xf32, strided<[?, 1]>>
  %7 = tile.atomic_rmw add relaxed %5, %v[%n, %n] : tensor<4x8xf32>, memref<?x64xf32, strided<[?, 1]>>
  // CHECK: tile.atomic_rmw add acq_rel
  %8 = tile.atomic_rmw add acq_rel %5, %v[%n, %n] : tensor<4x8xf32>, memref<?x64xf32, strided<[?, 1]>>
  // CHECK: tile.print "rows", %{{.*}} : tensor<4xi64>
  tile.print "rows", %r : tensor<4xi64>
  // CHECK: tile.check %{{.*}}, "expected \22true\22" : tensor<8xi1>
  tile.check %4, "expected \"true\"" : tensor<8xi1>
  return
}

// CHECK-LABEL: @promise
func.func @promise(%yes: i1) {
  // CHECK: tile.assume %{{.*}}
  tile.assume %yes
  return
}

// CHECK-LABEL: @reductions
func.func @reductions(%x: tensor<4x8xf32>, %v: tensor<8xi32>, %a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>,
                      %c: tensor<4x2xf32>) {
  // CHECK: tile.reduce sum %{{.*}} axis 0 : tensor<4x8xf32> -> tensor<8xf32>
  %0 = tile.reduce sum %x axis 0 : tensor<4x8xf32> -> tensor<8xf32>
  // CHECK: tile.reduce min %{{.*}} axis 0 : tensor<8xi32> -> i32
  %1 = tile.reduce min %v axis 0 : tensor<8xi32> -> i32
  // CHECK: tile.reduce argmax %{{.*}} axis 1 : tensor<4x8xf32> -> tensor<4xi32>
  %2 = tile.reduce argmax %x axis 1 : tensor<4x8xf32> -> tensor<4xi32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<4x2xf32>
  %3 = tile.dot %a, %b, %c : tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<4x2xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} precision tf32x3 :
  %4 = tile.dot %a, %b, %3 precision tf32x3 : tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<4x2xf32>
  return
}
