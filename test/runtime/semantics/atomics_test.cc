// Atomics, other than those of single tiles, which accesses_test draws: special words, elements that occur several
// times, and many programs at once.

#include "runtime/simulator/SimulatorDevice.h"
#include "test/expect_error.h"
#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace kiln;
using namespace kiln::test;

namespace {

class Atomics : public Semantics {};

enum class Verb { add, min, max, bitAnd, bitOr, bitXor, exchange }; // in the order of `atomics`

std::vector<Type> typesOf(Verb verb) {
  switch (verb) {
  case Verb::min:
  case Verb::max:
    return {i32, u32, i64, u64, f32, f64};
  case Verb::add:
    return {i32, u32, i64, u64, bf16, f16, f32, f64};
  default:
    break;
  }
  return {i16, u16, i32, u32, i64, u64, bf16, f16, f32, f64};
}

struct VerbConfig {
  int verb = 0, extent = 7, order = 0, scope = static_cast<int>(Scope::device);
};
const std::vector<Field> verbFields = {field("verb", &VerbConfig::verb), field("extent", &VerbConfig::extent),
                                       field("order", &VerbConfig::order), field("scope", &VerbConfig::scope)};

Tile change(Verb verb, View x, const Offsets &at, const Tile &value) {
  return atomics[static_cast<int>(verb)].apply(x, at, value, Order::relaxed, {}, here());
}

/// The lesser or the greater of two words.
uint64_t extreme(Verb verb, Type type, uint64_t was, uint64_t value) {
  if (isFloat(type)) {
    const double a = toDouble(type, was), b = toDouble(type, value);
    return rawOfReal(type, verb == Verb::min ? std::fmin(a, b) : std::fmax(a, b));
  }
  return (wideOf(type, was) < wideOf(type, value)) == (verb == Verb::min) ? was : value;
}

/// Applies the atomic to each element of x with the element of y at its position; y receives the old values.
void extremes(View x, View y, VerbConfig cfg) {
  Tile value = load(y, {0}, {cfg.extent});
  Tile before = change(static_cast<Verb>(cfg.verb), x, {0}, value);
  store(y, {0}, before);
}
const Kernel extremesKernel = kernel("extremes", extremes, verbFields);

// Of words of every sign and size. A NaN operand changes nothing, and a NaN in memory is replaced; which of two zeros
// stays is unspecified.
TEST_P(Atomics, TheLeastAndTheGreatestAreThoseOfTheType) {
  for (const Type type : typesOf(Verb::min))
    for (const Verb verb : {Verb::min, Verb::max}) {
      const Raw words = specialWords(type);
      Raw left, right;
      for (const uint64_t a : words)
        for (const uint64_t b : words) {
          left.push_back(a);
          right.push_back(b);
        }
      const auto count = static_cast<int64_t>(left.size());
      const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right);
      launch(extremesKernel, {x.ref(), y.ref()}, VerbConfig{static_cast<int>(verb), static_cast<int>(count)});
      const Raw got = read(x), before = read(y);
      for (int64_t i = 0; i < count; ++i) {
        EXPECT_TRUE(same(type, before[i], left[i])) << nameOf(type) << ", element " << i;
        EXPECT_TRUE(same(type, got[i], extreme(verb, type, left[i], right[i]), /*signOfZero=*/false))
            << nameOf(type) << ", words " << left[i] << " and " << right[i];
      }
    }
}

/// All elements of a tile have a few positions.
void pileUp(View x, View before, VerbConfig cfg) {
  Tile i = iota(cfg.extent);
  Tile old = change(static_cast<Verb>(cfg.verb), x, {i % 3}, cast(i + 1, x.type()));
  store(before, {program_id(0), 0}, old);
}
const Kernel pileUpKernel = kernel("pile_up", pileUp, verbFields);

// Integers whose sums are exact; exchanges pass each number on once.
TEST_P(Atomics, AnElementNamedSeveralTimesChangesOnceForEach) {
  const int64_t extent = 16, programs = 4; // bf16 has every whole number up to 256
  for (const Verb verb : {Verb::add, Verb::max, Verb::exchange})
    for (const Type type : typesOf(verb)) {
      const Tensor x = tensor(type, {3}, Raw(3, 0)), before(device, type, {programs, extent});
      launch(pileUpKernel, {x.ref(), before.ref()}, VerbConfig{static_cast<int>(verb), 16},
             verb == Verb::exchange ? 1 : programs);
      const Raw left = read(x), old = read(before);
      const auto number = [&](uint64_t raw) {
        return isFloat(type) ? toDouble(type, raw) : static_cast<double>(integerOf(type, raw));
      };
      for (int64_t place = 0; place < 3; ++place) {
        std::map<double, int> count; // of numbers that went there, less those that came back
        double sum = 0, most = 0;
        for (int64_t i = place; i < extent; i += 3) {
          sum += static_cast<double>(i + 1);
          most = std::max(most, static_cast<double>(i + 1));
          ++count[static_cast<double>(i + 1)];
          --count[number(old[i])];
        }
        const double got = number(left[place]);
        if (verb == Verb::add) {
          EXPECT_EQ(got, programs * sum) << nameOf(type) << ", place " << place;
        }
        if (verb == Verb::max) {
          EXPECT_EQ(got, most) << nameOf(type) << ", place " << place;
        }
        if (verb != Verb::exchange)
          continue;
        --count[got];
        ++count[0]; // which was there
        for (const auto &[value, times] : count)
          EXPECT_EQ(times, 0) << nameOf(type) << ", place " << place << ", number " << value;
      }
    }
}

// --- Compare and exchange
// ---------------------------------------------------------------------------------------------

void swapSome(View x, View expected, View desired, View picks, View before, VerbConfig cfg) {
  Tile old = atomic_compare_exchange(x, {0}, load(expected, {0}, {cfg.extent}), load(desired, {0}, {cfg.extent}),
                                     static_cast<Order>(cfg.order),
                                     {load(picks, {0}, {cfg.extent}), static_cast<Scope>(cfg.scope)});
  store(before, {0}, old);
}
const Kernel swapSomeKernel = kernel("swap_some", swapSome, verbFields);

TEST_P(Atomics, CompareAndExchangeComparesBits) {
  for (const Type type : {i16, i32, i64, bf16, f16, f32, f64}) {
    const Raw words = specialWords(type);
    Raw left, right, desired, picks;
    for (const uint64_t a : words)
      for (const uint64_t b : words) {
        left.push_back(a);
        right.push_back(b);
        desired.push_back(words[left.size() % words.size()]);
        picks.push_back(left.size() % 5 > 0);
      }
    const auto count = static_cast<int64_t>(left.size());
    const Tensor expected = tensor(type, {count}, right), wanted = tensor(type, {count}, desired),
                 mask = tensor(boolean, {count}, picks), before(device, type, {count});
    for (const int scope : {0, 1, 2}) {
      const Tensor y = tensor(type, {count}, left);
      launch(swapSomeKernel, {y.ref(), expected.ref(), wanted.ref(), mask.ref(), before.ref()},
             VerbConfig{0, static_cast<int>(count), 3, scope});
      const Raw got = read(y), old = read(before);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(old[i], picks[i] ? left[i] : 0) << nameOf(type) << ", element " << i;
        ASSERT_EQ(got[i], picks[i] && left[i] == right[i] ? desired[i] : left[i]) << nameOf(type) << ", element " << i;
      }
    }
  }
}

// --- Loads and stores ------------------------------------------------------------------------------------------------

void passWhole(View x, View y, View ids, VerbConfig cfg) {
  Tile id = load(ids, {0}, {cfg.extent});
  const auto scope = static_cast<Scope>(cfg.scope);
  Tile read = atomic_load(x, {-2}, {cfg.extent}, static_cast<Order>(cfg.order), {.mask = id != 1, .scope = scope});
  atomic_store(y, {id}, read, Order::relaxed, {.mask = id != 3, .scope = scope});
}
const Kernel passWholeKernel = kernel("pass_whole", passWhole, verbFields);

TEST_P(Atomics, LoadsAndStoresHaveEdgesAndMasks) {
  const int64_t size = 9, extent = 12;
  for (const Type type : everyType) {
    Raw ids;
    for (int64_t i = 0; i < extent; ++i)
      ids.push_back(rawOfInteger(i32, extent - 2 - i));
    const Tensor x = counting(type, {size}, 1), y = counting(type, {size}, 1), at = tensor(i32, {extent}, ids);
    launch(passWholeKernel, {x.ref(), y.ref(), at.ref()},
           VerbConfig{0, 12, static_cast<int>(bytesOf(type) % 2), static_cast<int>(type) % 3});
    const Raw source = read(x), got = read(y);
    for (int64_t place = 0; place < size; ++place) {
      const int64_t from = extent - 2 - place - 2;
      const bool isRead = from >= 0 && from < size && place != 1;
      const uint64_t want = place == 3 ? source[place] : isRead ? source[from] : 0;
      ASSERT_EQ(got[place], want) << nameOf(type) << ", place " << place;
    }
  }
}

/// Programs pass a number on: each waits a number of iterations for its own flag, and sets the next one's.
void relay(View data, View flags, View got, Tile rounds, VerbConfig cfg) {
  const auto scope = static_cast<Scope>(cfg.scope);
  Tile p = program_id(0), seen = 0;
  for (Tile k : range(0, rounds)) {
    if_(seen == 0, [&] { seen = cast(atomic_load(flags, {p}, {}, Order::acquire, {.scope = scope}), i64); });
  }
  if_(seen != 0, [&] {
    Tile now = load(data, {p}, {}) + 1;
    store(got, {p}, now);
    store(data, {p + 1}, now);
    atomic_store(flags, {p + 1}, 1, Order::release, {.scope = scope});
  });
}
const Kernel relayKernel = kernel("relay", relay, verbFields);

// A program that reads a flag by an acquiring load sees the stores before the releasing store.
TEST_P(Atomics, ALoadAcquiresWhatAStoreReleases) {
  const int64_t programs = 6;
  for (const Scope scope : {Scope::device, Scope::system, Scope::device}) {
    Raw set(programs + 1, 0), start(programs + 1, 0);
    set[0] = 1;
    const Tensor data = tensor(i32, {programs + 1}, start), flags = tensor(i32, {programs + 1}, set),
                 got = tensor(i32, {programs}, Raw(programs, 0));
    launch(relayKernel, {data.ref(), flags.ref(), got.ref(), int64_t(50)}, VerbConfig{.scope = static_cast<int>(scope)},
           programs);
    const Raw numbers = read(got);
    EXPECT_EQ(numbers[0], 1u);
    for (int64_t p = 0; p < programs; ++p)
      EXPECT_TRUE(numbers[p] == 0 || numbers[p] == static_cast<uint64_t>(p + 1)) << "program " << p;
  }
}

/// Each program adds to the element of its number, and to one that all share.
void countPrograms(View own, View all, VerbConfig cfg) {
  const auto scope = static_cast<Scope>(cfg.scope);
  atomic_add(own, {program_id(0)}, full(i32, {1}, 1), Order::acq_rel, {.scope = scope});
  atomic_add(all, {0}, 1, Order::relaxed, {.scope = cfg.order ? scope : Scope::device});
}
const Kernel countProgramsKernel = kernel("count_programs", countPrograms, verbFields);

// An element that only one program uses may be changed with the program's scope. An element of several may not, and the
// simulator reports it.
TEST_P(Atomics, TheScopeOfAProgramReachesNoOther) {
  const int64_t programs = 3;
  for (const Scope scope : {Scope::block, Scope::device, Scope::system})
    for (const int order : {0, 1}) {
      const Tensor own = tensor(i32, {programs}, Raw(programs, 0)), all = tensor(i32, {1}, {0});
      const bool races = scope == Scope::block && order == 1;
      if (races && !std::dynamic_pointer_cast<SimulatorDevice>(device))
        continue;
      const std::string config = "scope=" + std::to_string(static_cast<int>(scope)) + ",order=" + std::to_string(order);
      launch(countProgramsKernel, {own.ref(), all.ref()}, config, programs);
      if (races) {
        expectError([&] { device->synchronize(); }, {"race-programs", "the scope of one of the two is its own block"});
        continue;
      }
      EXPECT_NO_THROW(device->synchronize());
      EXPECT_EQ(read(own), Raw(programs, 1)) << config;
      EXPECT_EQ(read(all), Raw(1, programs)) << config;
    }
}

KILN_ON_PROCESSORS(Atomics);

} // namespace
