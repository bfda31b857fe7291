// nvcc 13.0, -arch=sm_100 -ptx, makes pairs.ptx of this.
extern "C" __global__ void pairs(const float2 *a, const float2 *b, float2 *out, float *least) {
  const int t = threadIdx.x;
  const float2 x = a[t], y = b[t];
  out[4 * t] = __fadd2_rn(x, y);
  out[4 * t + 1] = __fmul2_rz(x, y);
  out[4 * t + 2] = __ffma2_rn(x, y, x);
  out[4 * t + 3] = __ffma2_rd(x, x, y);
  float d;
  asm("min.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(x.x), "f"(y.x), "f"(x.y));
  least[3 * t] = d;
  asm("max.NaN.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(x.x), "f"(y.x), "f"(x.y));
  least[3 * t + 1] = d;
  asm("max.ftz.abs.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(x.x), "f"(y.x), "f"(x.y));
  least[3 * t + 2] = d;
}
