// Handlers of elementwise instructions. An instruction is written once, as a function of one lane; the loop over 32
// lanes, the mask and the choice by type are here.

#pragma once

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Warp.h"

#include <bit>

namespace kiln::simulator {

/// The word that holds a lane of type T.
template <class T> using WordOf = std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>;

template <class T> T fromWord(WordOf<T> word) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(word);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(word);
  else
    return static_cast<T>(word);
}

template <class T> WordOf<T> toWord(T value) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<uint32_t>(value);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<uint64_t>(value);
  else
    return static_cast<WordOf<T>>(static_cast<std::make_unsigned_t<T>>(value));
}

/// Calls function(lane) for each executing lane.
template <class Function> void forEachLane(const Warp &warp, Function function) {
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1)
      function(lane);
}

/// Sets a register to one value in the executing lanes.
template <class Word> void setLanes(Warp &warp, uint32_t slot, Word value) {
  forEachLane(warp, [value, to = warp.reg<Word>(slot)](int lane) { to[lane] = value; });
}

/// A small structure as a step's detail, and back.
template <class T> uint64_t asDetail(const T &fields) {
  static_assert(sizeof(T) <= sizeof(uint64_t) && std::is_trivially_copyable_v<T>);
  uint64_t bits = 0;
  std::memcpy(&bits, &fields, sizeof(T));
  return bits;
}
template <class T> T unpackDetail(const Step &step) {
  T fields;
  std::memcpy(static_cast<void *>(&fields), &step.detail, sizeof(T));
  return fields;
}

/// Gives a step a structure in its list, with slots after it; the structure, and these slots.
template <class T> inline constexpr size_t wordsOf = (sizeof(T) + 3) / 4;
template <class T> void giveFields(Decoder &d, Step &step, const T &fields, std::vector<uint32_t> slots = {}) {
  static_assert(std::is_trivially_copyable_v<T>);
  slots.insert(slots.begin(), wordsOf<T>, 0);
  std::memcpy(slots.data(), &fields, sizeof(T));
  d.giveList(step, slots);
}
template <class T> T fieldsOf(const Warp &warp, const Step &step) {
  T fields;
  std::memcpy(static_cast<void *>(&fields), warp.list(step), sizeof(T));
  return fields;
}
template <class T> std::span<const uint32_t> slotsAfter(const Warp &warp, const Step &step) {
  return {warp.list(step) + wordsOf<T>, step.count - wordsOf<T>};
}

/// result[lane] = function(sources[lane]…) for the executing lanes.
template <class Result, class... Sources, class Function, size_t... I>
inline void forLanes(Warp &warp, const Step &step, Function function, std::index_sequence<I...>) {
  auto *result = warp.reg<WordOf<Result>>(step.slots[0]);
  const std::tuple<const WordOf<Sources> *...> sources(warp.reg<WordOf<Sources>>(step.slots[I + 1])...);
  if (warp.exec == allLanes) {
    KILN_VECTORISE_LANES
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      result[lane] = toWord<Result>(function(fromWord<Sources>(std::get<I>(sources)[lane])...));
    return;
  }
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1)
      result[lane] = toWord<Result>(function(fromWord<Sources>(std::get<I>(sources)[lane])...));
}

/// A handler from a stateless `function` from Sources to Result.
template <class Result, class... Sources, class Function> constexpr Handler elementwise(Function) {
  static_assert(std::is_empty_v<Function>);
  return [](Warp &warp, const Step &step) {
    forLanes<Result, Sources...>(warp, step, Function(), std::index_sequence_for<Sources...>());
  };
}

/// A handler that sets a predicate, from a `function` from Sources to bool.
template <class... Sources, class Function> constexpr Handler testing(Function) {
  static_assert(std::is_empty_v<Function>);
  return []<size_t... I>(std::index_sequence<I...>) -> Handler {
    return [](Warp &warp, const Step &step) {
      const std::tuple<const WordOf<Sources> *...> sources(warp.reg<WordOf<Sources>>(step.slots[I + 1])...);
      Mask mask = 0;
      for (int lane = 0; lane < lanesOfWarp; ++lane)
        mask |= static_cast<Mask>(Function()(fromWord<Sources>(std::get<I>(sources)[lane])...)) << lane;
      warp.setPredicate(step.slots[0], mask);
    };
  }(std::index_sequence_for<Sources...>());
}

/// The integer type of PTX that a C++ type is.
template <class T>
inline constexpr ptx::Type ptxType = std::is_same_v<T, uint16_t>   ? ptx::Type::u16
                                     : std::is_same_v<T, int16_t>  ? ptx::Type::s16
                                     : std::is_same_v<T, uint32_t> ? ptx::Type::u32
                                     : std::is_same_v<T, int32_t>  ? ptx::Type::s32
                                     : std::is_same_v<T, uint64_t> ? ptx::Type::u64
                                                                   : ptx::Type::s64;
/// The handler that `pick` has for the one of these C++ types that a type of PTX is; none for another type.
template <class... Types, class Pick> Handler onTypes(ptx::Type type, Pick pick) {
  Handler handler = nullptr;
  (void)((type == ptxType<Types> && (handler = pick.template operator()<Types>())) || ...);
  return handler;
}
template <class Pick> Handler onIntegers(ptx::Type type, Pick pick) {
  return onTypes<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>(type, pick);
}
/// The handler that `pick` has for the words of a type, of 32 or of 64 bits.
template <class Pick> Handler onWords(ptx::Type type, Pick pick) {
  return laneBytes(type) == 8 ? pick.template operator()<uint64_t>() : pick.template operator()<uint32_t>();
}

} // namespace kiln::simulator
