// Joins of vector clocks, and those of a block.

#include "runtime/simulator/Causality.h"

#include <algorithm>
#include <limits>

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

Causality::Causality(uint32_t firstAgent, int threads)
    : first(firstAgent), warpCount((threads + lanesOfWarp - 1) / lanesOfWarp),
      agents(static_cast<size_t>(warpCount) + engines) {
  for (Agent &agent : agents) {
    agent.clock.seen.resize(agents.size());
    agent.clock.fenced.resize(agents.size());
  }
  if (const int rest = threads % lanesOfWarp)
    leave(warpCount - 1, allLanes << rest);
}

void Causality::updateFloor(Agent &agent, int number) {
  agent.clock.seen[static_cast<size_t>(number)] = *std::min_element(agent.lanes.begin(), agent.lanes.end());
  agent.floor = *std::min_element(agent.clock.seen.begin(), agent.clock.seen.begin() + warpCount);
}

// --- Synchronisation -----------------------------------------------------------------------------------------------

void Causality::release(int number, Clock &into) {
  Agent &agent = agents[static_cast<size_t>(number)];
  into.join(agent.clock);
  into.seen[static_cast<size_t>(number)] = time++;
  agent.stamp = time;
}

void Causality::acquire(int warp, Mask lanes, const Clock &from) {
  if (from.empty())
    return;
  Agent &agent = agents[static_cast<size_t>(warp)];
  agent.clock.join(from);
  if (!from.seen.empty()) {
    agent.stamp = std::max(agent.stamp, *std::max_element(from.seen.begin(), from.seen.end()) + 1);
    for (size_t lane = 0; lane < lanesOfWarp; ++lane)
      if (lanes >> lane & 1)
        agent.lanes[lane] = std::max(agent.lanes[lane], from.seen[static_cast<size_t>(warp)]);
  }
  updateFloor(agent, warp);
}

void Causality::acquire(int warp, Mask lanes, Reads &reads) {
  acquire(warp, lanes, reads.clock);
  reads.lanes &= ~lanes;
  if (!reads.lanes)
    reads.clock.clear();
}

void Causality::joinLanes(int warp, Mask lanes) {
  Agent &agent = agents[static_cast<size_t>(warp)];
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    if (lanes >> lane & 1)
      agent.lanes[lane] = std::max(agent.lanes[lane], time);
  agent.stamp = ++time;
  updateFloor(agent, warp);
}

void Causality::leave(int warp, Mask lanes) {
  Agent &agent = agents[static_cast<size_t>(warp)];
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    if (lanes >> lane & 1)
      agent.lanes[lane] = std::numeric_limits<Time>::max();
  updateFloor(agent, warp);
}

void Causality::fence(int warp, Mask lanes, bool inBlock) {
  Agent &agent = agents[static_cast<size_t>(warp)];
  acquire(warp, lanes, agent.ofBlock);
  if (!inBlock)
    acquire(warp, lanes, agent.ofOthers);
  agent.atBlockFence.clear();
  if (!inBlock)
    agent.atFence.clear();
  release(warp, inBlock ? agent.atBlockFence : agent.atFence);
}

void Causality::proxyFence(int warp) {
  Agent &agent = agents[static_cast<size_t>(warp)];
  Clock &clock = agent.clock;
  for (size_t i = 0; i < agents.size(); ++i)
    clock.fenced[i] = std::max(clock.fenced[i], clock.seen[i]);
  clock.fenced[static_cast<size_t>(warp)] = time++;
  agent.stamp = time;
}

const Clock &Causality::published(int warp, Ordering ordering) {
  Agent &agent = agents[static_cast<size_t>(warp)];
  if (ordering == Ordering::relaxed || ordering == Ordering::acquire)
    return agent.atFence;
  agent.released.clear();
  release(warp, agent.released);
  return agent.released;
}

void Causality::collect(int warp, Mask lanes, Ordering ordering, const Clock &from, bool ofBlock) {
  if (ordering == Ordering::acquire || ordering == Ordering::both)
    return acquire(warp, lanes, from);
  Agent &agent = agents[static_cast<size_t>(warp)];
  Reads &reads = ofBlock ? agent.ofBlock : agent.ofOthers;
  reads.clock.join(from);
  reads.lanes |= lanes;
}

// --- Queries -------------------------------------------------------------------------------------------------------

bool Causality::isBefore(const Epoch &epoch, int warp, int lane) const {
  const Agent &agent = agents[static_cast<size_t>(warp)];
  const uint32_t local = epoch.agent - first;
  if (local == static_cast<uint32_t>(warp) && lane >= 0)
    return epoch.time <= agent.lanes[static_cast<size_t>(lane)];
  if (local < agents.size())
    return epoch.time <= agent.clock.seen[local];
  if (!agent.clock.others)
    return epoch.time == 0;
  const auto at = std::lower_bound(agent.clock.others->begin(), agent.clock.others->end(), Epoch{epoch.agent, 0});
  return epoch.time == 0 || (at != agent.clock.others->end() && at->agent == epoch.agent && epoch.time <= at->time);
}

bool Causality::isFenced(const Epoch &epoch, int warp) const {
  const uint32_t local = epoch.agent - first;
  return local >= agents.size() || epoch.time <= agents[static_cast<size_t>(warp)].clock.fenced[local];
}

} // namespace kiln::simulator
