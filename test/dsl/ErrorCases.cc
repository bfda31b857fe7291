// Runs an error case: reads the case's lines of its C++ file and holds the diagnostics of a trace against their
// comments.

#include "test/dsl/ErrorCases.h"

#include "mlir/IR/Diagnostics.h"
#include "test/paths.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>

namespace kiln::testing {

/// The line of each file's last registered case: the lines after its end belong to the next one.
static std::map<std::string, int> &lastLines() {
  static std::map<std::string, int> lines;
  return lines;
}

/// The file with all lines except those of the case at line `own` emptied, so that line numbers stay. They begin after
/// the end of the case at line `before` (0: none). A case ends with its line, or with the kernel that begins there.
static std::string linesOf(const std::string &file, int before, int own) {
  std::ifstream in(kiln::test::sourcePath(file)); // __FILE__ is named from there
  std::vector<std::string> lines(1);              // from 1
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  const auto endOf = [&](int number) {
    if (lines.at(number).ends_with('{'))
      while (lines.at(number) != "}")
        ++number;
    return number;
  };
  std::string text;
  for (int number = 1; number < static_cast<int>(lines.size()); ++number)
    text += (number > endOf(before) && number <= endOf(own) ? lines[number] : "") + "\n";
  return text;
}

class ErrorTest : public ::testing::Test {
public:
  ErrorTest(Kernel kernel, std::vector<ArgFacts> args, int after)
      : kernel(std::move(kernel)), args(std::move(args)), after(after) {}

  void TestBody() override {
    std::string text = linesOf(kernel.loc.file, after, kernel.loc.line), report;
    ASSERT_NE(text.find("expected-error"), std::string::npos) << "the case expects no error: " << kernel.loc.file;
    auto context = makeContext();
    llvm::SourceMgr sources;
    sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, kernel.loc.file), llvm::SMLoc());
    llvm::raw_string_ostream out(report);
    mlir::SourceMgrDiagnosticVerifierHandler handler(sources, context.get(), out);
    Traced traced = trace(*context, kernel, {args, {}}, "");
    EXPECT_FALSE(traced.module) << "an erroneous kernel gave a module";
    EXPECT_TRUE(succeeded(handler.verify())) << report;
  }

private:
  Kernel kernel;
  std::vector<ArgFacts> args;
  int after;
};

ErrorCase::ErrorCase(const char *suite, const char *name, Kernel kernel, std::vector<ArgFacts> args) {
  int after = std::exchange(lastLines()[kernel.loc.file], kernel.loc.line);
  const Loc loc = kernel.loc;
  ::testing::RegisterTest(suite, name, nullptr, nullptr, loc.file, loc.line,
                          [=]() -> ErrorTest * { return new ErrorTest(kernel, args, after); });
}

} // namespace kiln::testing
