// Hints for caches, which loads and stores of blocks and of elements by name keep.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

void caches(View a, View n) {
  Tile ids = load(n, {0}, {4}, {.cache = Cache::evict_last});
  store(a, {3, ids}, load(a, {ids, 5}, {}, {.mask = ids == 7, .cache = Cache::evict_first}),
        {.cache = Cache::evict_last});
  store(a, {1, 2}, load(a, {1, 2}, {8}, {.cache = Cache::evict_normal}), {.cache = Cache::evict_first});
}
TEST(Caches, HintsAreKept) {
  EXPECT_EQ(programOf(kernel("k", caches), {view(f32, {64, 32}), view(i32, {64})}), R"(%c2_i64 = arith.constant 2 : i64
%c1_i64 = arith.constant 1 : i64
%c3_i64 = arith.constant 3 : i64
%c5_i64 = arith.constant 5 : i64
%cst = arith.constant dense<7> : tensor<4xi32>
%c0_i64 = arith.constant 0 : i64
%0 = tile.load %arg1[%c0_i64] {tile.cache = "keep"} : memref<?xi32, strided<[1]>> -> tensor<4xi32>
%1 = arith.cmpi eq, %0, %cst : tensor<4xi32>
%2 = tile.reshape %1 : tensor<4xi1> -> tensor<4x1xi1>
%3 = tile.gather %arg0[%0, %c5_i64] if %2 {tile.cache = "stream"} : memref<?x?xf32, strided<[?, 1]>>, tensor<4xi32> -> tensor<4x1xf32>
tile.scatter %3, %arg0[%c3_i64, %0] {tile.cache = "keep"} : tensor<4x1xf32>, memref<?x?xf32, strided<[?, 1]>>, i64, tensor<4xi32>
%4 = tile.load %arg0[%c1_i64, %c2_i64] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x8xf32>
tile.store %4, %arg0[%c1_i64, %c2_i64] {tile.cache = "stream"} : tensor<1x8xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

} // namespace
} // namespace kiln::testing
