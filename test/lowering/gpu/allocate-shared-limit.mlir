// The limit is the number of bytes that a kernel may use.
// RUN: kiln-opt %s --gpu-allocate-shared="limit=1024"
// RUN: not kiln-opt %s --gpu-allocate-shared="limit=0" 2>&1 | FileCheck %s
// CHECK: expected a number from 1 to 1073741824, but got '0'
func.func @large() attributes {tile.kernel} {
  %a = simt.buffer : memref<1000xi8, 3>
  return
}
