// Numbers in the texts of users.

#pragma once

#include "dialect/dsl/Types.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <string>

namespace kiln {

/// The reason why `text` is no T; empty if it is one.
template <class T> std::string complaint(const std::string &text) {
  T value{};
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size() || failure == std::errc::invalid_argument)
    return std::is_floating_point_v<T> ? "a number" : std::is_signed_v<T> ? "a whole number" : "a whole number from 0";
  if constexpr (std::is_floating_point_v<T>)
    return failure == std::errc() && std::isfinite(value) ? "" : "a finite number";
  else
    return failure == std::errc() ? "" : fmt::format("a whole number that fits into {} bits", 8 * sizeof(T));
}

/// Parses `text`, the value of `flag`, as a T. Throws Error if it is none.
template <class T> T numberIn(const std::string &flag, const std::string &text) {
  if (const std::string expected = complaint<T>(text); !expected.empty())
    throw Error(fmt::format("expected '{}' to be {}, but got '{}'", flag, expected, text));
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

} // namespace kiln
