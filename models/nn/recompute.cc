// Recomputation policies as text.

#include "models/nn/recompute.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>
#include <limits>
#include <sstream>
#include <vector>

namespace kiln {

static constexpr int64_t everyBlock = std::numeric_limits<int64_t>::max();
static const std::string whole = "block", none = "none";

/// The number of blocks after a site's name.
static int64_t blocksIn(const std::string &flag, const std::string &text) {
  int64_t number = 0;
  const char *const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 1)
    throw Error(
        fmt::format("expected '{}' to have a number of blocks of at least 1 after ':', but got '{}'", flag, text));
  return number;
}

Recompute recomputeNamed(const std::string &flag, const std::string &text) {
  Recompute result;
  if (text == none)
    return result;
  std::istringstream parts(text + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t colon = part.find(':');
    const std::string name = part.substr(0, colon);
    const int64_t blocks = colon == std::string::npos ? everyBlock : blocksIn(flag, part.substr(colon + 1));
    const auto *const site = std::find(siteNames.begin(), siteNames.end(), name);
    if (name == whole)
      for (int64_t &of : result.blocks)
        of = std::max(of, blocks);
    else if (site != siteNames.end())
      result.blocks.at(site - siteNames.begin()) = blocks;
    else
      throw Error(
          fmt::format("'{}' in '{}' is no activation to recompute; expected none, or a list of {} and block, joined "
                      "by commas, each with or without ':' and a number of blocks",
                      name, flag, fmt::join(siteNames, ", ")));
  }
  return result;
}

/// A site's name with its number of blocks.
static std::string siteText(const std::string &name, int64_t blocks) {
  return blocks == everyBlock ? name : fmt::format("{}:{}", name, blocks);
}

std::string nameOf(const Recompute &recompute) {
  const int64_t everywhere = *std::min_element(recompute.blocks.begin(), recompute.blocks.end());
  std::vector<std::string> names;
  if (everywhere > 0)
    names.push_back(siteText(whole, everywhere));
  for (size_t i = 0; i < siteNames.size(); ++i)
    if (recompute.blocks[i] > everywhere)
      names.push_back(siteText(siteNames.at(i), recompute.blocks[i]));
  return names.empty() ? none : fmt::format("{}", fmt::join(names, ","));
}

} // namespace kiln
