// Tables of targets and versions.

#include "runtime/simulator/Targets.h"

#include "dialect/dsl/Types.h"

#include <algorithm>
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

} // namespace kiln::simulator
