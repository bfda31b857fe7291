// Counts memory accesses.

#include "runtime/simulator/Metrics.h"

#include <algorithm>
#include <bit>

namespace kiln::simulator {

void StepMetrics::add(const StepMetrics &other) {
  instructions += other.instructions;
  sharedAccesses += other.sharedAccesses;
  wavefronts += other.wavefronts;
  idealWavefronts += other.idealWavefronts;
  sharedBytes += other.sharedBytes;
  globalAccesses += other.globalAccesses;
  sectors += other.sectors;
  idealSectors += other.idealSectors;
  localAccesses += other.localAccesses;
  localSectors += other.localSectors;
  bulkBytes += other.bulkBytes;
  operandBytes += other.operandBytes;
  globalBytes += other.globalBytes;
  bytesInFlight += other.bytesInFlight;
}

/// Lanes of a pass.
static int lanesOfPass(int bytes) { return bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8; }

/// Sorts the distinct multiples of `unit` bytes that the `count` lanes from `first` on access into `units`; returns
/// their number, 0 without lanes.
static int gather(const LaneAddresses &at, Mask lanes, int first, int count, int bytes, uint64_t unit,
                  std::array<uint64_t, 1024> &units) {
  int found = 0;
  for (int lane = first; lane < first + count; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const auto begin = reinterpret_cast<uint64_t>(at[static_cast<size_t>(lane)]);
    const uint64_t end = begin + static_cast<uint64_t>(bytes);
    for (uint64_t number = begin / unit; number <= (end - 1) / unit && found < 1024; ++number)
      units[static_cast<size_t>(found++)] = number;
  }
  std::sort(units.begin(), units.begin() + found);
  return static_cast<int>(std::unique(units.begin(), units.begin() + found) - units.begin());
}

int wavefrontsOf(const LaneAddresses &at, Mask lanes, int bytes) {
  std::array<uint64_t, 1024> words;
  int wavefronts = 0;
  const int width = lanesOfPass(bytes);
  for (int first = 0; first < lanesOfWarp; first += width) {
    std::array<int, 32> ofBank{};
    const int count = gather(at, lanes, first, width, bytes, 4, words);
    for (int i = 0; i < count; ++i)
      ++ofBank[words[static_cast<size_t>(i)] % 32];
    wavefronts += *std::max_element(ofBank.begin(), ofBank.end());
  }
  return wavefronts;
}

int idealWavefrontsOf(const LaneAddresses &at, Mask lanes, int bytes) {
  std::array<uint64_t, 1024> words;
  int wavefronts = 0;
  const int width = lanesOfPass(bytes);
  for (int first = 0; first < lanesOfWarp; first += width)
    wavefronts += (gather(at, lanes, first, width, bytes, 4, words) + 31) / 32;
  return wavefronts;
}

int sectorsOf(const LaneAddresses &at, Mask lanes, int bytes) {
  std::array<uint64_t, 1024> sectors;
  return gather(at, lanes, 0, lanesOfWarp, bytes, 32, sectors);
}

int bytesOf(const LaneAddresses &at, Mask lanes, int bytes) {
  std::array<uint64_t, 1024> units;
  const uint64_t unit = bytes % 4 == 0 ? 4 : 1;
  return gather(at, lanes, 0, lanesOfWarp, bytes, unit, units) * static_cast<int>(unit);
}

Metrics::Metrics(const Program &program) {
  for (const Code &code : program.codes)
    steps.emplace_back(code.steps.size());
}

void Metrics::addAccess(StepMetrics &step, bool isShared, const LaneAddresses &at, Mask lanes, int bytes) {
  if (!lanes)
    return;
  if (isShared) {
    ++step.sharedAccesses;
    step.wavefronts += wavefrontsOf(at, lanes, bytes);
    step.idealWavefronts += idealWavefrontsOf(at, lanes, bytes);
    step.sharedBytes += bytesOf(at, lanes, bytes);
  } else {
    ++step.globalAccesses;
    const int touched = bytesOf(at, lanes, bytes);
    step.sectors += sectorsOf(at, lanes, bytes);
    step.idealSectors += (touched + 31) / 32;
    step.globalBytes += touched;
  }
}

void Metrics::addLocalAccess(StepMetrics &step, const char *begin, uint64_t stride, const LaneAddresses &at, Mask lanes,
                             int bytes) {
  if (!lanes)
    return;
  ++step.localAccesses;
  std::array<uint64_t, 1024> sectors;
  size_t count = 0;
  for (uint64_t lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const auto offset = static_cast<uint64_t>(at[lane] - begin) - lane * stride;
    for (uint64_t word = offset / 4; word <= (offset + static_cast<uint64_t>(bytes) - 1) / 4; ++word)
      sectors[count++] = word * 4 + lane / 8; // the words of eight lanes
  }
  std::sort(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(count));
  step.localSectors +=
      std::unique(sectors.begin(), sectors.begin() + static_cast<std::ptrdiff_t>(count)) - sectors.begin();
}

StepMetrics Metrics::total() const {
  StepMetrics all;
  for (const std::vector<StepMetrics> &code : steps)
    for (const StepMetrics &step : code)
      all.add(step);
  return all;
}

void Metrics::add(const Metrics &other) {
  const std::lock_guard lock(mutex);
  for (size_t code = 0; code < steps.size(); ++code)
    for (size_t step = 0; step < steps[code].size(); ++step)
      steps[code][step].add(other.steps[code][step]);
}

} // namespace kiln::simulator
