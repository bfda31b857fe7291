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

// --- Modifiers -----------------------------------------------------------------------------------------------------

/// Forms of instructions that isa.grammar lacks: those of control flow, and some whose modifiers do not vary.
static const Words others = {
    "set.eq.u32.u32 %r1, %r2, %r3;",
    "alloca.u64 %d1, %d2;",
    "stacksave.u64 %d1;",
    "stackrestore.u64 %d1;",
    "getctarank.u64 %r1, %d1;",
    "mapa.u64 %d1, %d2, %r1;",
    "griddepcontrol.wait;",
    "nanosleep.u32 %r1;",
    "pmevent 1;",
    "setmaxnreg.inc.sync.aligned.u32 64;",
    "brkpt;",
    "bra.uni L;",
    "call.uni callee;",
    "@%p1 exit;",
    "@%p1 ret;",
    "@%p1 trap;",
    "LIST: .branchtargets L; brx.idx %r1, LIST;",
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;"};

/// These, and a form of each row and operation that sm_90a takes.
static Words takenForms() {
  Words taken = others;
  std::set<std::string> known;
  for (const Row &row : readGrammar())
    for (size_t i = 0; i < row.forms.size(); ++i)
      if (letters.find(row.answers[i]) & 2 && known.insert(row.forms[i].substr(0, row.forms[i].find(' '))).second)
        taken.push_back(row.forms[i]);
  return taken;
}

/// The opcode and the modifiers of a form.
static std::string spellingOf(const std::string &form) {
  const size_t label = form.rfind("; "), begin = label != std::string::npos ? label + 2
                                                 : form[0] == '@'           ? form.find(' ') + 1
                                                                            : 0;
  return form.substr(begin, form.find_first_of(" ;", begin) - begin);
}

TEST(GrammarTest, OthersAreTaken) {
  const Words refusals = refusalsOfSimulator(others, "sm_90a");
  for (size_t i = 0; i < others.size(); ++i)
    EXPECT_EQ(refusals[i], "") << others[i];
}

// An unknown modifier is an error that quotes the instruction, at any position among the modifiers.
TEST(GrammarTest, UnknownModifiersAreRefused) {
  Words forms;
  std::set<std::string> opcodes;
  for (const std::string &form : takenForms()) {
    const std::string spelling = spellingOf(form);
    const size_t begin = form.find(spelling), end = begin + spelling.size();
    if (!opcodes.insert(spelling.substr(0, spelling.find('.', spelling.find('.') + 1))).second)
      continue;
    for (size_t at = form.find_first_of(". ;", begin); at <= end; at = form.find_first_of(". ;", at + 1))
      forms.push_back(std::string(form).insert(at, ".magic"));
  }
  const Words refusals = refusalsOfSimulator(forms, "sm_90a");
  for (size_t i = 0; i < forms.size(); ++i)
    EXPECT_NE(refusals[i].find("'" + spellingOf(forms[i]) + "'"), std::string::npos) << forms[i] << "\n" << refusals[i];
}

// The ISA states the first GPU and version that have an instruction.
TEST(TargetTest, OldTextsAreRefused) {
  const auto refusal = [](const std::string &head, const std::string &line) -> std::string {
    try {
      Memory memory;
      buildProgram(std::make_shared<ptx::Module>(ptx::parse(
                       head + "\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n" + line +
                       "\nret;\n}\n")),
                   "k", memory);
    } catch (const Error &error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(".version 8.0\n.target sm_80", "red.global.add.v2.f32 [%d0], {%r0, %r1};"),
            "PTX line 6: expected '.target sm_90' or above, but got 'sm_80', in 'red.global.add.v2.f32'");
  EXPECT_EQ(refusal(".version 8.0\n.target sm_90", "red.global.add.v2.f32 [%d0], {%r0, %r1};"),
            "PTX line 6: expected '.version 8.1' or above, but got '8.0', in 'red.global.add.v2.f32'");
  EXPECT_EQ(refusal(".version 8.6\n.target sm_90a", "add.rn.f32x2 %d0, %d1, %d2;"),
            "PTX line 6: expected '.target sm_100' or above, but got 'sm_90a', in 'add.rn.f32x2'");
  EXPECT_EQ(refusal(".version 8.6\n.target sm_100a", "add.rn.f32x2 %d0, %d1, %d2;"), "");
  EXPECT_EQ(refusal(".version 8.6\n.target sm_90a", "redux.sync.max.f32 %r0, %r1, -1;"),
            "PTX line 6: expected '.target sm_100' or above, but got 'sm_90a', in 'redux.sync.max.f32'");
}

/// The instructions of the PTX ISA 9.0, by the headings of its chapter "Instructions" (`match.sync` is `match.any.sync`
/// and `match.all.sync`).
static const std::string isaNames =
    "abs activemask add addc alloca and applypriority atom bar bar.warp.sync barrier barrier.cluster bfe bfi bfind "
    "bmsk bra brev brkpt brx.idx call clusterlaunchcontrol.query_cancel clusterlaunchcontrol.try_cancel clz cnot "
    "copysign cos cp.async cp.async.bulk cp.async.bulk.commit_group cp.async.bulk.prefetch "
    "cp.async.bulk.prefetch.tensor cp.async.bulk.tensor cp.async.bulk.wait_group cp.async.commit_group "
    "cp.async.mbarrier.arrive cp.async.wait_all cp.async.wait_group cp.reduce.async.bulk "
    "cp.reduce.async.bulk.tensor createpolicy cvt cvt.pack cvta discard div dp2a dp4a elect.sync ex2 exit fence fma "
    "fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match.sync max "
    "mbarrier.arrive mbarrier.arrive_drop mbarrier.complete_tx mbarrier.expect_tx mbarrier.init mbarrier.inval "
    "mbarrier.pending_count mbarrier.test_wait mbarrier.try_wait membar min mma mma.sp mov movmatrix mul mul24 "
    "multimem.cp.async.bulk multimem.cp.reduce.async.bulk multimem.ld_reduce multimem.red multimem.st nanosleep neg "
    "not or pmevent popc prefetch prefetchu prmt rcp red red.async redux.sync rem ret rsqrt sad selp set setmaxnreg "
    "setp shf shfl.sync shl shr sin slct sqrt st st.async st.bulk stackrestore stacksave stmatrix sub subc suld suq "
    "sured sust szext tanh tcgen05.alloc tcgen05.commit tcgen05.cp tcgen05.dealloc tcgen05.fence tcgen05.ld "
    "tcgen05.ld.red tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws tcgen05.mma.ws.sp tcgen05.relinquish_alloc_permit "
    "tcgen05.shift tcgen05.st tcgen05.wait tensormap.cp_fenceproxy tensormap.replace testp tex tld4 trap txq "
    "vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote.sync "
    "vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma.commit_group wgmma.fence wgmma.mma_async wgmma.mma_async.sp "
    "wgmma.wait_group wmma.load wmma.mma wmma.store xor ";

// --- What is left out ----------------------------------------------------------------------------------------------

/// The names in the README's table of unsupported instructions.
static std::set<std::string> namesInReadme() {
  const std::string text = readText(kiln::test::sourcePath("runtime/simulator/README.md"));
  const size_t begin = text.find("**Not supported.**"), end = text.find("\n\n", text.find('|', begin));
  std::set<std::string> names;
  for (size_t open = text.find('`', begin); open < end; open = text.find('`', open)) {
    const size_t close = text.find('`', open + 1);
    names.insert(text.substr(open + 1, close - open - 1));
    open = close + 1;
  }
  return names;
}

// Each is refused with its name and line, for all operands.
TEST(LeftOutTest, IsRefusedByName) {
  Words forms = {"conjure.u32 %r1, %r2;", "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1}];",
                 "multimem.red.global.add.u32 [%d1], %r1;"};
  for (const std::string &name : namesInReadme())
    for (const std::string rest : {".sync.aligned.b32 %r1, %r2;", " %r1;"})
      forms.push_back(name + rest);
  const Words refusals = refusalsOfSimulator(forms, "sm_90a");
  for (size_t i = 0; i < forms.size(); ++i)
    EXPECT_NE(refusals[i].find(fmt::format(": expected an instruction that the simulator supports, but got '{}'",
                                           forms[i].substr(0, forms[i].find(' ')))),
              std::string::npos)
        << forms[i] << "\n"
        << refusals[i];
}

// Every instruction of the ISA is either left out or among the forms that are taken.
TEST(LeftOutTest, OrItIsKnown) {
  const std::set<std::string> names = namesInReadme();
  const Words taken = takenForms();
  for (const std::string &name : wordsOf(isaNames)) {
    const std::string opcode = name.substr(0, name.find('.')), modifiers = name.substr(opcode.size());
    const bool isKnown = std::ranges::any_of(taken, [&](const std::string &form) {
      const std::string spelling = spellingOf(form);
      const size_t end = std::min(spelling.find('.'), spelling.size());
      return spelling.substr(0, end) == opcode && spelling.find(modifiers, end) != std::string::npos;
    });
    EXPECT_NE(isKnown, names.contains(name)) << name;
  }
}

// No opcode is known that the ISA does not have.
TEST(LeftOutTest, KnownOpcodesAreTheIsas) {
  std::set<std::string> opcodes;
  for (const std::string &name : wordsOf(isaNames))
    opcodes.insert(name.substr(0, name.find('.')));
  for (const std::string_view opcode : knownOpcodes()) {
    EXPECT_TRUE(opcodes.contains(std::string(opcode))) << opcode;
    EXPECT_FALSE(namesInReadme().contains(std::string(opcode))) << opcode;
  }
}

} // namespace kiln::simulator::test
