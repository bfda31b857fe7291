// A valid kernel. Tests of failures compile it before, next to and after an invalid one.

#pragma once

#include "dialect/dsl/Types.h"
#include "test/lowering/Loaded.h"

#include <gtest/gtest.h>

namespace kiln::test {

/// Writes 42 to a[0].
inline constexpr const char *store42 = R"mlir(
func.func @good(%a: memref<?xi64, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c42 = arith.constant 42 : i64
  memref.store %c42, %a[%c0] : memref<?xi64, strided<[1]>>
  return
}
)mlir";

/// Compiles store42 and runs it; on any thread.
inline void expectGoodKernelCompiles() {
  int64_t a = 0;
  ArgumentBlock block;
  try {
    Loaded(objectOf(store42), "good").run(block.pointer(&a).integer(1));
  } catch (const Error &error) { // on a thread it would end the test
    ADD_FAILURE() << error.what();
  }
  EXPECT_EQ(a, 42);
}

} // namespace kiln::test
