// Every form of the instructions that the simulator supports: it and ptxas take the same ones, apart from the
// differences that are listed with their reasons.
//
// `isa.grammar` has a row for each family of forms:
//
//     set rnd .rn .rz .rm .rp                          a name for alternatives
//     add [rnd] [.ftz] [.sat] <.f32 .f64> : T, T, T    optional [ ] and required < > modifiers, then operands
//     = 4a.3c                                          which targets' ptxas take each form, in order
//
// Capital letters among operands are registers: A, B, C, D of the first, second, … type among the modifiers, T of the
// last one, W twice as wide. Alternative operands stand after `/`. An answer is a letter of `.abcdefg`: the number of
// its targets, 1 for the first, 2 for the second, 4 for the third; a number before it repeats it.

#include "test/expect_error.h"
#include "test/paths.h"
#include "test/runtime/simulator/machine.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <fmt/format.h>
#include <future>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace kiln::simulator::test {

static constexpr std::array<const char *, 3> targets = {"sm_80", "sm_90a", "sm_100a"};
static constexpr std::string_view letters = ".abcdefg";

namespace {
struct Row {
  std::string text;
  std::vector<std::string> forms;
  std::string answers; // a letter for each form
};
using Words = std::vector<std::string>;
} // namespace

// --- Forms ---------------------------------------------------------------------------------------------------------

static Words wordsOf(const std::string &text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Register classes by width: `h` for 16 bits.
static char classOf(int bits) { return bits == 1 ? 'p' : bits <= 16 ? 'h' : bits == 32 ? 'r' : bits == 64 ? 'd' : 'q'; }

static int computeWidth(const std::string &modifier) {
  static const std::regex type(R"(\.(?:(?:[busf]|bf|tf)(\d+)|ue(8)m0|e\d(m)\d)(?:x(\d))?)");
  std::smatch found;
  if (modifier == ".pred")
    return 1;
  if (!std::regex_match(modifier, found, type))
    return 0;
  const int element = found[3].matched      ? 8
                      : modifier == ".tf32" ? 32
                                            : std::stoi(found[1].matched ? found[1] : found[2]);
  const bool halves = modifier.starts_with(".e2m1"); // 4 bits each
  return element * (found[4].matched ? std::stoi(found[4]) : 1) / (halves ? 2 : 1);
}

/// Bits of a type modifier such as `.f16x2`; 0 for other modifiers.
static int widthOf(const std::string &modifier) {
  static std::map<std::string, int> widths;
  const auto [at, isNew] = widths.try_emplace(modifier, 0);
  if (isNew)
    at->second = computeWidth(modifier);
  return at->second;
}

/// `add.f32` and `T, T, T` to `add.f32 %r1, %r2, %r3;`.
static std::string formOf(const std::string &guard, const std::string &spelling, const std::vector<int> &widths,
                          const std::string &operands) {
  std::string text = guard + spelling + (operands.empty() ? "" : " ");
  int number = 0;
  const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t i = 0; i < operands.size(); ++i) {
    const char c = operands[i];
    const bool alone = (i == 0 || (!isWord(operands[i - 1]) && operands[i - 1] != '%')) &&
                       (i + 1 == operands.size() || !isWord(operands[i + 1]));
    const size_t position = std::string_view("ABCD").find(c);
    if (!alone || (c != 'T' && c != 'W' && position == std::string::npos)) {
      text += c;
      continue;
    }
    const int width = widths.empty() ? 32
                      : c == 'T'     ? widths.back()
                      : c == 'W'     ? 2 * widths.back()
                                     : widths[std::min(position, widths.size() - 1)];
    text += fmt::format("%{}{}", classOf(width), ++number);
  }
  return text + ";";
}

static Words split(const std::string &text, char at) {
  Words parts(1);
  for (const char c : text)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  for (std::string &part : parts) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
  }
  return parts;
}

/// All combinations of the positions, the last one fastest, each with all alternatives of the operands.
static Words expand(const std::string &text, const std::map<std::string, Words> &sets) {
  const size_t colon = text.find(" :");
  std::vector<Words> positions;
  const Words words = wordsOf(text.substr(0, colon));
  bool inside = false;
  for (std::string word : words) {
    const bool opens = word[0] == '[' || word[0] == '<';
    if (!inside)
      positions.emplace_back();
    if (word[0] == '[')
      positions.back().emplace_back();
    word.erase(0, opens);
    inside = opens || inside;
    if (word.back() == ']' || word.back() == '>') {
      word.pop_back();
      inside = false;
    }
    const auto set = sets.find(word);
    for (const std::string &each : set == sets.end() ? Words{word} : set->second)
      positions.back().push_back(each);
  }
  const Words operands = split(colon == std::string::npos ? "" : text.substr(colon + 2), '/');
  Words forms;
  std::vector<size_t> at(positions.size());
  while (true) {
    std::string spelling, guard;
    std::vector<int> widths;
    for (size_t i = 0; i < positions.size(); ++i) {
      const std::string &modifier = positions[i][at[i]];
      modifier[0] == '@' ? guard = modifier + " " : spelling += modifier;
      for (const std::string &part : split(modifier, '.'))
        if (const int width = i ? widthOf("." + part) : 0)
          widths.push_back(width);
    }
    for (const std::string &each : operands)
      forms.push_back(formOf(guard, spelling, widths, each));
    size_t last = positions.size();
    while (last > 0 && ++at[last - 1] == positions[last - 1].size())
      at[--last] = 0;
    if (last == 0)
      return forms;
  }
}

/// `3.2a` to `...aa`.
static std::string unpacked(const std::string &text) {
  std::string letters;
  size_t count = 0;
  for (const char c : text)
    if (c >= '0' && c <= '9') {
      count = 10 * count + static_cast<size_t>(c - '0');
    } else {
      letters.append(std::max<size_t>(count, 1), c);
      count = 0;
    }
  return letters;
}

static std::string packed(const std::string &letters) {
  std::string text;
  for (size_t i = 0, end = 0; i < letters.size(); i = end) {
    end = std::min(letters.find_first_not_of(letters[i], i), letters.size());
    text += end - i > 1 ? std::to_string(end - i) : "";
    text += letters[i];
  }
  return text;
}

static const char *const grammarPath = "test/runtime/simulator/isa.grammar";

static std::vector<Row> readGrammar() {
  std::istringstream lines(readText(kiln::test::sourcePath(grammarPath)));
  std::map<std::string, Words> sets;
  std::vector<Row> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("set ")) {
      const Words words = wordsOf(line);
      for (size_t i = 2; i < words.size(); ++i)
        if (const auto set = sets.find(words[i]); set != sets.end())
          sets[words[1]].insert(sets[words[1]].end(), set->second.begin(), set->second.end());
        else
          sets[words[1]].push_back(words[i]);
    } else if (line.starts_with("= ")) {
      rows.back().answers += unpacked(line.substr(2));
    } else if (!line.empty() && line[0] != '#') {
      rows.push_back({line, expand(line, sets), ""});
    }
  }
  return rows;
}

// --- The two readers -----------------------------------------------------------------------------------------------

static const char *const moduleText =
    ".version 9.0\n.target {}\n.address_size 64\n.global .align 128 .b8 gv[256]; .const .align 16 .b8 cv[64];\n"
    ".shared .align 128 .b8 sv[1024];\n.func callee() {{ ret; }}\n";
static const char *const variables = ".local .align 16 .b8 lv[64];";

/// The registers that a form names, declared.
static std::string registersOf(const std::string &form) {
  std::map<char, int> counts;
  for (size_t at = form.find('%'); at != std::string::npos; at = form.find('%', at + 1))
    if (std::isdigit(static_cast<unsigned char>(form[at + 2])))
      counts[form[at + 1]] = std::max(counts[form[at + 1]], std::atoi(form.c_str() + at + 2) + 1);
  static const std::map<char, const char *> types = {
      {'p', "pred"}, {'c', "b8"},  {'h', "b16"}, {'r', "b32"}, {'d', "b64"},   {'q', "b128"}, {'u', "u32"},
      {'s', "s32"},  {'f', "f32"}, {'e', "f64"}, {'x', "f16"}, {'y', "f16x2"}, {'w', "u16"},  {'l', "u64"}};
  std::string text;
  for (const auto &[name, count] : counts)
    text += fmt::format(".reg .{} %{}<{}>; ", types.at(name), name, count);
  return text;
}

static std::string functionOf(size_t number, const std::string &form) {
  return fmt::format(".visible .entry k{}(.param .align 16 .b8 p[256]) {{ {}{}\n{}\nL: ret; }}\n", number,
                     registersOf(form), form.find("lv") == std::string::npos ? "" : variables, form);
}

/// The simulator's error for each form; empty for the forms that it takes.
static Words refusalsOfSimulator(const Words &forms, const char *target) {
  static constexpr size_t most = 32; // functions of a module
  Words refusals;
  for (size_t begin = 0; begin < forms.size(); begin += most) {
    std::string text = fmt::format(fmt::runtime(moduleText), target);
    const size_t end = std::min(forms.size(), begin + most);
    for (size_t i = begin; i < end; ++i)
      text += functionOf(i - begin, forms[i]);
    const auto module = std::make_shared<ptx::Module>(ptx::parse(text));
    Memory memory;
    for (size_t i = begin; i < end; ++i) {
      refusals.emplace_back();
      try {
        buildProgram(module, fmt::format("k{}", i - begin), memory);
      } catch (const Error &error) {
        refusals.back() = error.what();
      }
    }
  }
  return refusals;
}

/// Those of ptxas, which goes on after an error, apart from a fatal one. A last wrong line keeps it from translating.
static Words refusalsOfPtxas(const Words &forms, const std::string &target) {
  static constexpr size_t most = 4000; // forms of a run
  const TemporaryFolder folder;
  const std::string file = folder / "forms.ptx";
  Words refusals(forms.size());
  std::string all;
  for (const std::string &form : forms)
    all += form;
  const std::string head = fmt::format(fmt::runtime(moduleText), target) +
                           ".visible .entry k(.param .align 16 .b8 p[256]) { " + variables + registersOf(all) + "\n";
  const auto firstLine = static_cast<size_t>(std::count(head.begin(), head.end(), '\n')) + 1;
  for (size_t begin = 0, end = 0; begin < forms.size(); begin = end) {
    end = std::min(forms.size(), begin + most);
    std::string text = head;
    for (size_t i = begin; i < end; ++i)
      text += forms[i] + "\n";
    writeText(file, text + "L: bogus;\n}\n");
    runPtxas(fmt::format("-arch {1} -o {0}.cubin {0} >{0}.log 2>&1", file, target));
    std::istringstream log(readText(file + ".log"));
    for (std::string line; std::getline(log, line);) {
      const std::string place = "ptxas " + file + ", line "; // others are in code that ptxas adds
      const size_t kind = line.find("; ");
      if (!line.starts_with(place) || kind == std::string::npos || line.compare(kind + 2, 4, "warn") == 0)
        continue;
      const size_t form = begin + static_cast<size_t>(std::atol(line.c_str() + place.size())) - firstLine;
      if (form >= end)
        continue;
      refusals[form] = line.substr(kind + 2);
      if (refusals[form].starts_with("fatal"))
        end = form + 1;
    }
  }
  return refusals;
}

// --- Tests ---------------------------------------------------------------------------------------------------------

// ptxas gives the answers of the file; a failure prints the right ones for a row.
TEST(GrammarTest, AnswersAreThoseOfPtxas) {
  if (!hasPtxas() || runPtxas("--version | grep -q 'release 13.0'") != 0)
    GTEST_SKIP() << "there is no ptxas 13.0, so nobody has compared its answers with those of the file";
  const std::vector<Row> rows = readGrammar();
  Words forms;
  for (const Row &row : rows)
    forms.insert(forms.end(), row.forms.begin(), row.forms.end());
  std::vector<int> answers(forms.size());
  std::array<std::future<Words>, targets.size()> runs;
  for (size_t i = 0; i < targets.size(); ++i)
    runs[i] = std::async(std::launch::async, refusalsOfPtxas, forms, targets[i]);
  for (size_t i = 0; i < targets.size(); ++i) {
    const Words refusals = runs[i].get();
    for (size_t form = 0; form < forms.size(); ++form)
      answers[form] |= refusals[form].empty() << i;
  }
  auto next = answers.begin();
  for (const Row &row : rows) {
    std::string got;
    for (size_t i = 0; i < row.forms.size(); ++i)
      got += letters[static_cast<size_t>(*next++)];
    EXPECT_EQ(packed(row.answers), packed(got)) << row.text;
  }
}

namespace {
/// `refused 12 cvt.*bf16 : reason`: the simulator refuses 12 forms of this pattern that ptxas takes.
struct Difference {
  std::string text;
  bool refused;
  int count, got = 0;
  std::regex pattern;
};
} // namespace

static std::vector<Difference> readDifferences() {
  std::istringstream lines(readText(kiln::test::sourcePath("test/runtime/simulator/isa.differences")));
  std::vector<Difference> differences;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && line[0] != '#') {
      const size_t count = line.find(' ') + 1, pattern = line.find(' ', count) + 1, reason = line.find(" : ");
      differences.push_back({line, line.starts_with("refused"), std::stoi(line.substr(count)), 0,
                             std::regex(line.substr(pattern, reason - pattern))});
    }
  return differences;
}

// A form and its target are refused by both or by neither, or by a listed difference, of which there are as many as its
// line states.
TEST(GrammarTest, TheSimulatorTakesWhatPtxasTakes) {
  std::vector<Difference> differences = readDifferences();
  const std::vector<Row> rows = readGrammar();
  std::string unexplained;
  for (size_t target = 0; target < targets.size(); ++target)
    for (const Row &row : rows) {
      ASSERT_EQ(row.answers.size(), row.forms.size()) << row.text;
      const Words refusals = refusalsOfSimulator(row.forms, targets[target]);
      for (size_t i = 0; i < row.forms.size(); ++i) {
        const bool taken = letters.find(row.answers[i]) >> target & 1;
        if (taken == refusals[i].empty())
          continue;
        const std::string form = fmt::format("{} {}", targets[target], row.forms[i]);
        const auto explained = std::ranges::find_if(differences, [&](const Difference &each) {
          return each.refused == taken && std::regex_search(form, each.pattern);
        });
        if (explained != differences.end())
          ++explained->got;
        else
          unexplained += fmt::format("{} {}\t{}\n", taken ? "refused" : "taken", form, refusals[i]);
      }
    }
  EXPECT_EQ(unexplained.substr(0, 4000), "");
  for (const Difference &each : differences)
    EXPECT_EQ(each.got, each.count) << each.text;
}

} // namespace kiln::simulator::test
