// Finds the nearest name by edit distance; a transposition of adjacent letters counts as one edit.

#include "dialect/dsl/Nearest.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace kiln {

/// Words for one thing, here and in PyTorch, NumPy, Triton and CUDA.
static constexpr std::array<std::string_view, 6> synonyms[] = {
    {"f16", "fp16", "float16", "half"},
    {"bf16", "bfloat16"},
    {"f32", "fp32", "float32", "float"},
    {"f64", "fp64", "float64", "double"},
    {"f8e4m3", "float8e4nv", "float8_e4m3fn", "fp8"},
    {"f8e5m2", "float8e5", "float8_e5m2"},
    {"f8e8m0", "e8m0", "float8_e8m0fnu", "ue8m0"},
    {"f4e2m1x2", "float4_e2m1fn_x2", "fp4", "e2m1"},
    {"boolean", "bool", "int1"},
    {"i8", "int8"},
    {"u8", "uint8"},
    {"i16", "int16"},
    {"u16", "uint16"},
    {"i32", "int32", "int"},
    {"u32", "uint32"},
    {"i64", "int64"},
    {"u64", "uint64"},
    {"cuda:0", "cuda", "gpu"},
    {"cpu", "cpu:0"},
    {"sm_80", "a100", "a30", "ampere"},
    {"sm_86", "a10", "a40", "rtx3090"},
    {"sm_89", "l4", "l40", "l40s", "rtx4090", "ada"},
    {"sm_90a", "h100", "h200", "gh200", "hopper"},
    {"sm_100a", "b200", "gb200", "blackwell"},
    {"sm_120", "rtx5090"},
};

static bool areSynonyms(std::string_view word, std::string_view candidate) {
  if (const size_t kind = candidate.find(':') + 1; kind > 0) // "simulator:h100", or "h100" alone
    if (const bool starts = word.starts_with(candidate.substr(0, kind)); starts || word.find(':') == word.npos)
      if (areSynonyms(word.substr(starts ? kind : 0), candidate.substr(kind)))
        return true;
  return std::any_of(std::begin(synonyms), std::end(synonyms), [&](const auto &words) {
    return std::find(words.begin(), words.end(), word) != words.end() &&
           std::find(words.begin(), words.end(), candidate) != words.end();
  });
}

/// Whether the candidate, or its part after a colon, begins with the word.
static bool completes(const std::string &word, const std::string &candidate) {
  return candidate.starts_with(word) || candidate.find(":" + word) != std::string::npos;
}

static size_t slips(const std::string &a, const std::string &b) {
  // For i − 2, i − 1 and i letters of a.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, last);
    std::swap(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::optional<std::string> nearest(const std::string &word, const std::vector<std::string> &candidates) {
  const size_t letters = word.size() - std::min(word.size(), word.find_first_not_of('-'));
  if (letters < 2)
    return {};
  std::optional<std::string> best;
  for (const std::string &candidate : candidates)
    if (areSynonyms(word, candidate))
      return candidate;
    else if (completes(word, candidate) && (!best || candidate.size() < best->size()))
      best = candidate;
  if (best)
    return best;
  size_t least = std::max<size_t>(1, letters / 3) + 1;
  for (const std::string &candidate : candidates)
    if (const size_t distance = slips(word, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  return best;
}

std::string didYouMean(const std::string &word, const std::vector<std::string> &candidates) {
  const std::optional<std::string> guess = nearest(word, candidates);
  return guess ? "; did you mean '" + *guess + "'?" : "";
}

std::string unknownName(const std::string &kind, const std::string &name, const std::vector<std::string> &known) {
  return unknownName(kind, name, known, didYouMean(name, known));
}

std::string unknownName(const std::string &kind, const std::string &name, const std::vector<std::string> &known,
                        const std::string &hint) {
  std::string names;
  for (const std::string &each : known)
    names += (names.empty() ? "" : ", ") + each;
  return "unknown " + kind + " '" + name + "'" + hint + (names.empty() ? "; there is none" : " (known: " + names + ")");
}

} // namespace kiln
