// Joins of vector clocks.

#include "runtime/simulator/Clock.h"

#include <algorithm>

namespace kiln::simulator {

static void raise(std::vector<Time> &times, const std::vector<Time> &by) {
  if (times.size() < by.size())
    times.resize(by.size());
  for (size_t i = 0; i < by.size(); ++i)
    times[i] = std::max(times[i], by[i]);
}

Others join(const Others &a, const Others &b) {
  if (!a || a == b)
    return b;
  if (!b)
    return a;
  std::vector<Epoch> all;
  all.reserve(a->size() + b->size());
  bool more = false; // whether `b` adds anything
  for (auto i = a->begin(), j = b->begin(); i != a->end() || j != b->end();) {
    if (j == b->end() || (i != a->end() && i->agent < j->agent)) {
      all.push_back(*i++);
    } else if (i == a->end() || j->agent < i->agent) {
      all.push_back(*j++);
      more = true;
    } else {
      more |= j->time > i->time;
      all.push_back({i->agent, std::max(i->time, j->time)});
      ++i, ++j;
    }
  }
  return more ? std::make_shared<const std::vector<Epoch>>(std::move(all)) : a;
}

void Clock::join(const Clock &other) {
  raise(seen, other.seen);
  raise(fenced, other.fenced);
  others = simulator::join(others, other.others);
}

} // namespace kiln::simulator
