// Hints for caches, which loads and stores of blocks and of elements by name keep, and the scopes and masks of atomics.

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

void scopes(View c) {
  Tile some = iota(4) < 3;
  Tile x = atomic_load(c, {0}, {4}, Order::acquire, {.mask = some, .scope = Scope::system});
  atomic_store(c, {0}, x, Order::release, {.scope = Scope::block});
  atomic_max(c, {0}, x, Order::relaxed, {.mask = some, .scope = Scope::block});
  atomic_compare_exchange(c, {0}, x, 1, Order::acq_rel, {.scope = Scope::system});
  atomic_add(c, {0}, x, Order::relaxed, {.scope = Scope::device});
}
TEST(Scopes, AreKept) {
  EXPECT_EQ(programOf(kernel("k", scopes), {view(i32, {64})}), R"(%cst = arith.constant dense<1> : tensor<4xi32>
%c0_i64 = arith.constant 0 : i64
%cst_0 = arith.constant dense<3> : tensor<4xi32>
%0 = tile.iota : tensor<4xi32>
%1 = arith.cmpi slt, %0, %cst_0 : tensor<4xi32>
%2 = tile.atomic_load acquire %arg0[%c0_i64] if %1 {tile.scope = "system"} : memref<?xi32, strided<[1]>> -> tensor<4xi32>
tile.atomic_store release %2, %arg0[%c0_i64] {tile.scope = "block"} : tensor<4xi32>, memref<?xi32, strided<[1]>>
%3 = tile.atomic_rmw max relaxed %2, %arg0[%c0_i64] if %1 {tile.scope = "block"} : tensor<4xi32>, memref<?xi32, strided<[1]>>
%4 = tile.atomic_cas acq_rel %2 to %cst, %arg0[%c0_i64] {tile.scope = "system"} : tensor<4xi32>, memref<?xi32, strided<[1]>>
%5 = tile.atomic_rmw add relaxed %2, %arg0[%c0_i64] : tensor<4xi32>, memref<?xi32, strided<[1]>>
)");
}

} // namespace
} // namespace kiln::testing
