// What a micro-batch brings to a device, on the host: arrays by their names.

#pragma once

#include "dialect/dsl/Types.h"

#include <cstring>
#include <map>
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

using HostBatch = std::map<std::string, HostArray>;

/// What a model of language learns from: tokens, and the tokens that follow them, both i32.
inline HostBatch languageBatch(const std::vector<int32_t> &tokens, const std::vector<int32_t> &targets) {
  return {{"tokens", tokens}, {"targets", targets}};
}

} // namespace kiln
