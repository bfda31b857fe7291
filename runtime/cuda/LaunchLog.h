// The launches since the last wait. A fault of a kernel appears only at a wait, and the driver does not name the
// launch.

#pragma once

#include "dialect/dsl/Plan.h"

#include <array>
#include <memory>
#include <string>

namespace kiln::cuda {

/// Belongs to one thread at a time.
class LaunchLog {
public:
  /// The text of a launch without its grid: "kernel 'softmax' at kernels/softmax.cc:20".
  using Label = std::shared_ptr<const std::string>;

  void add(const Label &label, const uint64_t *grid) {
    last[count++ % last.size()] = {label, {grid[0], grid[1], grid[2]}};
  }
  void clear() { count = 0; }
  bool empty() const { return count == 0; }
  /// The last launches, the latest first, and the number of earlier ones.
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
