// Quotients of 128-bit numbers.
extern "C" __global__ void division(const unsigned __int128 *a, const unsigned __int128 *b, unsigned __int128 *q) {
  const int i = threadIdx.x;
  q[i] = a[i] / b[i];
}
