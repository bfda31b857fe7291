// The kinds of damage. Each is right for binary files and for text; those for text look for digits or words.

#include "test/faults/mutation.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstring>

namespace kiln::faults {

uint64_t Chance::next() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Longest piece that is inserted, removed or moved.
static constexpr size_t longestPiece = 200;

static const std::vector<std::string> &numbers() {
  static const std::vector<std::string> all = {
      "0",          "-1",         "1",          "2",           "7",
      "63",         "64",         "65",         "1024",        "65536",
      "2147483647", "2147483648", "4294967296", "-2147483649", "9223372036854775807",
      "1e400",      "-0",         "0.5",        "1e-320",      "-9223372036854775808",
      "nan",        "-1e5",       "1e5",        "00001",       "18446744073709551616",
      "0x7fffffff", "1000000",    "3",          "true",        std::string(400, '9')};
  return all;
}

/// An offset in `bytes`, and the length of a piece from there.
struct Piece {
  Piece(const std::string &bytes, Chance &chance)
      : at(chance.below(bytes.size() + 1)), size(chance.below(std::min(longestPiece, bytes.size() - at) + 1)) {}
  size_t at, size;
};

static void flipBit(std::string &bytes, Chance &chance) {
  if (!bytes.empty())
    bytes[chance.below(bytes.size())] ^= static_cast<char>(1 << chance.below(8));
}

static void setByte(std::string &bytes, Chance &chance) {
  static const std::vector<int> values = {0,   1,   0x7f, 0x80, 0xff, '"', '{', '}',
                                          '[', ']', '<',  '>',  '(',  ')', ',', ':'};
  if (!bytes.empty())
    bytes[chance.below(bytes.size())] = static_cast<char>(chance.oneOf(values));
}

static void cut(std::string &bytes, Chance &chance) { bytes.resize(chance.below(bytes.size() + 1)); }

static void remove(std::string &bytes, Chance &chance) {
  const Piece piece(bytes, chance);
  bytes.erase(piece.at, piece.size);
}

static void repeat(std::string &bytes, Chance &chance) {
  const Piece piece(bytes, chance);
  bytes.insert(piece.at, bytes.substr(piece.at, piece.size));
}

static void move(std::string &bytes, Chance &chance) {
  const Piece piece(bytes, chance);
  const std::string moved = bytes.substr(piece.at, piece.size);
  bytes.erase(piece.at, piece.size);
  bytes.insert(chance.below(bytes.size() + 1), moved);
}

/// Replaces eight bytes that may be a length.
static void setLength(std::string &bytes, Chance &chance) {
  if (bytes.size() < 8)
    return;
  const uint64_t size = bytes.size(), half = uint64_t{1} << 63;
  const std::vector<uint64_t> lengths = {
      0,        1,    size,        size - 8,     size + 1,     size - 1,         uint64_t{1} << 31,
      half - 1, half, half + size, ~uint64_t{0}, ~uint64_t{7}, uint64_t{1} << 40};
  const uint64_t length = chance.oneOf(lengths);
  const size_t at = chance.below(3) == 0 ? chance.below(bytes.size() / 8) * 8 : 0; // most lengths come first
  std::memcpy(bytes.data() + at, &length, 8);
}

static void setNumber(std::string &bytes, Chance &chance) {
  const size_t from = chance.below(bytes.size() + 1);
  const auto isDigit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const auto begin = std::find_if(bytes.begin() + static_cast<std::ptrdiff_t>(from), bytes.end(), isDigit);
  const auto end = std::find_if_not(begin, bytes.end(), isDigit);
  if (begin != end)
    bytes.replace(begin, end, chance.oneOf(numbers()));
}

/// Brackets in brackets, closed or not.
static void nest(std::string &bytes, Chance &chance) {
  static const std::vector<std::pair<std::string, std::string>> brackets = {
      {"[", "]"}, {"{\"a\":", "}"}, {"(", ")"}, {"<", ">"}, {"{", "}"}, {"tuple<", ">"}, {"vector<1x", ">"}};
  static const std::vector<size_t> depths = {3, 60, 200, 5000, 100000};
  const auto &[open, close] = chance.oneOf(brackets);
  std::string left, right;
  for (size_t depth = chance.oneOf(depths); depth > 0; --depth) {
    left += open;
    right += close;
  }
  bytes.insert(chance.below(bytes.size() + 1), chance.below(2) ? left + "1" + right : left);
}

static bool isOfWord(unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '%' || c == '@'; }

/// The word at or after an offset.
static std::pair<size_t, size_t> wordIn(const std::string &bytes, Chance &chance) {
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(chance.below(bytes.size() + 1));
  const auto begin = std::find_if(from, bytes.end(), isOfWord);
  return {begin - bytes.begin(), std::find_if_not(begin, bytes.end(), isOfWord) - begin};
}

static void exchangeWord(std::string &bytes, const std::string &other, Chance &chance) {
  const auto [at, size] = wordIn(bytes, chance);
  const auto [from, count] = wordIn(other, chance);
  bytes.replace(at, size, other.substr(from, count));
}

static void splice(std::string &bytes, const std::string &other, Chance &chance) {
  const Piece piece(other, chance);
  if (chance.below(4) == 0) // the head of one and the tail of the other
    bytes = bytes.substr(0, chance.below(bytes.size() + 1)) + other.substr(piece.at);
  else
    bytes.insert(chance.below(bytes.size() + 1), other, piece.at, piece.size);
}

std::string damaged(std::string bytes, const std::vector<std::string> &others, Chance &chance) {
  using Damage = void (*)(std::string &, Chance &);
  static const std::vector<Damage> kinds = {flipBit, flipBit,   setByte,   cut,       remove, repeat,
                                            move,    setLength, setNumber, setNumber, nest,   setNumber};
  const std::string itself = bytes;
  for (size_t places = chance.below(3) ? 1 : 2 + chance.below(3); places > 0; --places) {
    const size_t kind = chance.below(kinds.size() + 4);
    const std::string &other = others.empty() ? itself : chance.oneOf(others);
    if (kind < kinds.size())
      kinds[kind](bytes, chance);
    else if (kind < kinds.size() + 2)
      exchangeWord(bytes, other, chance);
    else
      splice(bytes, other, chance);
  }
  return bytes;
}

} // namespace kiln::faults
