// A kernel that reads bytes.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

static void bytes(View x, View out) { store(out, {0}, cast(load(x, {0}, {128}), i32)); }
const Kernel bytesKernel = kernel("bytes", bytes, {"x (N) u8", "out (N) i32"});
