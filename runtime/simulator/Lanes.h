// Handlers of elementwise instructions. An instruction is written once, as a function of one lane; the loop over 32
// lanes and the mask are here.

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

/// result[lane] = function(sources[lane]…) for the executing lanes.
template <class Result, class... Sources, class Function, size_t... I>
inline void forLanes(Warp &warp, const Step &step, Function function, std::index_sequence<I...>) {
  auto *result = warp.reg<WordOf<Result>>(step.slots[0]);
  const std::tuple<const WordOf<Sources> *...> sources(warp.reg<WordOf<Sources>>(step.slots[I + 1])...);
  if (warp.exec == allLanes) {
#ifdef __clang__ // registers are the same or lie apart
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
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
      Mask &result = warp.predicate(step.slots[0]);
      result = (result & ~warp.exec) | (mask & warp.exec);
    };
  }(std::index_sequence_for<Sources...>());
}

} // namespace kiln::simulator
