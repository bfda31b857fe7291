// HellaSwag tasks: a context, four endings, and the index of the right one. Zellers et al., "HellaSwag: Can a Machine
// Really Finish Your Sentence?", 2019.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

struct HellaSwagTask {
  std::string context;
  std::array<std::string, 4> endings;
  int right = 0; // from 0
};

/// Reads tasks of six lines (the context, the number of the right ending, four endings), or one line of JSON each
/// (.jsonl: ctx, label, endings), either compressed (.gz, .bz2). Throws Error for a file of another form.
std::vector<HellaSwagTask> readHellaSwag(const std::string &path);

} // namespace kiln
