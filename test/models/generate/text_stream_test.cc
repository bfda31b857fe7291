// Text that is printed during generation.

#include "models/generate/sample_command.h"

#include <gtest/gtest.h>

using namespace kiln;

namespace {

/// The output of a stream for a text given byte by byte, one part for each byte.
std::vector<std::string> shown(TextStream &stream, const std::string &text) {
  std::vector<std::string> parts;
  for (const char byte : text)
    parts.push_back(stream.push({&byte, 1}));
  parts.push_back(stream.finish());
  return parts;
}

std::string joined(const std::vector<std::string> &parts) {
  std::string all;
  for (const std::string &part : parts)
    all += part;
  return all;
}

// No part begins or ends within a character, for all lengths.
TEST(TextStream, ShowsWholeCharacters) {
  TextStream stream;
  EXPECT_EQ(shown(stream, "aé€😀b"), (std::vector<std::string>{"a", "", "é", "", "", "€", "", "", "", "😀", "b", ""}));
}

// Invalid UTF-8 is printed unchanged: a continuation without a beginning, a beginning without continuation, one at the
// end, and bytes that never occur.
TEST(TextStream, LetsOtherBytesPass) {
  for (const std::string text : {"\x80x", "\xc3x", "x\xe2\x82", "\xff\xfe", "\xc0\x80", "\xf0\x9f\x98"}) {
    TextStream stream;
    EXPECT_EQ(joined(shown(stream, text)), text);
  }
}

// The text ends before the first stop string, of which no part is printed.
TEST(TextStream, EndsInFrontOfAStop) {
  TextStream stream({"END", "\n\n"});
  EXPECT_EQ(joined(shown(stream, "An EN\nd END\n\nmore")), "An EN\nd ");
  EXPECT_TRUE(stream.isStopped());
}

// The beginning of a stop text that is not completed is shown.
TEST(TextStream, ShowsWhatBecomesNoStop) {
  TextStream stream({"abac"});
  EXPECT_EQ(joined(shown(stream, "ababac")), "ab");
  TextStream other({"abac"});
  EXPECT_EQ(joined(shown(other, "aba")), "aba");
  EXPECT_FALSE(other.isStopped());
}

// A stop string within one larger part is found, too.
TEST(TextStream, FindsAStopWithinAPiece) {
  TextStream stream({"."});
  EXPECT_EQ(stream.push("One. Two."), "One");
  EXPECT_EQ(stream.push("Three"), "");
}

} // namespace
