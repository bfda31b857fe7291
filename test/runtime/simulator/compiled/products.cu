// nvcc 13.0, -arch=sm_90 -ptx, makes products.ptx of this.
#include <cuda_fp8.h>

// Element (row, column) of a matrix of small numbers, as so many bits.
__device__ unsigned e4m3(signed char value) { return __nv_fp8_e4m3(static_cast<float>(value)).__x; }
__device__ unsigned e5m2(signed char value) { return __nv_fp8_e5m2(static_cast<float>(value)).__x; }
__device__ unsigned low(signed char value) { return static_cast<unsigned char>(value); }

// Word `r` of a lane's fragment of A (rows × K, row by row) or of B (columns × K, column by column).
template <int bits, int rows, class Convert>
__device__ unsigned word(const signed char *matrix, int K, int r, Convert convert) {
  const int lane = threadIdx.x, perWord = 32 / bits;
  const int row = lane / 4 + (rows == 16 ? 8 * (r & 1) : 0), block = rows == 16 ? r >> 1 : r;
  unsigned result = 0;
#pragma unroll 1
  for (int i = 0; i < perWord; ++i)
    result |= (convert(matrix[row * K + (lane % 4 + 4 * block) * perWord + i]) & ((1ull << bits) - 1)) << (bits * i);
  return result;
}

template <class T> __device__ void store(T *out, const T (&d)[4]) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  for (int i = 0; i < 4; ++i)
    out[(g + 8 * (i >> 1)) * 8 + 2 * t + (i & 1)] = d[i];
}

extern "C" __global__ void products(const signed char *a, const signed char *b, float *eighths, int *nibbles, int *bits, double *doubles) {
  const auto wordA = [&](auto convert, auto bits, int K, int r) { return word<decltype(bits)::value, 16>(a, K, r, convert); };
  const auto wordB = [&](auto convert, auto bits, int K, int r) { return word<decltype(bits)::value, 8>(b, K, r, convert); };
  struct Four { enum { value = 4 }; };
  struct Eight { enum { value = 8 }; };
  struct One { enum { value = 1 }; };
  {
    float d[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(wordA(e4m3, Eight(), 32, 0)), "r"(wordA(e4m3, Eight(), 32, 1)), "r"(wordA(e4m3, Eight(), 32, 2)), "r"(wordA(e4m3, Eight(), 32, 3)),
          "r"(wordB(e5m2, Eight(), 32, 0)), "r"(wordB(e5m2, Eight(), 32, 1)));
    store(eighths, d);
  }
  {
    int d[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k64.row.col.s32.s4.u4.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(wordA(low, Four(), 64, 0)), "r"(wordA(low, Four(), 64, 1)), "r"(wordA(low, Four(), 64, 2)), "r"(wordA(low, Four(), 64, 3)),
          "r"(wordB(low, Four(), 64, 0)), "r"(wordB(low, Four(), 64, 1)));
    store(nibbles, d);
  }
  {
    int d[4] = {1, 2, 3, 4};
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(wordA(low, One(), 256, 0)), "r"(wordA(low, One(), 256, 1)), "r"(wordA(low, One(), 256, 2)), "r"(wordA(low, One(), 256, 3)),
          "r"(wordB(low, One(), 256, 0)), "r"(wordB(low, One(), 256, 1)));
    store(bits, d);
  }
  {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
    double d[4] = {1, 2, 3, 4}, x[4], y[2];
    for (int i = 0; i < 4; ++i)
      x[i] = a[(g + 8 * (i & 1)) * 8 + t + 4 * (i >> 1)] * 0.5;
    for (int i = 0; i < 2; ++i)
      y[i] = b[g * 8 + t + 4 * i] * 0.25;
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(x[0]), "d"(x[1]), "d"(x[2]), "d"(x[3]), "d"(y[0]), "d"(y[1]));
    store(doubles, d);
  }
}
