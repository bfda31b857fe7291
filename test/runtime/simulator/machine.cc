// PTX around an instruction: operands are read from columns of 8-byte words, and the result is written to another.

#include "test/runtime/simulator/machine.h"

#include "test/paths.h"
#include "test/temporary_folder.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace kiln::simulator::test {

const Column floats32 = [] {
  Column words;
  for (const float value : {0.0f, -0.0f, 1.0f, -1.0f, 1.5f, 3.0f, 0.1f, 1e-40f, -1e-45f, 0x1p-126f, 3.4028235e38f,
                            16777217.0f, 1e10f, -7.25f, std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    words.push_back(std::bit_cast<uint32_t>(value));
  return words;
}();
const Column floats64 = [] {
  Column words;
  for (const double value : {0.0, -0.0, 1.0, -1.0, 1.5, 3.0, 0.1, 1e-310, 0x1p-1022, 1.7976931348623157e308, 1e10,
                             -7.25, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()})
    words.push_back(std::bit_cast<uint64_t>(value));
  return words;
}();

bool sameFloat(uint64_t got, uint64_t want) {
  const auto a = std::bit_cast<float>(static_cast<uint32_t>(got)),
             b = std::bit_cast<float>(static_cast<uint32_t>(want));
  return got == want || (std::isnan(a) && std::isnan(b));
}
bool sameDouble(uint64_t got, uint64_t want) {
  return got == want || (std::isnan(std::bit_cast<double>(got)) && std::isnan(std::bit_cast<double>(want)));
}

void Machine::run(const std::string &kernel, const Extents &grid, const Extents &block,
                  const std::vector<uint64_t> &arguments, uint32_t dynamicShared, Schedule schedule) {
  const std::shared_ptr<const Program> program = buildProgram(module, kernel, memory);
  ASSERT_EQ(program->parameters.size(), arguments.size());
  std::vector<char> block0(program->parameterBytes);
  for (size_t i = 0; i < arguments.size(); ++i)
    std::memcpy(block0.data() + program->parameters[i].offset, &arguments[i],
                std::min<size_t>(8, program->parameters[i].bytes));
  runBlock(kernel, grid, block, block0, dynamicShared, schedule);
}

void Machine::runBlock(const std::string &kernel, const Extents &grid, const Extents &block,
                       const std::vector<char> &parameters, uint32_t dynamicShared, Schedule schedule) {
  const std::shared_ptr<const Program> program = buildProgram(module, kernel, memory);
  ASSERT_EQ(program->parameterBytes, parameters.size());
  if (!schedule.maxSteps)
    schedule.maxSteps = 50'000'000; // a test ends
  if (observer)
    for (Launched::Buffer &buffer : buffers)
      std::copy_n(buffer.place, buffer.before.size(), buffer.before.begin());
  Console console([this](std::string_view text) { printed += text; });
  launch(*program, grid, block, dynamicShared, parameters.data(), memory, findings, schedule, nullptr, &console);
  if (observer && findings.empty() && !schedule.errorTimes) // no GPU errs because it is asked to
    observer({text, kernel, grid, block, parameters, dynamicShared, buffers, memory, varies});
}

std::vector<std::string> Machine::found() const {
  std::vector<std::string> texts;
  for (const Finding &finding : findings.list())
    texts.push_back(
        fmt::format("{}: {}", nameOf(finding.check), finding.text.substr(0, finding.text.rfind(" (block"))));
  return texts;
}

std::string module(const std::string &body) { return ".version 8.0\n.target sm_80\n.address_size 64\n" + body; }

std::string kernel(int pointers, const std::string &registers, const std::string &body) {
  std::string text = ".visible .entry k(", loads;
  for (int i = 0; i < pointers; ++i) {
    text += fmt::format("{}.param .u64 k{}", i ? ", " : "", i);
    loads += fmt::format("ld.param.u64 %p{0}, [k{0}];\n", i);
  }
  return module(
      text +
      fmt::format(") {{\n.reg .b64 %p<{}>;\n.reg .b64 %o;\n.reg .b32 %t;\n.reg .b32 %n<3>;\n{}\n{}"
                  "mov.u32 %n0, %ctaid.x;\nmov.u32 %n1, %ntid.x;\nmov.u32 %n2, %tid.x;\nmad.lo.u32 %t, %n0, %n1, %n2;\n"
                  "mul.wide.u32 %o, %t, 8;\n{}\nret;\n}}\n",
                  std::max(pointers, 1), registers, loads, body));
}

/// The shell's words that run ptxas: of the toolkit at CUDA_PATH, on the path, or where the toolkit usually is.
static constexpr const char *ptxas = R"(PATH="${CUDA_PATH:+$CUDA_PATH/bin:}$PATH:/usr/local/cuda/bin" ptxas)";

/// Whether there is a ptxas now; an empty CUDA_PATH means that there is no toolkit.
static bool findsPtxas() {
  const char *const toolkit = std::getenv("CUDA_PATH");
  return !(toolkit && !*toolkit) && std::system(fmt::format("{} --version >/dev/null 2>&1", ptxas).c_str()) == 0;
}

bool hasPtxas() {
  static const bool is = findsPtxas();
  return is;
}

int runPtxas(const std::string &arguments) { return std::system(fmt::format("{} {}", ptxas, arguments).c_str()); }

/// Complains when ptxas refuses a text.
static void expectAccepted(const std::string &text) {
  const TemporaryFolder folder;
  const std::string file = folder / "text.ptx";
  writeText(file, text);
  const int status = runPtxas(fmt::format("-arch sm_90a -o {0}.cubin {0} >{0}.log 2>&1", file));
  EXPECT_EQ(status, 0) << readText(file + ".log") << text;
}

std::string compiled(const std::string &name) {
  return readText(kiln::test::sourcePath("test/runtime/simulator/compiled/") + name + ".ptx");
}

std::string forFirstTarget(const std::string &text) {
  const std::string rest = text.substr(module("").size());
  for (const char *target : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_100a"})
    try {
      std::string whole = fmt::format(".version 8.8\n.target {}\n.address_size 64\n{}", target, rest);
      Memory memory;
      buildProgram(std::make_shared<ptx::Module>(ptx::parse(whole)), "k", memory);
      return whole;
    } catch (const Error &) { // of this target, or of every one
    }
  return text;
}

std::string hopperKernel(int pointers, const std::string &registers, const std::string &body) {
  const std::string old = module(""), plain = kernel(pointers, registers, body);
  const std::string text = ".version 8.6\n.target sm_90a\n.address_size 64\n" + plain.substr(old.size());
  if (hasPtxas())
    expectAccepted(text);
  return text;
}

TEST(AcceptanceTest, PtxasReadsTheTexts) {
  if (!hasPtxas())
    GTEST_SKIP() << "there is no ptxas, so nobody has looked at the PTX of these tests";
}

// As everywhere in the project, an empty CUDA_PATH means a machine without a toolkit.
TEST(AcceptanceTest, AnEmptyPathIsNoToolkit) {
  const char *const before = std::getenv("CUDA_PATH");
  const std::string toolkit = before ? before : "";
  setenv("CUDA_PATH", "", 1);
  EXPECT_FALSE(findsPtxas());
  before ? setenv("CUDA_PATH", toolkit.c_str(), 1) : unsetenv("CUDA_PATH");
}

Column evaluate(const std::string &instruction, const std::string &resultType, const std::vector<std::string> &types,
                const std::vector<Column> &operands, const std::string &varies) {
  std::string registers = fmt::format(".reg .{} %d;\n.reg .b64 %w, %at;\n", resultType), body;
  for (size_t i = 0; i < types.size(); ++i) {
    const char name = static_cast<char>('a' + i + (i > 2)); // a, b, c, e
    registers += fmt::format(".reg .{} %{};\n", types[i], name);
    body += fmt::format("add.u64 %at, %p{}, %o;\nld.global.u64 %w, [%at];\n", i);
    if (types[i] == "pred")
      body += fmt::format("setp.ne.u64 %{}, %w, 0;\n", name);
    else if (types[i] == "b64")
      body += fmt::format("mov.b64 %{}, %w;\n", name);
    else
      body += fmt::format("cvt.u{}.u64 %{}, %w;\n", types[i].substr(1), name);
  }
  body += instruction + "\n";
  if (resultType == "pred")
    body += "selp.u64 %w, 1, 0, %d;\n";
  else if (resultType == "b64")
    body += "mov.b64 %w, %d;\n";
  else
    body += fmt::format("cvt.u64.u{} %w, %d;\n", resultType.substr(1));
  body += fmt::format("add.u64 %at, %p{}, %o;\nst.global.u64 [%at], %w;\n", types.size());
  Machine machine(forFirstTarget(kernel(static_cast<int>(types.size()) + 1, registers, body)));
  machine.varies = varies;
  const size_t rows = operands.at(0).size(), padded = (rows + 31) / 32 * 32;
  std::vector<uint64_t> arguments;
  for (Column column : operands) {
    column.resize(padded);
    arguments.push_back(reinterpret_cast<uint64_t>(machine.buffer(column)));
  }
  uint64_t *results = machine.buffer(Column(padded));
  arguments.push_back(reinterpret_cast<uint64_t>(results));
  machine.run("k", {static_cast<int>(padded / 32), 1, 1}, {32, 1, 1}, arguments);
  EXPECT_EQ(machine.found(), std::vector<std::string>{}) << instruction;
  return Column(results, results + rows);
}

std::vector<Column> combinations(const Column &values, size_t columns) {
  std::vector<Column> result(columns);
  size_t count = 1;
  for (size_t i = 0; i < columns; ++i)
    count *= values.size();
  for (size_t row = 0; row < count; ++row)
    for (size_t column = 0, rest = row; column < columns; ++column, rest /= values.size())
      result[column].push_back(values[rest % values.size()]);
  return result;
}

void expectEach(const std::string &instruction, const std::string &resultType, const std::vector<std::string> &types,
                const Column &values, const std::function<uint64_t(const Column &row)> &want,
                const std::function<bool(uint64_t got, uint64_t want)> &same) {
  const std::vector<Column> operands = combinations(values, types.size());
  const Column got = evaluate(instruction, resultType, types, operands);
  int wrong = 0;
  for (size_t row = 0; row < got.size() && wrong < 3; ++row) {
    Column operand;
    std::string text;
    for (const Column &column : operands) {
      operand.push_back(column[row]);
      text += fmt::format(" {:#x}", column[row]);
    }
    const uint64_t expected = want(operand);
    if (same ? same(got[row], expected) : got[row] == expected)
      continue;
    ++wrong;
    ADD_FAILURE() << fmt::format("{} on{}: got {:#x}, want {:#x}", instruction, text, got[row], expected);
  }
}

} // namespace kiln::simulator::test
