// Counts in one table per thread, then merges the tables.

#include "models/tokens/piece_counts.h"
#include "models/tokens/merge_table.h"
#include "models/tokens/split.h"
#include "models/tokens/threads.h"
#include "models/tokens/words.h"

#include <algorithm>
#include <list>
#include <mutex>

namespace kiln {

std::string expressionOf(const std::string &split) {
  const auto named = namedSplits().find(split);
  return named != namedSplits().end() ? named->second : split;
}

size_t PieceCounts::Hash::operator()(std::string_view piece) const { return hashOfPiece(piece); }

PieceCounts::PieceCounts(TokenStyle style, const std::string &split)
    : kind(style), split(style == TokenStyle::bytes ? expressionOf(split) : "") {
  const Splitter any(this->split); // reports an error in the expression before a text is read
}

void PieceCounts::add(std::string_view text, int threads) {
  const auto isNamed = [&](const auto &named) { return named.second == split; };
  const bool cuts = kind != TokenStyle::bytes || std::any_of(namedSplits().begin(), namedSplits().end(), isNamed);
  const std::vector<std::string_view> parts =
      cuts ? partsAtLines(text, size_t{1} << 20) : std::vector<std::string_view>{text};
  const Splitter splitter(split);
  std::list<Counts> tables; // one per thread
  std::mutex lock;
  workTogether(threads, parts.size(), [&] {
    const std::scoped_lock held(lock);
    return [&, &own = tables.emplace_back()](size_t i) {
      const auto take = [&own](std::string_view piece) {
        const auto place = own.find(piece);
        if (place != own.end())
          ++place->second;
        else
          own.emplace(piece, 1);
      };
      if (kind == TokenStyle::bytes)
        splitter.split(parts[i], take);
      else
        forWords(parts[i], take);
    };
  });
  for (const Counts &table : tables)
    for (const auto &[piece, count] : table)
      counts[piece] += count;
}

std::vector<std::pair<std::string, int64_t>> PieceCounts::sorted() const {
  std::vector<std::pair<std::string, int64_t>> all(counts.begin(), counts.end());
  std::sort(all.begin(), all.end());
  return all;
}

} // namespace kiln
