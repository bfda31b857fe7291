// nvcc 13.0, -arch=sm_80 -ptx, makes stream_k.ptx of this.
// Stream-K: the steps of all tiles lie in a row, of which every block takes as many as the others. Who ends within a
// tile leaves what it has; who began a tile adds what those behind it leave, in their order.
__device__ int loaded(const int *at) {
  int value;
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
__device__ void wait(const int *flag) {
  if (threadIdx.x == 0)
    while (loaded(flag) == 0)
      ;
  __syncthreads();
}
extern "C" __global__ void stream_k(const int *a, const int *b, int *c, int *partial, int *flags, int steps,
                                    int tiles) {
  const int all = steps * tiles, share = (all + gridDim.x - 1) / gridDim.x;
  int step = blockIdx.x * share;
  const int end = min(all, step + share);
  while (step < end) {
    const int tile = step / steps, stop = min(end, (tile + 1) * steps);
    const bool begins = step == tile * steps, ends = stop == (tile + 1) * steps;
    int sum = 0;
#pragma unroll 1
    for (int k = step; k < stop; ++k)
      sum += a[tile * steps + k % steps] * b[(k % steps) * blockDim.x + threadIdx.x];
    if (!begins) {
      partial[blockIdx.x * blockDim.x + threadIdx.x] = sum;
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence();
        atomicExch(flags + blockIdx.x, 1);
      }
    } else {
      if (!ends)
#pragma unroll 1
        for (int other = blockIdx.x + 1; other * share < (tile + 1) * steps; ++other) {
          wait(flags + other);
          sum += partial[other * blockDim.x + threadIdx.x];
        }
      c[tile * blockDim.x + threadIdx.x] = sum;
    }
    step = stop;
  }
}
