// What a micro-batch brings to a device, on the host: arrays by their names, and how large it is.

#pragma once

#include "dialect/dsl/Types.h"

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

/// Elements of one type, one after the other.
class HostArray {
public:
  HostArray() = default;
  /// The numbers as elements of `type`, which is as wide as Number.
  template <class Number>
  HostArray(Type type, const std::vector<Number> &numbers) : element(type), held(numbers.size() * sizeof(Number)) {
    std::memcpy(held.data(), numbers.data(), held.size());
  }
  HostArray(const std::vector<int32_t> &numbers) : HostArray(i32, numbers) {}

  Type type() const { return element; }
  const std::vector<char> &bytes() const { return held; }
  /// A copy of the elements as numbers of the same width.
  template <class Number> std::vector<Number> numbers() const {
    std::vector<Number> all(held.size() / sizeof(Number));
    std::memcpy(all.data(), held.data(), held.size());
    return all;
  }

private:
  Type element = i32;
  std::vector<char> held;
};

/// The size of a micro-batch: how many sequences, and how long the longest may be.
struct BatchShape {
  int64_t sequences = 0;
  int64_t target = 0; // places of a sequence, each of which has room for a target
  int64_t source = 0; // places of the sequence that it is made from; 0 where there is none
  /// Targets that a micro-batch has room for, each of which has a loss.
  int64_t targets() const { return sequences * target; }
  /// Places of all sources.
  int64_t sources() const { return sequences * source; }
  auto operator<=>(const BatchShape &) const = default;
};

struct HostBatch : std::map<std::string, HostArray> {
  using std::map<std::string, HostArray>::map;
  std::optional<BatchShape> shape = {}; // the one that a trainer was made for, if not given
};

/// What a model of language learns from: tokens, and the tokens that follow them, both i32.
inline HostBatch languageBatch(const std::vector<int32_t> &tokens, const std::vector<int32_t> &targets) {
  return {{"tokens", tokens}, {"targets", targets}};
}

} // namespace kiln
