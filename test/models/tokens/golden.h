// What other libraries made of a made-up text (test/oracles/tokens.py).

#pragma once

#include "models/tokens/bpe_train.h"
#include "test/temporary_folder.h"

#include <nlohmann/json.hpp>

namespace kiln::test {

inline const nlohmann::json &golden() {
  static const nlohmann::json json = nlohmann::json::parse(readText(KILN_GOLDEN_TOKENS));
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

} // namespace kiln::test
