// The settings of a schedule; runs blocks on the host's threads. A thread holds several blocks at once if they wait for
// one another, and gives them turns.

#include "runtime/simulator/Launch.h"

#include "dialect/dsl/Nearest.h"
#include "dialect/dsl/Types.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Progress.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <mutex>
#include <numeric>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>

namespace kiln::simulator {

// --- Settings -------------------------------------------------------------------------------------------------------

/// Parses a number. Throws Error unless it is at most `most`.
template <class Number> static Number numberUpTo(Number most, const char *name, const std::string &value) {
  Number number = 0;
  const char *const end = value.data() + value.size();
  const auto [stop, failure] = std::from_chars(value.data(), end, number);
  if (failure != std::errc() || stop != end || number < 0 || number > most)
    throw Error(fmt::format("expected {} to be a number from 0 to {}, but got '{}'", name, most, value));
  return number;
}

static std::string listed(std::span<const char *const> names) {
  std::string text;
  for (const char *name : names)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// The enumerator whose name in `names` is the value.
template <class Enum>
static Enum parseName(std::span<const char *const> names, const char *name, const std::string &value) {
  for (size_t i = 0; i < names.size(); ++i)
    if (value == names[i])
      return static_cast<Enum>(i);
  throw Error(fmt::format("expected {} to be one of {}, but got '{}'", name, listed(names), value));
}

std::span<const Setting> settings() {
  static constexpr Setting all[] = {
      {"order", "schedule of blocks and warps: forward, reverse or random",
       [](Schedule &schedule, const std::string &value) {
         schedule.order = parseName<Order>(std::array{"forward", "reverse", "random"}, "order", value);
       }},
      {"delivery", "completion of asynchronous copies: late, early or random",
       [](Schedule &schedule, const std::string &value) {
         schedule.delivery = parseName<Delivery>(std::array{"late", "early", "random"}, "delivery", value);
       }},
      {"seed", "seed of random orders",
       [](Schedule &schedule, const std::string &value) { schedule.seed = numberUpTo(~uint64_t{0}, "seed", value); }},
      {"check", "checks to make: all, -race, bounds,alignment, ...",
       [](Schedule &schedule, const std::string &value) { schedule.checks = Checks::named(value); }},
      {"ulp", "error of approximate f32 instructions, in multiples of the PTX ISA's bound",
       [](Schedule &schedule, const std::string &value) { schedule.errorTimes = numberUpTo(1 << 20, "ulp", value); }},
      {"steps", "maximum instructions of a warp (0: no limit)",
       [](Schedule &schedule, const std::string &value) {
         schedule.maxSteps = numberUpTo(int64_t{1} << 62, "steps", value);
       }},
  };
  return all;
}

Schedule Schedule::named(const std::string &text) {
  Schedule schedule;
  std::stringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto setting =
        std::find_if(settings().begin(), settings().end(), [&](const Setting &each) { return name == each.name; });
    if (setting == settings().end()) {
      std::vector<std::string> names;
      for (const Setting &each : settings())
        names.emplace_back(each.name);
      throw Error(unknownName("setting", name, names));
    }
    if (equals == std::string::npos)
      throw Error(fmt::format("expected a value in setting '{}', as in order=reverse", word));
    setting->set(schedule, word.substr(equals + 1));
  }
  return schedule;
}

// --- Blocks ---------------------------------------------------------------------------------------------------------

/// A turn has `turnSteps` steps. A block that has not ended after `patience` turns lets another one begin; so do all
/// blocks of a thread when none can proceed. A thread has at most `maxResident` blocks.
static constexpr int64_t turnSteps = 20000;
static constexpr int patience = 50;
static constexpr size_t maxResident = 1024;

namespace {
/// The blocks of a launch, distributed in the launch's order.
class Queue {
public:
  Queue(const Grid &grid, const Schedule &schedule)
      : grid(grid), schedule(schedule),
        count(schedule.only.empty() ? int64_t{grid.grid[0]} * grid.grid[1] * grid.grid[2]
                                    : static_cast<int64_t>(schedule.only.size())) {
    // A stride coprime to the number of blocks.
    stride = count > 2 ? static_cast<int64_t>(schedule.seed * 2654435761u % static_cast<uint64_t>(count)) | 1 : 1;
    while (std::gcd(stride, count) != 1)
      ++stride;
  }
  /// The number of blocks that the launch runs.
  int64_t blocks() const { return count; }
  /// The coordinates of the next block, or none.
  std::optional<Extents> next() {
    const int64_t number = taken++;
    if (number >= count)
      return std::nullopt;
    const int64_t block = schedule.order == Order::forward ? number
                          : schedule.order == Order::reverse
                              ? count - 1 - number
                              : static_cast<int64_t>(static_cast<unsigned __int128>(number) *
                                                     static_cast<uint64_t>(stride) % static_cast<uint64_t>(count));
    if (!schedule.only.empty())
      return schedule.only[static_cast<size_t>(block)];
    return Extents{static_cast<int>(block % grid.grid[0]), static_cast<int>(block / grid.grid[0] % grid.grid[1]),
                   static_cast<int>(block / grid.grid[0] / grid.grid[1])};
  }

private:
  const Grid &grid;
  const Schedule &schedule;
  const int64_t count;
  int64_t stride = 1;
  std::atomic<int64_t> taken = 0;
};

/// A block in progress on a host thread.
struct Resident {
  std::unique_ptr<Cta> block;
  int turns = 0;
};

/// A host thread, and the blocks that it runs.
class Worker {
public:
  Worker(const Grid &grid, const Schedule &schedule, Queue &queue, size_t number, Metrics *metrics)
      : grid(grid), schedule(schedule), queue(queue), number(number), metrics(metrics) {}
  void run();

private:
  bool wantsAnother() const;
  bool begin();
  Cta::Outlook turn(Cta &cta);
  bool help();
  const Grid &grid;
  const Schedule &schedule;
  Queue &queue;
  const size_t number;
  Metrics *metrics;
  int64_t turns = 0;
  std::deque<Resident> resident;
  /// Number of consecutive stuck blocks at one time stamp.
  size_t stuck = 0;
  uint64_t moment = 0;
};
} // namespace

/// Gives a block a turn. Returns `hopeless` if the block is deadlocked, and also if it has ended.
Cta::Outlook Worker::turn(Cta &cta) {
  const bool reversed =
      schedule.order == Order::reverse ||
      (schedule.order == Order::random && ((schedule.seed + static_cast<uint64_t>(turns)) * 0x9e3779b97f4a7c15 >> 63));
  ++turns;
  if (!cta.run(turnSteps, reversed, moment)) {
    cta.finish();
    cta.noteChange();
    return Cta::Outlook::hopeless;
  }
  const Cta::Outlook outlook = cta.goOn();
  if (outlook == Cta::Outlook::hopeless)
    cta.reportDeadlock();
  return outlook;
}

bool Worker::wantsAnother() const {
  return resident.empty() || stuck >= resident.size() ||
         (resident.size() < maxResident && resident.front().turns >= patience);
}

/// Begins the next block; false if there is none.
bool Worker::begin() {
  const std::optional<Extents> coordinates = queue.next();
  if (!coordinates)
    return false;
  resident.push_front({std::make_unique<Cta>(grid, *coordinates)});
  resident.front().block->metrics = metrics;
  resident.front().block->thread = number;
  stuck = 0;
  return true;
}

/// Called when all blocks of this thread are stuck and none is left to begin. Waits until another thread makes
/// progress, or until all threads are in this state; then tries to release waiting lanes. False if that does not help.
bool Worker::help() {
  const auto any = [&](bool (Cta::*remedy)()) {
    return std::any_of(resident.begin(), resident.end(), [&](const Resident &each) { return (*each.block.*remedy)(); });
  };
  Progress::Answer answer = Progress::Answer::wait;
  while (answer == Progress::Answer::wait && !grid.progress->isGivenUp()) {
    answer = grid.progress->quiet(number, moment,
                                  {[&] { return any(&Cta::letGoAtJoins); }, [&] { return any(&Cta::letGoAlone); }});
    if (answer == Progress::Answer::wait)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  if (answer == Progress::Answer::deadlock)
    for (const Resident &each : resident)
      each.block->reportDeadlock();
  return answer != Progress::Answer::deadlock;
}

void Worker::run() {
  for (bool more = true; !grid.progress->isGivenUp();) {
    if (const uint64_t now = grid.progress->now(); now != moment) {
      moment = now;
      stuck = 0;
    }
    if (more && wantsAnother()) {
      more = begin();
      continue;
    }
    if (resident.empty())
      return;
    if (stuck >= resident.size()) {
      if (!help())
        return;
      continue; // something has happened meanwhile
    }
    Resident current = std::move(resident.front());
    resident.pop_front();
    const Cta::Outlook outlook = turn(*current.block);
    if (outlook == Cta::Outlook::hopeless) {
      stuck = 0;
      continue;
    }
    ++current.turns;
    stuck = outlook == Cta::Outlook::stuck ? stuck + 1 : 0;
    resident.push_back(std::move(current));
  }
}

static void checkExtents(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared) {
  const auto text = [](const Extents &extents) { return fmt::format("{}x{}x{}", extents[0], extents[1], extents[2]); };
  const auto volume = [](const Extents &extents) { return int64_t{extents[0]} * extents[1] * extents[2]; };
  const int64_t stated = volume(program.block), most = stated ? std::min<int64_t>(stated, 1024) : 1024;
  const auto [narrowest, widest] = std::minmax_element(block.begin(), block.end());
  if (*narrowest < 1 || *widest > 1024 || volume(block) > most)
    throw Error(
        fmt::format("kernel '{}': expected a block of 1 to {} threads, but got {}", program.name, most, text(block)));
  if (program.blockIsFixed && block != program.block)
    throw Error(fmt::format("kernel '{}': expected a block of {} threads, as its .reqntid says, but got {}",
                            program.name, text(program.block), text(block)));
  if (grid[0] < 1 || grid[1] < 1 || grid[2] < 1 || grid[1] > 65535 || grid[2] > 65535)
    throw Error(
        fmt::format("kernel '{}': expected a grid of at least one block and at most 2147483647x65535x65535, but got {}",
                    program.name, text(grid)));
  if (program.staticShared + int64_t{dynamicShared} > program.maxShared)
    throw Error(fmt::format("kernel '{}': expected at most {} bytes of shared memory, the limit of a block on its "
                            "target {}, but got {} static and {} dynamic",
                            program.name, program.maxShared, program.module->target, program.staticShared,
                            dynamicShared));
}

void launch(const Program &program, const Extents &grid, const Extents &block, uint32_t dynamicShared,
            const char *parameters, const Memory &memory, Findings &findings, const Schedule &schedule,
            Metrics *metrics, Console *console, const ViewNames *views) {
  checkExtents(program, grid, block, dynamicShared);
  const int64_t cores = schedule.threads > 0 ? schedule.threads : std::max(1u, std::thread::hardware_concurrency());
  std::unique_ptr<GlobalShadow> shadow;
  if (schedule.checks.needShadow())
    shadow = std::make_unique<GlobalShadow>(cores > 1 && grid != Extents{1, 1, 1});
  TensorMapChanges tensorMaps;
  Grid all{program,           grid,          block,      dynamicShared,   parameters,  memory, findings,
           schedule.delivery, schedule.seed, tensorMaps, schedule.checks, shadow.get()};
  all.errorTimes = schedule.errorTimes;
  all.counts = metrics != nullptr;
  Console standard([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
  all.console = console ? console : &standard;
  all.maxSteps = schedule.maxSteps;
  all.views = views;
  Queue queue(all, schedule);
  const auto threads = static_cast<size_t>(std::min(cores, queue.blocks()));
  Progress progress(threads);
  all.progress = &progress;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&](size_t number) {
    try {
      std::optional<Metrics> counts;
      if (metrics)
        counts.emplace(program);
      Worker(all, schedule, queue, number, counts ? &*counts : nullptr).run();
      if (metrics)
        metrics->add(*counts);
    } catch (...) {
      progress.giveUp();
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
    progress.leave(number);
  };
  {
    std::vector<std::jthread> others;
    others.reserve(threads);
    try {
      for (size_t i = 1; i < threads; ++i)
        others.emplace_back(work, i);
    } catch (const std::system_error &) { // no more threads available: the existing ones run all blocks
      for (size_t i = others.size() + 1; i < threads; ++i)
        progress.leave(i);
    }
    work(0);
  }
  if (failure)
    std::rethrow_exception(failure);
}

} // namespace kiln::simulator
