// A loss curve in one line of text, of braille characters: two columns of four dots a character.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

class LiveCurve {
public:
  void add(double value);
  /// `loss 5.5598 ⡇⠱⣀ 1.7108`: the highest and the last mean, and between them the values so far as `width` · 2 means
  /// over equal intervals. Empty without a finite value.
  std::string text(int width) const;

private:
  struct Sum {
    double total = 0;
    int64_t count = 0;
  };
  static constexpr size_t most = 2048; // sums kept; then neighbours are merged

  std::vector<Sum> sums;
  int64_t length = 1; // values in each sum
};

} // namespace kiln
