// nvcc 13.0, -arch=sm_80 -ptx, makes calls.ptx of this.
struct Shape {
  __device__ Shape(int size) : size(size) {}
  __device__ virtual int area() const = 0;
  __device__ virtual int scaled(int by) const { return area() * by; }
  int size;
};
struct Square : Shape {
  __device__ Square(int size) : Shape(size) {}
  __device__ int area() const override { return size * size; }
};
struct Strip : Shape {
  __device__ Strip(int size) : Shape(size) {}
  __device__ int area() const override { return size * 3; }
  __device__ int scaled(int by) const override { return area() + by; }
};

typedef long long (*Function)(long long, int);
static __device__ __noinline__ long long plus(long long a, int b) { return a + b; }
static __device__ __noinline__ long long times(long long a, int b) { return a * b; }
static __device__ __noinline__ long long sumTo(long long a, int b) { return b == 0 ? a : sumTo(a + b, b - 1); }
__constant__ Function table[3] = {plus, times, sumTo};

static __device__ __noinline__ int measure(const Shape *shape, int by) { return shape->scaled(by); }

extern "C" __global__ void calls(long long *out) {
  const int t = threadIdx.x;
  Square square(t);
  Strip strip(t);
  const Shape *shape = t % 2 ? static_cast<const Shape *>(&square) : &strip;
  out[t] = table[t % 3](measure(shape, t % 5), t % 7);
}
