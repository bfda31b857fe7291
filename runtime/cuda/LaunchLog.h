// The launches since somebody last waited: a fault of one shows only then, and does not say whose it was.

#pragma once

#include "dialect/dsl/Plan.h"

#include <array>
#include <memory>
#include <string>

namespace kiln::cuda {

/// Belongs to one thread at a time.
class LaunchLog {
public:
  /// Words for a launch but its grid: "kernel 'softmax' at kernels/softmax.cc:20".
  using Label = std::shared_ptr<const std::string>;

  void add(const Label &label, const uint64_t *grid) {
    last[count++ % last.size()] = {label, {grid[0], grid[1], grid[2]}};
  }
  void clear() { count = 0; }
  bool empty() const { return count == 0; }
  /// The last ones, the latest first, and how many there were before them.
  std::string text() const;

private:
  struct Entry {
    Label label;
    std::array<uint64_t, 3> grid;
  };
  std::array<Entry, 16> last;
  uint64_t count = 0;
};

} // namespace kiln::cuda
