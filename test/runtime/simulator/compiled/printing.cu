// nvcc 13.0, -arch=sm_80 -ptx, makes printing.ptx of this.
#include <cstdio>
extern "C" __global__ void printing(int *out, const char *name) {
  const int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 >= 3)
    return;
  out[2 * t] = printf("thread %d: %s has %5.2f%% of %llu, %c%-4dend\n", t, name, t * 12.5, 1ull << (40 + t % 8), 'a' + t % 26, -t);
  if (t & 1)
    out[2 * t + 1] = printf("odd %#06x %+ld %e %*d|%.3s|\n", t * 17, -5000000000l - t, 1.5 * t, 6, t, "abcdef");
  else
    out[2 * t + 1] = printf("even\n");
}
