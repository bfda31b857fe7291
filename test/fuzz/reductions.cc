// The tables of reductions, and of scans and sorts.

#include "test/fuzz/verbs.h"

#include <algorithm>
#include <cmath>

namespace kiln::fuzz {

static bool all(Type) { return true; }
static bool bits(Type type) { return !isFloat(type); }
static bool truth(Type type) { return type == boolean; }

static Type same(Type type) { return type; }
static Type wide(Type type) { return sumsOf(type); }
static Type position(Type) { return i32; }

static std::optional<Facts> extreme(Type type, const Facts &facts, int64_t) {
  if (!facts.exact())
    return {};
  Facts result = facts;
  result.openZero = isFloat(type); // which zero is the least, or comes first, is open
  return result;
}

static std::optional<Facts> index(Type, const Facts &facts, int64_t count) {
  return facts.exact() ? std::optional(wholeNumbers(static_cast<double>(count))) : std::nullopt;
}

static std::optional<Facts> bitwise(Type type, const Facts &, int64_t) { return anything(type); }

/// Whole numbers whose products are exact in every order.
static std::optional<Facts> product(Type type, const Facts &facts, int64_t count) {
  if (!isFloat(type))
    return anything(wide(type));
  const double bound = std::max(1.0, std::pow(facts.bound, static_cast<double>(count)));
  const double most = 1 / unitOf(type == f64 ? f64 : f32);
  if (!facts.exact() || !facts.whole || !(bound <= most))
    return {};
  return within(type, {.bound = bound, .openZero = facts.openZero});
}

static std::optional<Facts> factors(Type type, int64_t count) {
  const double bits = type == f64 ? 50 : 23;
  return wholeNumbers(std::clamp(std::floor(std::exp2(bits / static_cast<double>(count))), 1.0, 8.0));
}

static std::optional<Facts> terms(Type, int64_t) { return wholeNumbers(8); }

/// Equal ones keep their order.
static std::optional<Facts> stable(Type, const Facts &facts, int64_t) {
  return facts.exact() ? std::optional(facts) : std::nullopt;
}

static bool integers(Type type) { return !isFloat(type) && type != boolean; }

using Pair = std::array<Tile, 2>;
static Tile first(Tile a, Tile) { return a; }
static Tile last(Tile, Tile b) { return b; }
static Tile mixed(Tile a, Tile b) { return a + b + a * b; }
static Tile checked(Tile a, Tile b) {
  device_assert((a + 1) * (b + 1) == mixed(a, b) + 1, "as drawn");
  return mixed(a, b);
}
static Pair linear(Pair a, Pair b) { return {a[0] * b[0], a[1] * b[0] + b[1]}; }
#define FIRST "[](Tile a, Tile) { return a; })"
#define LAST "[](Tile, Tile b) { return b; })"
#define MIXED "[](Tile a, Tile b) { return a + b + a * b; })"
#define CHECKED                                                                                                        \
  "[](Tile a, Tile b) { device_assert((a + 1) * (b + 1) == a + b + a * b + 1, \"as drawn\"); return a + b + a * b; })"
#define LINEAR                                                                                                         \
  "[](std::array<Tile, 2> a, std::array<Tile, 2> b) { return std::array<Tile, 2>{a[0] * b[0], a[1] * b[0] + b[1]}; })"

std::span<const Reduction> reductions() {
  constexpr Nans spread = Nans::propagate;
  static const std::vector<Reduction> table = {
      {"sum($0, $1)", all, [](At x, const Axes &axes, bool keeps) { return sum(x, axes, keeps); }, wide, sumOf, terms},
      {"prod($0, $1)", all, [](At x, const Axes &axes, bool keeps) { return prod(x, axes, keeps); }, wide, product,
       factors},
      {"reduce_max($0, $1)", all, [](At x, const Axes &axes, bool keeps) { return reduce_max(x, axes, keeps); }, same,
       extreme},
      {"reduce_min($0, $1)", all, [](At x, const Axes &axes, bool keeps) { return reduce_min(x, axes, keeps); }, same,
       extreme},
      {"reduce_max($0, $1, Nans::propagate)", all,
       [](At x, const Axes &axes, bool keeps) { return reduce_max(x, axes, spread, keeps); }, same, extreme},
      {"reduce_min($0, $1, Nans::propagate)", all,
       [](At x, const Axes &axes, bool keeps) { return reduce_min(x, axes, spread, keeps); }, same, extreme},
      {"max_at($0, $1)[0]", all, [](At x, const Axes &axes, bool keeps) { return max_at(x, axes, keeps)[0]; }, same,
       extreme},
      {"max_at($0, $1)[1]", all, [](At x, const Axes &axes, bool keeps) { return max_at(x, axes, keeps)[1]; }, position,
       index},
      {"min_at($0, $1)[0]", all, [](At x, const Axes &axes, bool keeps) { return min_at(x, axes, keeps)[0]; }, same,
       extreme},
      {"argmax($0, $1)", all, [](At x, const Axes &axes, bool keeps) { return argmax(x, axes, keeps); }, position,
       index},
      {"argmin($0, $1)", all, [](At x, const Axes &axes, bool keeps) { return argmin(x, axes, keeps); }, position,
       index},
      {"reduce_and($0, $1)", bits, [](At x, const Axes &axes, bool keeps) { return reduce_and(x, axes, keeps); }, same,
       bitwise},
      {"reduce_or($0, $1)", bits, [](At x, const Axes &axes, bool keeps) { return reduce_or(x, axes, keeps); }, same,
       bitwise},
      {"reduce_xor($0, $1)", bits, [](At x, const Axes &axes, bool keeps) { return reduce_xor(x, axes, keeps); }, same,
       bitwise},
      {"any($0, $1)", truth, [](At x, const Axes &axes, bool keeps) { return any(x, axes, keeps); }, same, bitwise},
      {"all($0, $1)", truth, [](At x, const Axes &axes, bool keeps) { return kiln::all(x, axes, keeps); }, same,
       bitwise},
      {"reduce($0, $1, " FIRST,
       all,
       [](At x, const Axes &axes, bool) { return reduce(x, axes.numbers[0], first); },
       same,
       stable,
       {},
       true},
      {"reduce($0, $1, " LAST,
       all,
       [](At x, const Axes &axes, bool) { return reduce(x, axes.numbers[0], last); },
       same,
       stable,
       {},
       true},
      {"reduce($0, $1, " MIXED,
       integers,
       [](At x, const Axes &axes, bool) { return reduce(x, axes.numbers[0], mixed); },
       same,
       bitwise,
       {},
       true},
      {"reduce($0, $1, " CHECKED,
       integers,
       [](At x, const Axes &axes, bool) { return reduce(x, axes.numbers[0], checked); },
       same,
       bitwise,
       {},
       true},
      {"reduce({$0, $0 + 1}, $1, " LINEAR "[1]",
       integers,
       [](At x, const Axes &axes, bool) { return reduce({x, x + 1}, axes.numbers[0], linear)[1]; },
       same,
       bitwise,
       {},
       true},
  };
  return table;
}

std::span<const Reduction> scans() {
  constexpr Nans spread = Nans::propagate;
  static const std::vector<Reduction> table = {
      {"cumsum($0, $1)", all, [](At x, const Axes &axes, bool back) { return cumsum(x, axes.numbers[0], back); }, wide,
       sumOf, terms},
      {"cumprod($0, $1)", all, [](At x, const Axes &axes, bool back) { return cumprod(x, axes.numbers[0], back); },
       wide, product, factors},
      {"cummax($0, $1)", all, [](At x, const Axes &axes, bool back) { return cummax(x, axes.numbers[0], back); }, same,
       extreme},
      {"cummin($0, $1)", all, [](At x, const Axes &axes, bool back) { return cummin(x, axes.numbers[0], back); }, same,
       extreme},
      {"cummax($0, $1, Nans::propagate)", all,
       [](At x, const Axes &axes, bool back) { return cummax(x, axes.numbers[0], spread, back); }, same, extreme},
      {"cumand($0, $1)", bits, [](At x, const Axes &axes, bool back) { return cumand(x, axes.numbers[0], back); }, same,
       bitwise},
      {"cumor($0, $1)", bits, [](At x, const Axes &axes, bool back) { return cumor(x, axes.numbers[0], back); }, same,
       bitwise},
      {"cumxor($0, $1)", bits, [](At x, const Axes &axes, bool back) { return cumxor(x, axes.numbers[0], back); }, same,
       bitwise},
      {"sort($0, $1)", all, [](At x, const Axes &axes, bool back) { return sort(x, axes.numbers[0], back); }, same,
       extreme},
      {"sort_at($0, $1)[0]", all,
       [](At x, const Axes &axes, bool back) { return sort_at(x, axes.numbers[0], back)[0]; }, same, stable},
      {"sort_at($0, $1)[1]", all,
       [](At x, const Axes &axes, bool back) { return sort_at(x, axes.numbers[0], back)[1]; }, position, index},
      {"scan($0, $1, " FIRST, all,
       [](At x, const Axes &axes, bool back) { return scan(x, axes.numbers[0], first, back); }, same, stable},
      {"scan($0, $1, " LAST, all,
       [](At x, const Axes &axes, bool back) { return scan(x, axes.numbers[0], last, back); }, same, stable},
      {"scan($0, $1, " MIXED, integers,
       [](At x, const Axes &axes, bool back) { return scan(x, axes.numbers[0], mixed, back); }, same, bitwise},
      {"scan($0, $1, " CHECKED, integers,
       [](At x, const Axes &axes, bool back) { return scan(x, axes.numbers[0], checked, back); }, same, bitwise},
      {"scan({$0, $0 + 1}, $1, " LINEAR "[1]", integers,
       [](At x, const Axes &axes, bool back) { return scan({x, x + 1}, axes.numbers[0], linear, back)[1]; }, same,
       bitwise},
  };
  return table;
}

} // namespace kiln::fuzz
