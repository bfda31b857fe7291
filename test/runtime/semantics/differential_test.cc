// Random programs, the same on the oracle and on the fast pipelines.
//
// A program is a chain of operations on tiles of one random shape, drawn from its seed alone; a failure prints the
// seed. Integer and elementwise exact programs must agree bit for bit, the others within a bound.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

struct ProgramConfig {
  int seed = 0;
  int rows = 1, columns = 1;
  bool exact = true;
};

/// One operation drawn at random on tiles of the pool, of shape (ROWS, COLUMNS).
Tile draw(std::mt19937 &random, const std::vector<Tile> &pool, const ProgramConfig &cfg) {
  const Tile &a = pool[random() % pool.size()], &b = pool[random() % pool.size()];
  const bool real = isFloat(a.type());
  const int rows = cfg.rows, columns = cfg.columns;
  switch (random() % (cfg.exact ? 14 : 20)) {
  case 0:
    return a + b;
  case 1:
    return a - b;
  case 2:
    return real ? a * b : a * b + 1;
  case 3:
    return max(a, b);
  case 4:
    return where(a < b, a, b);
  case 5:
    return abs(a);
  case 6:
    return reshape(transpose(reshape(a, {columns, rows})), {rows, columns});
  case 7:
    return broadcast(expand(reduce_max(a, 1), 1), {rows, columns});
  case 8:
    return broadcast(expand(reduce_min(a, 0), 0), {rows, columns}) - b;
  case 9:
    return a + cast(expand(argmax(b, 1), 1), a.type());
  case 10:
    return real ? fma(a, b, a) : a / b;
  case 11:
    return cast(a > b, a.type()) + b;
  case 12:
    return real ? cast(cast(a, i32), a.type()) : (a << (b & 7)) ^ (a >> 3);
  case 13:
    return clamp(a, -100, 100);
  case 14:
    return exp(min(a, 3.0));
  case 15:
    return tanh(a);
  case 16:
    return a / (abs(b) + 1.0);
  case 17:
    return broadcast(expand(sum(a, 1), 1), {rows, columns}) * (1.0 / columns);
  case 18: {
    Tile left = clamp(a, -2.0, 2.0), right = clamp(b, -2.0, 2.0);
    return dot(dot(left, transpose(right)), left) * 0.01;
  }
  default:
    return log(abs(a) + 1.0) + erf(b);
  }
}

void program(View x, View y, View out, ProgramConfig cfg) {
  std::mt19937 random(cfg.seed);
  const Shape shape{cfg.rows, cfg.columns};
  std::vector<Tile> pool{load(x, {0, 0}, shape), load(y, {-1, 2}, shape)};
  for (int i = 0; i < 5; ++i)
    pool.push_back(draw(random, pool, cfg));
  Tile carried = pool.back(), other = pool[pool.size() - 2];
  const int seed = static_cast<int>(random());
  for (Tile i : range(3)) {
    std::mt19937 inner(seed);
    Tile next = draw(inner, {carried, other, pool[0]}, cfg);
    when(i == 1, [&] { other = carried; });
    carried = cfg.exact ? next : clamp(next, -50.0, 50.0);
  }
  store(out, {0, 0}, carried);
  store(out, {cfg.rows - 1, 1}, load(out, {0, 0}, shape) + other);
  store(x, {0, 0}, pool[3]); // in place: x was read before
}
const Kernel programKernel = kernel("program", program,
                                    {field("seed", &ProgramConfig::seed), field("rows", &ProgramConfig::rows),
                                     field("columns", &ProgramConfig::columns), field("exact", &ProgramConfig::exact)});

class Differential : public Semantics {
protected:
  std::shared_ptr<Device> oracle = Device::open("cpu:generic");

  struct Result {
    Raw out, x;
  };
  Result run(const std::shared_ptr<Device> &on, Type type, int64_t rows, int64_t columns, const std::string &config) {
    std::swap(device, const_cast<std::shared_ptr<Device> &>(on));
    std::mt19937 random(static_cast<unsigned>(rows * 1000 + columns));
    const auto make = [&](int64_t r, int64_t c) {
      Raw raw(r * c);
      for (uint64_t &word : raw)
        word = isFloat(type) ? rawOfReal(type, std::normal_distribution<double>(0, 2)(random))
                             : rawOfInteger(type, static_cast<int64_t>(random()) - INT32_MAX / 2);
      return tensor(type, {r, c}, raw);
    };
    const Tensor x = make(rows, columns), y = make(rows + 1, columns + 1), out(device, type, {2 * rows, columns + 1});
    launch(programKernel, {x.ref(), y.ref(), out.ref()}, config);
    Result result{read(out), read(x)};
    std::swap(device, const_cast<std::shared_ptr<Device> &>(on));
    return result;
  }

  void compare(Type type, int seed, bool exact) {
    std::mt19937 random(seed);
    const int64_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 31, 33, 64};
    const int64_t rows = sizes[random() % 8], columns = sizes[random() % 10];
    const std::string config = "seed=" + std::to_string(seed) + ",rows=" + std::to_string(rows) +
                               ",columns=" + std::to_string(columns) + ",exact=" + (exact ? "1" : "0");
    const Result want = run(oracle, type, rows, columns, config), got = run(device, type, rows, columns, config);
    const auto check = [&](const Raw &a, const Raw &b, const char *what) {
      int bad = 0;
      for (size_t i = 0; i < a.size() && bad < 3; ++i) {
        if (same(type, b[i], a[i], false))
          continue;
        const double g = isFloat(type) ? realOf(type, b[i]) : static_cast<double>(integerOf(type, b[i]));
        const double w = isFloat(type) ? realOf(type, a[i]) : static_cast<double>(integerOf(type, a[i]));
        // Sums of up to 64 terms in another order: 64 · 2^-24 of the sum of magnitudes, which is at most 64 · 50; a few
        // operations on top at most multiply it by 50.
        if (!exact && std::fabs(g - w) <= 1e-3 * std::max(1.0, std::fabs(w)))
          continue;
        ++bad;
        ADD_FAILURE() << nameOf(type) << ", " << config << ": " << what << "[" << i << "] is " << g << ", the oracle's "
                      << w;
      }
    };
    check(want.out, got.out, "out");
    check(want.x, got.x, "x");
  }
};

TEST_P(Differential, ExactProgramsAgreeBitForBit) {
  for (int seed = 1; seed <= 40; ++seed)
    compare(std::array{i32, f32, i64, bf16, f64}[seed % 5], seed, true);
}

TEST_P(Differential, OtherProgramsAgreeWithinABound) {
  for (int seed = 1001; seed <= 1025; ++seed)
    compare(f32, seed, false);
}

INSTANTIATE_TEST_SUITE_P(Cpu, Differential, testing::Values("cpu", "cpu:x86-64-v3"),
                         [](const auto &info) { return info.param == "cpu" ? "Fast" : "Avx2"; });

} // namespace
