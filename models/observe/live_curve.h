// A curve in one line of text, of braille's dots: two columns of four dots a character.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln {

class LiveCurve {
public:
  void add(double value);
  /// `loss 5.5598 ⡇⠱⣀ 1.7108`: the highest and the last mean, and between them all values so far as means of `width` ·
  /// 2 stretches of the same length. Nothing without a finite value.
  std::string text(int width) const;

private:
  struct Sum {
    double total = 0;
    int64_t count = 0;
  };
  static constexpr size_t most = 2048; // sums that are kept: then neighbours become one

  std::vector<Sum> sums;
  int64_t length = 1; // values of each
};

} // namespace kiln
