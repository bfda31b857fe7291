// Chapter 2: a program that launches a kernel and compares the result with plain C++.

#include <kiln/runtime/Compile.h>
#include <kiln/runtime/Tensor.h>

#include <cstdio>
#include <vector>

using namespace kiln;

/// y += alpha · x. Each program updates 1024 elements.
static void axpy(View x, View y, Tile alpha) {
  Tile n = program_id() * 1024;                                       // offset of this program's block
  store(y, {n}, load(y, {n}, {1024}) + alpha * load(x, {n}, {1024})); // (1024)
}

const Kernel axpyKernel = kernel("axpy", axpy, {"x (N)", "y (N), += alpha · x", "alpha"});

/// Launches axpy on N elements; returns whether all of them equal those of a C++ loop.
static bool isRight(const std::shared_ptr<Device> &device, int64_t N) {
  std::vector<float> xs(N), ys(N, 1.0f);
  for (int64_t i = 0; i < N; ++i)
    xs[i] = static_cast<float>(i);

  Tensor x(device, f32, {N}), y(device, f32, {N});
  x.uploadFloats(xs);
  y.uploadFloats(ys);
  launch(*device, axpyKernel, cdiv(N, 1024), {x, y, 0.5f});
  device->synchronize();

  const std::vector<float> got = y.downloadFloats();
  for (int64_t i = 0; i < N; ++i)
    if (got[i] != ys[i] + 0.5 * xs[i])
      return false;
  return true;
}

int main(int count, char **arguments) {
  const auto device = Device::open(count > 1 ? arguments[1] : "cpu");
  int wrong = 0;
  for (const int64_t N : {1, 1000, 1000000})
    wrong += !isRight(device, N);
  const CompileStatistics made = compileStatistics();
  std::printf("wrong: %d, executables: %ld, reused: %ld\n", wrong, long(made.compiled + made.fromDisk),
              long(made.fromMemory));
  return wrong > 0;
}
