// The arrays of a micro-batch on the host, by name, and its shape.

#pragma once

#include "dialect/dsl/Types.h"

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// Consecutive elements of one type.
class HostArray {
public:
  HostArray() = default;
  /// Constructs it from numbers as elements of `type`, which has the width of Number.
  template <class Number>
  HostArray(Type type, const std::vector<Number> &numbers) : element(type), held(numbers.size() * sizeof(Number)) {
    std::memcpy(held.data(), numbers.data(), held.size());
  }
  HostArray(const std::vector<int32_t> &numbers) : HostArray(i32, numbers) {}

  Type type() const { return element; }
  const std::vector<char> &bytes() const { return held; }
  /// A copy of the elements as numbers of equal width.
  template <class Number> std::vector<Number> numbers() const {
    std::vector<Number> all(held.size() / sizeof(Number));
    std::memcpy(all.data(), held.data(), held.size());
    return all;
  }

private:
  Type element = i32;
  std::vector<char> held;
};

/// The shape of a micro-batch: number of sequences, and length of the longest.
struct BatchShape {
  int64_t sequences = 0;
  int64_t target = 0; // positions of a sequence, each with room for a target
  int64_t source = 0; // positions of the source sequence, in an encoder-decoder; 0: none
  /// Number of targets that a micro-batch has room for, each with a loss.
  int64_t targets() const { return sequences * target; }
  /// Positions of all sources.
  int64_t sources() const { return sequences * source; }
  auto operator<=>(const BatchShape &) const = default;
};

struct HostBatch : std::map<std::string, HostArray> {
  using std::map<std::string, HostArray>::map;
  std::optional<BatchShape> shape = {}; // default: the shape that the trainer was made for
};

/// A micro-batch of a language model: tokens, and the tokens that follow, both i32.
inline HostBatch languageBatch(const std::vector<int32_t> &tokens, const std::vector<int32_t> &targets) {
  return {{"tokens", tokens}, {"targets", targets}};
}

} // namespace kiln
