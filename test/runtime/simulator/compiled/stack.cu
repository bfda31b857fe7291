// nvcc 13.0, -arch=sm_80 -ptx, makes stack.ptx of this.
static __device__ __noinline__ int sum(const int *values, int count) {
  int total = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i)
    total += values[i];
  return total;
}
static __device__ __noinline__ int fill(int count, int first) {
  int *values = static_cast<int *>(__builtin_alloca(count * sizeof(int)));
#pragma unroll 1
  for (int i = 0; i < count; ++i)
    values[i] = first + i;
  int total = sum(values, count);
  if (count > 1)
    total += fill(count / 2, first * 2);
  return total + values[count - 1];
}
extern "C" __global__ void stack(int *out) {
  const int t = threadIdx.x;
  int total = 0;
#pragma unroll 1
  for (int i = 1; i < 4; ++i) {
    int *values = static_cast<int *>(__builtin_alloca((t % 5 + i) * sizeof(int)));
#pragma unroll 1
    for (int j = 0; j < t % 5 + i; ++j)
      values[j] = i * j + t;
    total += sum(values, t % 5 + i);
  }
  out[t] = total + fill(t % 9 + 1, t);
}
