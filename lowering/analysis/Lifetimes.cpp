// Places buffers greedily, in several orders, and keeps the smallest result.

#include "lowering/analysis/Lifetimes.h"

#include <functional>
#include <numeric>

namespace kiln::lowering {

/// Places each buffer of `order` in the lowest gap between already placed buffers with overlapping lifetimes.
static Placement placeInOrder(const std::vector<Lifetime> &lifetimes, const std::vector<size_t> &order) {
  Placement result{std::vector<int64_t>(lifetimes.size()), 0};
  std::vector<size_t> placed; // by offset
  for (const size_t buffer : order) {
    const Lifetime &life = lifetimes[buffer];
    int64_t offset = 0;
    for (const size_t other : placed) {
      if (!lifetimes[other].meets(life))
        continue;
      if (offset + life.bytes <= result.offsets[other])
        break;
      offset = std::max(offset, result.offsets[other] + lifetimes[other].bytes);
    }
    result.offsets[buffer] = offset;
    result.bytes = std::max(result.bytes, offset + life.bytes);
    const auto precedes = [&](int64_t at, size_t other) { return at < result.offsets[other]; };
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset, precedes), buffer);
  }
  return result;
}

int64_t maxAlive(const std::vector<Lifetime> &lifetimes) {
  std::vector<std::pair<int64_t, int64_t>> changes; // time, change of live bytes
  for (const Lifetime &life : lifetimes)
    if (life.first <= life.last) {
      changes.emplace_back(life.first, life.bytes);
      changes.emplace_back(life.last + 1, -life.bytes);
    }
  std::sort(changes.begin(), changes.end()); // at equal times, ends come first
  int64_t alive = 0, most = 0;
  for (const auto &[moment, bytes] : changes)
    most = std::max(most, alive += bytes);
  return most;
}

Placement place(const std::vector<Lifetime> &lifetimes) {
  // Sort keys; smaller ones come first, and equal ones keep the list's order.
  using Key = std::pair<int64_t, int64_t>;
  static const std::function<Key(const Lifetime &)> keys[] = {
      [](const Lifetime &life) { return Key(-life.bytes, 0); },
      [](const Lifetime &life) { return Key(life.first, 0); },
      [](const Lifetime &life) { return Key(-life.last, life.first); },
      [](const Lifetime &life) { return Key(life.first - life.last, -life.bytes); },
  };
  const int64_t least = maxAlive(lifetimes);
  Placement best;
  for (const auto &key : keys) {
    std::vector<size_t> order(lifetimes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key(lifetimes[a]) < key(lifetimes[b]); });
    Placement placed = placeInOrder(lifetimes, order);
    if (best.offsets.empty() || placed.bytes < best.bytes)
      best = std::move(placed);
    if (best.bytes <= least)
      break;
  }
  return best;
}

} // namespace kiln::lowering
