// A kernel that needs more shared memory than the machine has is an error.
// RUN: kiln-opt %s --verify-diagnostics --gpu-allocate-shared="limit=1023"
// RUN: kiln-opt %s --gpu-allocate-shared="limit=1024"
// RUN: not kiln-opt %s --gpu-allocate-shared="limit=0" 2>&1 | FileCheck %s

#row = #simt.layout<256, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64 d0:128]>

// expected-error@+2 {{kernel 'large' needs 1024 bytes of shared memory for its tiles, but a program may use at most 1023: choose smaller tiles, or loop over parts of them}}
// CHECK: expected a number from 1 to 1073741824, but got '0'
func.func @large(%x: tensor<256xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer : memref<1000xi8, 3>
  return
}

// If the kernel sets the number of stages, the error suggests fewer.
// expected-error@+1 {{choose smaller tiles or fewer stages, or loop over parts of them}}
func.func @staged(%x: tensor<256xf32, #row>) attributes {tile.kernel, tile.stages = 3 : i64} {
  %a = simt.buffer : memref<1000xi8, 3>
  return
}
