// nvcc 13.0, -arch=sm_90 -ptx, makes vectors.ptx of this.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void vectors(float4 *four, float2 *two, uint4 *halves, uint2 *brains, __half *half, __nv_bfloat16 *brain, float4 *old) {
  const int t = threadIdx.x;
  const float x = t % 8 + 1;
  atomicAdd(four + t % 4, make_float4(x, 2 * x, 3 * x, 0.5f));
  old[t] = atomicAdd(four + 4 + t, make_float4(x, -x, 1, 2));
  atomicAdd(two + t % 2, make_float2(x, -x));
  const unsigned pair = 0x40003c00; // 2 and 1
  asm volatile("red.relaxed.gpu.global.add.noftz.v4.f16x2 [%0], {%1, %1, %2, %2};" ::"l"(halves + t % 2), "r"(pair), "r"(0x3c003c00u) : "memory");
  asm volatile("red.relaxed.gpu.global.max.noftz.v2.bf16x2 [%0], {%1, %2};" ::"l"(brains), "r"(0x3f800000u + ((0x4000u + t) << 0)), "r"(0x40003f80u) : "memory");
  atomicAdd(half, __float2half(1));
  atomicAdd(brain, __float2bfloat16(1));
}
