// The tokens of an invented text by other libraries (test/oracles/tokens.py).

#pragma once

#include "models/tokens/bpe_train.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

namespace kiln::test {

inline const nlohmann::json &golden() {
  static const nlohmann::json json =
      nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/tokens/golden.json")));
  return json;
}

/// The vocabulary that is learnt from the golden text.
inline Vocabulary learnt(const std::string &split = "gpt2", std::vector<std::string> specials = {}) {
  PieceCounts counts("gpt2");
  counts.add(golden()["text"].get<std::string>(), 1);
  Vocabulary v = trainBpe(counts, {.merges = 300, .specials = std::move(specials)});
  v.split = namedSplits().at(split);
  return v;
}

/// Strings of up to 12 of the golden parts, drawn by a linear congruence as the oracle draws them.
inline void forRandomStrings(int64_t count, const std::function<void(const std::string &)> &take) {
  const std::vector<std::string> parts = golden()["parts"];
  uint32_t state = 1;
  const auto below = [&](size_t bound) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % bound;
  };
  for (int64_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t left = 1 + below(12); left > 0; --left)
      text += parts[below(parts.size())];
    take(text);
  }
}

/// FNV-1a hash of lists of numbers, one number at a time, and one more after each list.
class HashOfLists {
public:
  void add(std::span<const int32_t> ids) {
    for (const int32_t id : ids)
      addNumber(static_cast<uint32_t>(id));
    addNumber(~uint32_t{0});
  }
  std::string text() const { return fmt::format("{:016x}", state); }

private:
  void addNumber(uint32_t number) { state = (state ^ number) * 0x100000001b3; }
  uint64_t state = 0xcbf29ce484222325;
};

/// The vocabulary learnt from whole random strings and a program. Its tokens cross the cuts of an expression, so they
/// show where it cuts.
inline Vocabulary crossing(const std::string &split) {
  static const Vocabulary whole = [] {
    PieceCounts counts("");
    forRandomStrings(golden()["learnt_from"], [&](const std::string &text) { counts.add(text, 1); });
    counts.add(golden()["code"].get<std::string>(), 1);
    return trainBpe(counts, {.merges = 3000, .split = ""});
  }();
  Vocabulary v = whole;
  v.split = namedSplits().at(split);
  return v;
}

} // namespace kiln::test
