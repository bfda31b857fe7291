// kiln-ulps: the largest error of functions of Functions.def over all 2^32 words of f32, or every so
// manieth, and the argument that has it.
//
// A kernel computes the function in f32 and in f64, which math_test compares with C's long double. It counts the units
// in the last place by which the results differ: infinity is next to the largest number, and NaN must be NaN in both.
// Exit codes: 0 all within their bounds, 1 some beyond; 2, 3 and 4 as everywhere.

#include "dialect/dsl/Kernel.h"
#include "runtime/Compile.h"
#include "runtime/Streams.h"
#include "runtime/Tensor.h"
#include "runtime/Version.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>

using namespace kiln;

namespace {

struct Function {
  std::string name;
  Tile (*verb)(const Tile &x);
  double bound;
};

const std::vector<Function> functions = {
#define KILN_FUNCTION(name, operation, f32, ...) {#name, [](const Tile &x) { return name(x); }, f32},
#define KILN_COMPOSITE_FUNCTION(name, f32, ...) {#name, [](const Tile &x) { return name(x); }, f32},
#include "dialect/tile/Functions.def"
};

struct SweepConfig {
  int function = 0, every = 1;
};

constexpr int block = 512, rounds = 128;

/// The largest error of this program's words, and its word.
void sweep(View errors, View words, SweepConfig cfg) {
  const Tile begin = program_id(0) * (block * rounds); // of the words that are looked at
  Tile worst = zeros(f64, {block}), worstWord = zeros(i32, {block});
  for (Tile i : range(0, rounds)) {
    const Tile word = cast((begin + i * block + iota(block, i64)) * cfg.every, i32), x = bitcast(word, f32);
    const Tile got = cast(functions[cfg.function].verb(x), f64), want = functions[cfg.function].verb(cast(x, f64));
    const Tile power = bitcast(bitcast(want, i64) & 0x7ff0000000000000, f64);
    const Tile unit = clamp(power, 0x1p-126, 0x1p127) * 0x1p-23;
    const Tile difference = abs(clamp(got, -0x1p128, 0x1p128) - clamp(want, -0x1p128, 0x1p128)) / unit;
    const Tile wrong = where(isnan(got) == isnan(want), 0.0, infinity);
    const Tile error = where(isnan(got) | isnan(want), wrong, difference);
    worstWord = where(error > worst, word, worstWord);
    worst = max(error, worst);
  }
  const auto [most, place] = max_at(worst);
  store(errors, {program_id(0)}, most);
  store(words, {program_id(0)}, sum(where(iota(block) == place, worstWord, 0)));
}
const Kernel sweepKernel =
    kernel("sweep", sweep, {field("function", &SweepConfig::function), field("every", &SweepConfig::every)});

} // namespace

static bool isWithin(const std::shared_ptr<Device> &device, size_t function, int every) {
  const int64_t programs = cdiv(int64_t(1) << 32, int64_t(block) * rounds * every); // the last ones go round again
  const Tensor errors(device, f64, {programs}), words(device, i32, {programs});
  launch(*device, sweepKernel, {programs, 1, 1}, {errors.ref(), words.ref()},
         fmt::format("function={},every={}", function, every));
  std::vector<double> most(programs);
  std::vector<int32_t> word(programs);
  errors.download(most.data(), errors.bytes());
  words.download(word.data(), words.bytes());
  const auto largest = std::ranges::max_element(most) - most.begin();
  const bool isGood = most[largest] <= functions[function].bound;
  fmt::print("{:8} {:.4f} at {:a}, bound {}{}\n", functions[function].name, most[largest],
             std::bit_cast<float>(word[largest]), functions[function].bound, isGood ? "" : ": beyond it");
  fflush(stdout);
  return isGood;
}

static int run(int count, const char *const *arguments) {
  std::vector<std::string> names;
  std::string device = "cpu";
  int every = 1;
  CLI::App app("Finds the largest error of functions over all f32.", "kiln-ulps");
  app.add_option("functions", names, "which ones; all if there is none");
  app.add_option("--device", device, "where they run")->capture_default_str();
  app.add_option("--every", every, "looks at every so manieth word")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.set_version_flag("--version", versionText("kiln-ulps"), "print the version of Kiln");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) ? 2 : 0;
  }
  for (const std::string &name : names)
    if (std::ranges::find(functions, name, &Function::name) == functions.end())
      throw Error(fmt::format("expected a function of one operand, but got '{}'", name));
  const auto opened = Device::open(device);
  bool isGood = true;
  for (size_t i = 0; i < functions.size(); ++i)
    if (names.empty() || std::ranges::find(names, functions[i].name) != names.end())
      isGood &= isWithin(opened, i, every);
  return isGood ? 0 : 1;
}

int main(int count, char **arguments) {
  return kiln::runProgram("kiln-ulps", [=] { return run(count, arguments); });
}
