// The state machine of mbarrier objects.

#include "runtime/simulator/Mbarriers.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <utility>

namespace kiln::simulator {

static constexpr uint32_t objectBytes = 8;

Mbarriers::Object *Mbarriers::find(uint32_t place) {
  const auto at = objects.find(place);
  return at == objects.end() || !at->second.live ? nullptr : &at->second;
}

const char *Mbarriers::absence(uint32_t place) const {
  return objects.contains(place) ? "which has been invalidated" : "where none has been made";
}

std::string Mbarriers::init(uint32_t place, int64_t count) {
  std::string fault;
  if (count < 1 || count > maxCount)
    fault = fmt::format("expected a count of 1 to {} arrivals, but got {}", maxCount, count);
  else if (const std::optional<uint32_t> other = overlapping(place, objectBytes))
    fault = fmt::format("makes an mbarrier at {}, but there is one at {} that has not been invalidated", place, *other);
  Object &object = objects[place];
  live += !object.live;
  object = {};
  object.expected = object.pending = count;
  object.live = true;
  first = std::min<uint64_t>(first, place);
  last = std::max<uint64_t>(last, place);
  return fault;
}

std::string Mbarriers::invalidate(uint32_t place) {
  Object *object = find(place);
  if (!object)
    return fmt::format("invalidates an mbarrier at {}, {}", place, absence(place));
  object->live = false;
  --live;
  return {};
}

void Mbarriers::fenceInits(uint32_t agent) {
  for (auto &[place, object] : objects)
    object.madeFenced |= object.made.agent == agent;
}

void Mbarriers::endIfDue(Object &object) {
  if (object.pending != 0 || object.transactions != 0)
    return;
  object.pending = object.expected;
  ++object.phase;
  object.came = 0;
  object.ended = std::move(object.clock);
  object.clock.clear();
  ++ends;
}

std::string Mbarriers::arrive(Object &object, int64_t count, bool drops) {
  std::string fault;
  if (count < 1 || count > maxCount)
    fault = fmt::format("expected a count of 1 to {} arrivals, but got {}", maxCount, count);
  else if (count > object.pending)
    fault =
        fmt::format("arrives {} times, but only {} of {} arrivals are pending", count, object.pending, object.expected);
  else if (drops && count > object.expected)
    fault = fmt::format("drops {} arrivals, but a phase has {}", count, object.expected);
  object.pending -= std::clamp<int64_t>(count, 0, object.pending);
  if (drops)
    object.expected -= std::clamp<int64_t>(count, 0, object.expected);
  return fault;
}

std::string Mbarriers::expect(Object &object, int64_t bytes) {
  object.transactions += bytes;
  if (std::abs(object.transactions) <= maxCount)
    return {};
  const int64_t sum = object.transactions;
  object.transactions = std::clamp(sum, -maxCount, maxCount);
  return fmt::format("expected a tx-count from -{} to {}, but got {}", maxCount, maxCount, sum);
}

std::optional<uint32_t> Mbarriers::overlapping(uint32_t place, uint32_t bytes) const {
  auto at = objects.lower_bound(place < objectBytes ? 0 : place - objectBytes + 1);
  for (; at != objects.end() && at->first < place + bytes; ++at)
    if (at->second.live)
      return at->first;
  return std::nullopt;
}

} // namespace kiln::simulator
