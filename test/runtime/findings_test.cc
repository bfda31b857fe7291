// Files of findings: written ones are read back, errors for damaged lines name the line, and arguments select their
// config.

#include "runtime/Device.h"
#include "runtime/Findings.h"
#include "test/expect_error.h"
#include "test/runtime/kernels.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>

using namespace kiln;
using kiln::test::addKernel;

namespace {

const std::string line = "add | cpu znver5 cores=2 | f32[64], f32[64] | block=32 | 12.5 us, default 20 us | 2026-11-22";

Arg dense(Shape extents, Type type = f32) {
  static float memory[1];
  return TensorRef::dense(memory, type, std::move(extents));
}

std::string found(const FindingsFile &findings, const std::vector<Arg> &args) {
  return findings.find("cpu znver5 cores=2", addKernel, args).value_or("none");
}

// Comments, blank lines and other findings are unchanged.
TEST(Findings, KeepTheirText) {
  const std::string text = "# of a desktop\n\n" + line + "\n";
  EXPECT_EQ(FindingsFile::parse(text, "f").text(), text);
  EXPECT_EQ(FindingsFile().text(), "");
}

// A finding replaces the one for its kernel, device and arguments; other findings are appended.
TEST(Findings, ReplaceAndAppend) {
  FindingsFile findings = FindingsFile::parse(line + "\n# end\n", "f");
  Finding finding{"add", "cpu znver5 cores=2", "f32[64], f32[64]", "block=8", 4, 20, "us", "2026-12-01"};
  findings.add(finding);
  EXPECT_EQ(findings.text(), finding.text() + "\n# end\n");
  finding.arguments = "f32[65], f32[65]";
  findings.add(finding);
  EXPECT_EQ(findings.text().substr(findings.text().find("# end") + 6), finding.text() + "\n");
  EXPECT_EQ(found(findings, {dense({65}), dense({65})}), "block=8");
}

// Types, extents, ranks and strides must be those of the line, and the device its device.
TEST(Findings, AreForTheirArguments) {
  const FindingsFile findings = FindingsFile::parse(line + "\n", "f");
  EXPECT_EQ(found(findings, {dense({64}), dense({64})}), "block=32");
  EXPECT_EQ(found(findings, {dense({64}), dense({63})}), "none");
  EXPECT_EQ(found(findings, {dense({64}), dense({64}, bf16)}), "none");
  EXPECT_EQ(found(findings, {dense({64, 1}), dense({64})}), "none");
  EXPECT_EQ(found(findings, {dense({64})}), "none");
  TensorRef strided = dense({128}).ref;
  strided.extents = {64};
  strided.strides = {2};
  EXPECT_EQ(found(findings, {dense({64}), strided}), "none");
  EXPECT_EQ(argumentsKey(addKernel, {strided, 2.0f}), "f32[64] by 2, f32");
  EXPECT_FALSE(findings.find("cpu znver5 cores=4", addKernel, {dense({64}), dense({64})}));
}

// A bucket covers the extents above the previous power of two, and only multiples of 16 if it says so. More exact
// extents have priority.
TEST(Findings, HaveBuckets) {
  const std::string all = line.substr(0, line.find("f32")), rest = " | 12 us, default 20 us | 2026-11-22\n";
  const FindingsFile findings =
      FindingsFile::parse(all + "f32[~64], f32[~64] | block=1" + rest + all + "f32[~64/16], f32[~64/16] | block=2" +
                              rest + all + "f32[48], f32[~64/16] | block=3" + rest,
                          "f");
  EXPECT_EQ(found(findings, {dense({33}), dense({63})}), "block=1");
  EXPECT_EQ(found(findings, {dense({32}), dense({63})}), "none");
  EXPECT_EQ(found(findings, {dense({64}), dense({64})}), "block=2");
  EXPECT_EQ(found(findings, {dense({48}), dense({48})}), "block=3");
  EXPECT_EQ(argumentsKey(addKernel, {dense({33, 48}), dense({512})}, {{0, 0}, {1, 0}}), "f32[~64x48], f32[~512/16]");
}

// The error for a damaged line has the file, the line, and the expected form.
TEST(Findings, TellDamagedLines) {
  const auto told = [](const std::string &part, const std::string &by, const std::string &message) {
    std::string damaged = line;
    damaged.replace(damaged.find(part), part.size(), by);
    expectError([&] { FindingsFile::parse("# one\n" + damaged + "\n", "found.txt"); }, {"found.txt:2: ", message});
  };
  told(" | 2026-11-22", "", "expected 'kernel | device | arguments");
  told("2026-11-22", "today", "expected a date such as 2026-11-22, but got 'today'");
  told("12.5 us", "12.5", "expected '312 us, default 331 us', or cycles, but got '12.5, default 20 us'");
  told("12.5 us", "nan us", "but got 'nan us");
  told("20 us", "20 cycles", "but got '12.5 us, default 20 cycles'");
  told("block=32", "block", "expected a config such as bm=64,bn=96, but got 'block'");
  told("f32[64]", "f31[64]", "expected arguments such as f32[512x~1024] or i64, but got 'f31[64]'");
  told("f32[64]", "f32[6x]", "but got 'f32[6x]'");
  told("f32[64]", "f32[64", "but got 'f32[64'");
  told("add", "a-b", "expected the name of a kernel first, but got 'a-b'");
  expectError([] { FindingsFile::parse(line + "\n" + line + "\n", "f"); }, {"f:2: ", "but line 1 is for those, too"});
}

// No prefix of a line is read as another finding: it is whole, or an error, or nothing.
TEST(Findings, RefuseEveryTruncatedLine) {
  for (size_t size = 1; size < line.size(); ++size)
    EXPECT_NE(errorOf([&] { FindingsFile::parse(line.substr(0, size), "f"); }), "") << size;
}

// Errors for unknown kernels and fields have the line and the most similar name, by check() and by use.
TEST(Findings, TellUnknownNames) {
  std::string field = line, kernel = line;
  field.replace(field.find("block"), 5, "blok");
  kernel.replace(0, 3, "ad");
  const FindingsFile wrongField = FindingsFile::parse(field, "f");
  expectError([&] { FindingsFile::parse(kernel, "f").check({&addKernel}); }, {"f:1: ", "did you mean 'add'?"});
  expectError([&] { wrongField.check({&addKernel}); }, {"f:1: ", "did you mean 'block'?"});
  expectError([&] { found(wrongField, {dense({64}), dense({64})}); }, {"f:1: ", "did you mean 'block'?"});
  FindingsFile::parse(line, "f").check({&addKernel});
}

// tuned() gives the config of the file that is named, or else of the one of KILN_FINDINGS, and without either none.
TEST(Findings, AreUsedByTheVariable) {
  const auto cpu = Device::open("cpu");
  const std::vector<Arg> args = {dense({64}), dense({64})};
  ::unsetenv("KILN_FINDINGS");
  EXPECT_EQ(tuned(*cpu, addKernel, args), "");
  const TemporaryFolder folder;
  FindingsFile findings;
  findings.add({"add", deviceKey(*cpu), argumentsKey(addKernel, args), "block=8", 4, 20, "us", "2026-12-01"});
  writeText(folder / "found.txt", findings.text());
  EXPECT_EQ(tuned(*cpu, addKernel, args, folder / "found.txt"), "block=8");
  ::setenv("KILN_FINDINGS", (folder / "found.txt").c_str(), 1);
  EXPECT_EQ(tuned(*cpu, addKernel, args), "block=8");
  EXPECT_EQ(tuned(*cpu, addKernel, {dense({32}), dense({32})}), "");
  ::setenv("KILN_FINDINGS", (folder / "none.txt").c_str(), 1);
  expectError([&] { tuned(*cpu, addKernel, args); }, {"none.txt"});
  ::unsetenv("KILN_FINDINGS");
}

} // namespace
