// Damage to a file's bytes, as by disks, transfers and people: bits, cuts, lengths, pieces of other files, nesting,
// huge numbers. The result depends on the seed alone.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::faults {

/// Random numbers, equal on all machines for one seed (SplitMix64).
class Chance {
public:
  explicit Chance(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// A number from 0 up to, not including, `bound`, which is above 0.
  size_t below(size_t bound) { return next() % bound; }
  template <class T> const T &oneOf(const std::vector<T> &values) { return values[below(values.size())]; }

private:
  uint64_t state;
};

/// `bytes` with one to four damages. Pieces are copied from `others`, too, if there are any.
std::string damaged(std::string bytes, const std::vector<std::string> &others, Chance &chance);

} // namespace kiln::faults
