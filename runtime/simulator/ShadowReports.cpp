// Reports of the race check, and clocks of synchronisation words.

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

// --- Reports -------------------------------------------------------------------------------------------------------

void Shadow::report(const Visit &visit, Check check, const char *at, const char *what) {
  if (visit.warp.cta.grid.checks.has(check))
    visit.warp.report(check, visit.step, visit.lane,
                      fmt::format("{} {}, {}", visit.reads ? "reads" : "writes", placeText(visit.warp.cta, at), what));
}

void Shadow::reportRace(const Visit &visit, const char *at, uint32_t other, bool otherWrote, uint16_t line,
                        const char *why) {
  const uint32_t perBlock = static_cast<uint32_t>(order.warps()) + Causality::engines;
  const uint32_t agent = other >> laneBits, block = agent / perBlock, lane = other & allOfThem;
  const auto warp = static_cast<int>(agent % perBlock);
  const bool sameBlock = block == order.firstAgent() / perBlock;
  const Check check = !sameBlock ? Check::racePrograms : warp == visit.agent ? Check::raceLanes : Check::race;
  Cta &cta = visit.warp.cta;
  if (!cta.grid.checks.has(check))
    return;
  std::string who = warp >= order.warps() ? "an asynchronous copy"
                    : lane == allOfThem   ? fmt::format("several threads of warp {}", warp)
                                          : fmt::format("thread {}", warp * lanesOfWarp + static_cast<int>(lane));
  if (!sameBlock)
    who += fmt::format(" of block {}", block);
  const std::string where =
      line ? fmt::format(" ({})", visit.warp.program.textOf(visit.warp.program.placeOf(line))) : "";
  visit.warp.report(check, visit.step, visit.lane,
                    fmt::format("{} {}, which {} {} {}{}, and {}", visit.writes ? "writes" : "reads",
                                placeText(cta, at), who, lane == allOfThem ? "have" : "has",
                                otherWrote ? "written" : "read", where, why));
}

/// Whether the access of another block is not ordered before the present one, and was reported.
bool Shadow::reportScope(const Visit &visit, const char *at, Time time, uint32_t who, bool otherWrote, uint16_t line) {
  if (!isOfAnotherBlock(who) || isBefore(visit, time, who))
    return false;
  reportRace(visit, at, who, otherWrote, line, "the scope of one of the two is its own block");
  return true;
}

std::string Grid::addressText(uint64_t address) const {
  return views ? views->textOf(address) : fmt::format("{:#x}", address);
}

std::string Grid::outsideText(uint64_t address) const {
  return views ? views->textOutside(address) : fmt::format("{:#x}", address);
}

std::string Shadow::placeText(const Cta &cta, const char *at) const {
  const auto offset = static_cast<uint32_t>(at - sharedMemory);
  return isShared(at) ? fmt::format("byte {} of .shared{}", offset, cta.grid.program.sharedNames.at(offset))
                      : "the byte at " + cta.grid.addressText(reinterpret_cast<uint64_t>(at));
}

// --- Synchronisation words -----------------------------------------------------------------------------------------

/// A clock of this block, in the form that other blocks read.
Others Shadow::othersFrom(const Clock &clock) const {
  if (clock.empty())
    return nullptr;
  std::vector<Epoch> own;
  for (uint32_t i = 0; i < clock.seen.size(); ++i)
    if (clock.seen[i])
      own.push_back({order.firstAgent() + i, clock.seen[i]});
  return join(clock.others, std::make_shared<const std::vector<Epoch>>(std::move(own)));
}

/// Clocks that another block released, in the form of this block; they may include events of this block.
Clock Shadow::clockFrom(const Others &others) const {
  Clock clock{.others = others};
  const auto agents = static_cast<uint32_t>(order.warps()) + Causality::engines;
  for (const Epoch &epoch : *others)
    if (epoch.agent - order.firstAgent() < agents) {
      clock.seen.resize(agents);
      clock.seen[epoch.agent - order.firstAgent()] = epoch.time;
    }
  return clock;
}

/// Calls function(word) for the words at which the lanes' accesses begin.
template <class Function> static void forWords(const LanePointers &words, Function function) {
  for (Mask left = words.valid; left; left &= left - 1)
    function(words.at[static_cast<size_t>(std::countr_zero(left))]);
}

void Shadow::publish(Warp &warp, const LanePointers &words, Ordering ordering, bool inBlock) {
  const Clock &clock = order.published(warp.index, ordering);
  const bool releases = ordering == Ordering::release || ordering == Ordering::both;
  static const Clock none;
  const Clock &fenced = releases ? none : order.publishedInBlock(warp.index);
  if (clock.empty() && fenced.empty())
    return;
  Others others; // computed once
  forWords(words, [&](const char *word) {
    if (!fenced.empty())
      blockWords[word].join(fenced);
    if (clock.empty())
      return;
    blockWords[word].join(clock);
    if (inBlock || isShared(word))
      return;
    if (!others)
      others = othersFrom(clock);
    global.publish(reinterpret_cast<uint64_t>(word), others);
  });
}

void Shadow::collect(Warp &warp, const LanePointers &words, Ordering ordering, bool inBlock) {
  Others last; // cached, because many lanes have equal ones
  forWords(words, [&](const char *word) {
    if (!blockWords.empty())
      if (const auto at = blockWords.find(word); at != blockWords.end())
        order.collect(warp.index, warp.exec, ordering, at->second, true);
    if (inBlock || isShared(word)) // a release by another block and an acquire with block scope do not synchronise
      return;
    if (const Others others = global.clockOf(reinterpret_cast<uint64_t>(word)); others && others != last) {
      last = others;
      order.collect(warp.index, warp.exec, ordering, clockFrom(others), false);
    }
  });
}

} // namespace kiln::simulator
