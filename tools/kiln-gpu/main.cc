// kiln-gpu: tests, benchmarks and training in one program that needs only system libraries. tools/bundle packs it for a
// machine with a GPU but without LLVM and a compiler.
//
//     kiln-gpu test [FLAG OF GOOGLETEST...]       the semantic suite and the kernels' tests, on KILN_TEST_DEVICE
//     kiln-gpu conformance FILE [FLAG...]         the simulator's tests, each launch compared with the GPU's
//                                                 (parts.h)
//     kiln-gpu approximations [--device D] [--every N]
//     kiln-gpu bench|gpt2 ARG...                  kiln-bench and gpt2
//     kiln-gpu --version

#include "tools/kiln-gpu/parts.h"

#include "dialect/dsl/Types.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/random.h>

// The main functions of kiln-bench and gpt2, renamed by the build.
int benchMain(int argc, char **argv);
int gpt2Main(int argc, char **argv);

/// LLVM uses this function, which glibc has from 2.36 on; with this definition the program also runs with 2.35.
extern "C" __attribute__((visibility("hidden"))) unsigned arc4random() {
  unsigned number = 1;
  return ::getrandom(&number, sizeof number, 0) == sizeof number ? number : 1;
}

static int testMain(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

static int conformanceMain(int argc, char **argv) {
  return kiln::runProgram("kiln-gpu", [=] {
    if (argc < 2)
      throw kiln::Error("expected an output file for the findings, such as 'kiln-gpu conformance found.json'");
    kiln::gpu::compareLaunches(argv[1]);
    return testMain(argc - 1, argv + 1);
  });
}

/// A part of the program by its name.
struct Part {
  std::string_view name;
  int (*main)(int argc, char **argv);
};
static constexpr Part parts[] = {{"test", testMain},
                                 {"conformance", conformanceMain},
                                 {"approximations", kiln::gpu::approximationsMain},
                                 {"bench", benchMain},
                                 {"gpt2", gpt2Main}};

int main(int argc, char **argv) {
  const std::string_view asked = argc > 1 ? argv[1] : "";
  for (const Part &part : parts)
    if (part.name == asked)
      return part.main(argc - 1, argv + 1);
  return kiln::runProgram("kiln-gpu", [asked] {
    if (asked != "--version")
      throw kiln::Error(fmt::format("expected test, conformance, approximations, bench or gpt2, but got '{}'", asked));
    kiln::writeResult(kiln::versionText("kiln-gpu") + "\n");
    return 0;
  });
}
