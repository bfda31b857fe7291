// Tables of targets and versions.

#include "runtime/simulator/Targets.h"

#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fmt/format.h>
#include <span>

namespace kiln::simulator {

namespace {
struct Target {
  std::string_view number;  // `90` of sm_90
  std::string_view letters; // suffixes that may follow
  int sharedKiB;            // shared memory of a block
};
} // namespace

/// CUDA's programming guide, compute capabilities.
static constexpr Target targets[] = {
    {"50", "", 48},     {"52", "", 48},    {"53", "", 48},   {"60", "", 48},     {"61", "", 48},     {"62", "", 48},
    {"70", "", 96},     {"72", "", 96},    {"75", "", 64},   {"80", "", 163},    {"86", "", 99},     {"87", "", 163},
    {"88", "", 99},     {"89", "", 99},    {"90", "a", 227}, {"100", "af", 227}, {"101", "af", 227}, {"103", "af", 227},
    {"110", "af", 227}, {"120", "af", 99}, {"121", "af", 99}};

/// The last minor number of each major version of the PTX ISA.
static constexpr std::pair<char, char> versions[] = {{'1', '5'}, {'2', '3'}, {'3', '2'}, {'4', '3'}, {'5', '0'},
                                                     {'6', '5'}, {'7', '8'}, {'8', '8'}, {'9', '4'}};

static bool isVersion(std::string_view text) {
  const auto isKnown = [&](const auto &each) {
    return text[0] == each.first && text[2] >= '0' && text[2] <= each.second;
  };
  return text.size() == 3 && text[1] == '.' && std::any_of(std::begin(versions), std::end(versions), isKnown);
}

static Error wrong(int line, const std::string &expected, std::string_view got) {
  return Error(fmt::format("PTX line {}: expected {}, but {}", line, expected,
                           got.empty() ? "there is none" : fmt::format("got '{}'", got)));
}

int64_t checkTarget(const ptx::Module &module) {
  if (!isVersion(module.version))
    throw wrong(module.versionLine, "a .version of PTX from 1.0 to 9.4", module.version);
  const std::string_view name = module.target;
  for (const Target &target : targets) {
    const size_t digits = 3 + target.number.size();
    if (!name.starts_with("sm_") || name.substr(3, target.number.size()) != target.number)
      continue;
    if (name.size() == digits ||
        (name.size() == digits + 1 && target.letters.find(name[digits]) != std::string_view::npos))
      return int64_t{target.sharedKiB} << 10;
  }
  throw wrong(module.targetLine, "a .target that the simulator supports, such as sm_80 or sm_90a", name);
}

// --- Simulated GPUs -------------------------------------------------------------------------------------------------

static constexpr int64_t operator""_KiB(unsigned long long count) { return static_cast<int64_t>(count) << 10; }
static constexpr int64_t operator""_MiB(unsigned long long count) { return static_cast<int64_t>(count) << 20; }

std::span<const Architecture> architectures() {
  static const Architecture all[] = {
      // compute capability, SMs, shared memory of a CTA and of an SM, registers, L2
      {"sm_80", "A100", {80, 108, 163_KiB, 164_KiB, 65536, 40_MiB}},
      {"sm_86", "GeForce RTX 3090", {86, 82, 99_KiB, 100_KiB, 65536, 6_MiB}},
      {"sm_89", "GeForce RTX 4090", {89, 128, 99_KiB, 100_KiB, 65536, 72_MiB}},
      {"sm_90a", "H100 SXM", {90, 132, 227_KiB, 228_KiB, 65536, 50_MiB}},
      {"sm_100a", "B200", {100, 148, 227_KiB, 228_KiB, 65536, 126_MiB}},
      {"sm_120", "GeForce RTX 5090", {120, 170, 99_KiB, 100_KiB, 65536, 96_MiB}},
  };
  return all;
}

const Architecture *architectureNamed(std::string_view name) {
  const std::span<const Architecture> all = architectures();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Architecture &each) { return name == each.name; });
  return at == all.end() ? nullptr : &*at;
}

bool takes(const Architecture &architecture, std::string_view target) {
  if (!target.starts_with("sm_"))
    return false;
  int version = 0;
  const char *const end = target.data() + target.size();
  const auto [stop, failure] = std::from_chars(target.data() + 3, end, version);
  return failure == std::errc() &&
         (stop == end ? version <= architecture.facts.architecture : target == architecture.name);
}

} // namespace kiln::simulator
