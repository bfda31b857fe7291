// The table of architectures.

#include "runtime/simulator/Architectures.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace kiln::simulator {

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
