// The users' kernels at typical sizes.

#include "tools/kiln-bench/users/users.h"

namespace kiln::bench {

namespace {
/// A launch: its config, the type of arguments without a registered type, and the elements of an iteration of the main
/// loop, or of a program.
struct User {
  const Kernel *kernel;
  const char *config;
  Type type;
  Grid grid;
  NamedExtents extents;
  double elements;
  Content content = {};
};
} // namespace

std::vector<Problem> userProblems(Operands &make) {
  constexpr int64_t M = 1024, wide = 1 << 20;
  const NamedExtents product = {{"M", M}, {"N", M}, {"K", M}, {"BK", 64}};
  const std::vector<User> users = {
      {&rmsNormKernel, "", bf16, programs(4096), {{"N", 4096}, {"C", 1024}}, 1024},
      {&userSoftmaxKernel, "", bf16, programs(4096), {{"N", 4096}, {"C", 1000}}, 1000},
      {&groupNormKernel, "warps=1", bf16, programs(32, 16), {{"N", 16}, {"C", 256}, {"S", 256}}, 8 * 256},
      {&klLossKernel, "block=2048", bf16, programs(1024), {{"N", 1024}, {"C", 32000}}, 2048, {{0.5f}}},
      {&largestKernel, "", f32, programs(4096), {{"N", 4096}, {"C", 1024}, {"k", 8}}, 1024},
      {&dropoutKernel, "block=2048", bf16, programs(wide / 2048), {{"N", wide}}, 2048, {{7, 0.1f}}},
      {&ropeKernel, "bt=64", bf16, programs(16, 8, 2), {{"B", 2}, {"H", 8}, {"T", 1024}, {"D", 128}}, 64 * 128},
      {&stencilKernel, "bm=16,bn=256", f32, programs(64, 4), {{"M", M}, {"N", M}}, 16 * 256, {{0.5f, 0.125f}}},
      {&convolveKernel, "bt=32", bf16, programs(4, 32, 2), {{"B", 2}, {"T", 1024}, {"D", 512}}, 32 * 128},
      {&swigluKernel, "", bf16, programs(8, 16), product, 2 * 128 * 64 * 64},
      {&scaledProductKernel, "bn=128", bf16, programs(8, 8), product, 128 * 128 * 64},
      {&lstmStepKernel, "bn=32,bk=32", bf16, programs(8, 32), {{"M", M}, {"X", M}, {"H", M}}, 4 * 128 * 32 * 32},
      {&persistentProductKernel, "bn=128", bf16, programs(64), product, 128 * 128 * 64},
      {&windowAttentionKernel,
       "",
       bf16,
       programs(16, 8, 1),
       {{"B", 1}, {"H", 8}, {"T", 2048}, {"D", 64}, {"group", 4}},
       128 * 64,
       {{0.125f}}},
      {&pagedAttentionKernel,
       "warps=1",
       bf16,
       programs(8, 4),
       {{"B", 4}, {"H", 8}, {"group", 16}, {"D", 64}, {"blocks", 128}, {"page", 16}, {"pages", 128}},
       16 * 16 * 4,
       {{0.125f}, {{"lengths", {2048, 0}}}}},
      {&selectiveScanKernel, "warps=1", f32, programs(16, 2), {{"B", 2}, {"T", 256}, {"D", 1024}, {"S", 16}}, 64 * 16},
      {&runningSumKernel, "", bf16, programs(1, 2), {{"B", 2}, {"T", 256}, {"D", 1024}}, 1024},
      {&sortRowsKernel, "", f32, programs(1024), {{"N", 1024}, {"C", 256}}, 256},
      {&sparseRowsKernel,
       "block=256,warps=1",
       f32,
       programs(M, 4),
       {{"M", M}, {"K", M}, {"D", 1024}, {"entries", M * 32}},
       256,
       {{}, {{"starts", {0, 32}}}}},
      {&bagsKernel, "bags=1,warps=1", bf16, programs(M), {{"B", M}, {"L", 32}, {"V", 4096}, {"D", 256}}, 256},
      {&histogramKernel, "warps=8", i32, programs(4), {{"N", 4 * 65536}, {"bins", 256}}, 256 * 256}};
  std::vector<Problem> problems;
  for (const User &user : users) {
    const Launch launch{user.kernel, user.kernel->configText(user.config), user.grid,
                        make.of(*user.kernel, user.extents, user.type, user.content)};
    problems.push_back({"users", user.kernel->name, user.kernel->name, user.type, launch, 1, 0, user.elements});
  }
  return problems;
}

} // namespace kiln::bench
