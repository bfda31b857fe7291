// nvcc 13.0, -arch=sm_80 -ptx, makes bits.ptx of this.
#include <cuda/bit>
extern "C" __global__ void bits(const unsigned *a, const unsigned *b, unsigned *out) {
  const int t = threadIdx.x;
  unsigned *mine = out + 8 * t;
  mine[0] = cuda::bitmask<unsigned>(a[t] % 32, b[t] % (33 - a[t] % 32));
  mine[1] = __fns(a[t], b[t] % 32, static_cast<int>(a[t] % 7) - 3);
  mine[2] = __umul24(a[t], b[t]);
  mine[3] = __mul24(a[t], b[t]);
  unsigned d;
  asm("szext.clamp.s32 %0, %1, %2;" : "=r"(d) : "r"(a[t]), "r"(b[t] % 40));
  mine[4] = d;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a[t]), "r"(b[t]), "r"(a[t] ^ b[t]));
  mine[5] = d;
  asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(d) : "r"(a[t]), "r"(b[t]));
  mine[6] = d;
  asm("mov.u32 %0, %envreg3;" : "=r"(d));
  mine[7] = d;
}
