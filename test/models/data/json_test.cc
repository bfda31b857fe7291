// JSON files: fields are read by kind. Errors name the file, the field, the expected and the given value.

#include "models/data/json.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <limits>

using namespace kiln;

namespace {

JsonObject parse(const std::string &text) { return {"F", text}; }

TEST(Json, ReadsFieldsOfEveryKind) {
  const JsonObject j = parse(R"({"i": -3, "n": 18446744073709551615, "x": 2.5, "t": "text", "l": [1, 2],
                                 "m": {"a": "b"}, "o": {"i": 7}})");
  EXPECT_EQ(j.integer("i"), -3);
  EXPECT_EQ(j.natural("n"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(j.number("x"), 2.5);
  EXPECT_EQ(j.number("i"), -3.0);
  EXPECT_EQ(j.text("t"), "text");
  EXPECT_EQ(j.naturals("l"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(j.texts("m"), (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_EQ(j.object("o").integer("i"), 7);
  EXPECT_EQ(j.names().size(), 7u);
}

TEST(Json, TextThatBreaksOffIsAnError) {
  expectError([] { parse(R"({"step": )"); }, {"'F' is no JSON object: after 9 bytes it ends"});
}

TEST(Json, AnEmptyTextIsAnError) {
  expectError([] { parse(""); }, {"'F' is no JSON object: after 0 bytes it ends"});
}

TEST(Json, TextThatIsNoJsonIsAnError) {
  expectError([] { parse("{\"step\": ?}"); },
              {"'F' is no JSON object: after 9 bytes there is an unexpected character"});
}

TEST(Json, ANumberBeyondDoublesIsAnError) {
  expectError([] { parse(R"({"step": 1e999})"); }, {"'F' is no JSON object: a number in it is too large"});
}

std::string nested(int levels, const char *open, const char *core, const char *close) {
  std::string text = core;
  for (int i = 0; i < levels; ++i)
    text = open + text + close;
  return text;
}

// The deepest permitted nesting, by lists and by objects, including the outermost object; one level more is an error.
TEST(Json, NestingIsBounded) {
  for (const auto &[open, close] : {std::pair("[", "]"), std::pair("{\"a\": ", "}")})
    for (const char *core : {"1", "[]", "{}"}) {
      const int within = mostJsonLevels - 1 - (*core == '1' ? 0 : 1);
      EXPECT_NO_THROW(parse("{\"x\": " + nested(within, open, core, close) + "}")) << open << core;
      expectError([&] { parse("{\"x\": " + nested(within + 1, open, core, close) + "}"); },
                  {"expected JSON in 'F' to be nested at most 64 deep, but it is deeper"});
    }
}

// Nesting that would overflow the stack when a value is copied or printed gives that error, too.
TEST(Json, AHundredThousandLevelsAreAnError) {
  for (const auto &[open, close] : {std::pair('[', ']'), std::pair('{', '}')}) {
    std::string text = "{\"x\": ";
    for (int i = 0; i < 100000; ++i)
      text += open == '{' ? "{\"a\":" : "[";
    text += "1" + std::string(100000, close) + "}";
    expectError([&] { parse(text).integer("x"); }, {"to be nested at most 64 deep"});
  }
}

// Which of two values would count is no matter of chance: neither does, at any depth. Names in other objects are
// others.
TEST(Json, AFieldTwiceIsAnError) {
  EXPECT_NO_THROW(parse(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"));
  expectError([] { parse(R"({"a": 1, "b": 2, "a": 1})"); },
              {R"(expected every field once in 'F', but got "a" twice in one object)"});
  expectError([] { parse(R"({"x": [{"b": {"c": 1, "\u0063": 2}}]})"); }, {R"(but got "c" twice)"});
}

TEST(Json, TextBeyondItsBoundIsAnError) {
  const std::string end(mostJsonBytes - 2, ' ');
  EXPECT_NO_THROW(parse("{}" + end));
  expectError([&] { parse("{} " + end); }, {"expected at most 67108864 bytes of JSON in 'F', but got 67108865"});
}

// A file is not read beyond the bound.
TEST(Json, AFileBeyondItsBoundIsAnError) {
  const TemporaryFolder folder;
  writeText(folder / "f", "{\"i\": 3}");
  EXPECT_EQ(readJsonObject(folder / "f").integer("i"), 3);
  std::filesystem::resize_file(folder / "f", uint64_t{1} << 40);
  expectError([&] { readJsonObject(folder / "f"); }, {"expected at most 67108864 bytes in", folder / "f"});
}

TEST(Json, AListIsNoObject) {
  expectError([] { parse("[1, 2]"); }, {"expected a JSON object in 'F', but got [1,2]"});
}

TEST(Json, AMissingFieldIsNamedWithItsPlace) {
  expectError([] { parse(R"({"settings": {}})").object("settings").integer("batch"); },
              {"expected a field 'settings.batch' in 'F', but there is none"});
}

TEST(Json, AnotherKindIsToldWithTheValue) {
  const JsonObject j = parse(R"({"t": "abc", "x": 2.5, "i": -1, "n": 18446744073709551615, "l": [1, -2]})");
  expectError([&] { j.integer("t"); }, {"expected field 't' in 'F' to be an integer, but got \"abc\""});
  expectError([&] { j.integer("x"); }, {"to be an integer, but got 2.5"});
  expectError([&] { j.integer("n"); }, {"to be an integer, but got 18446744073709551615"});
  expectError([&] { j.natural("i"); }, {"to be an integer from 0, but got -1"});
  expectError([&] { j.number("t"); }, {"to be a number, but got \"abc\""});
  expectError([&] { j.text("x"); }, {"to be a text, but got 2.5"});
  expectError([&] { j.naturals("l"); }, {"to be a list of integers from 0, but got [1,-2]"});
  expectError([&] { j.texts("l"); }, {"to be an object of texts, but got [1,-2]"});
  expectError([&] { j.object("t"); }, {"to be an object, but got \"abc\""});
}

// A long value is cut short in the message.
TEST(Json, ALongValueIsCut) {
  const JsonObject j = parse(R"({"t": ")" + std::string(1000, 'a') + "\"}");
  expectError([&] { j.integer("t"); }, {"but got \"" + std::string(39, 'a') + "…"});
}

// A path in a file need not be UTF-8; writing it must not fail.
TEST(Json, TextThatIsNoUnicodeIsWritten) { EXPECT_EQ(textOf({{"path", "a\xff"}}), "{\"path\":\"a\xEF\xBF\xBD\"}"); }

} // namespace
