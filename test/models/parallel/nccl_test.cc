// The search for NCCL's library, and the errors for unusable ones.

#include "models/parallel/nccl.h"
#include "test/expect_error.h"
#include "test/models/parallel/nccl_stubs.h"

using namespace kiln;
using namespace kiln::test;
using nccl::Nccl;

namespace {

using NcclLibrary = NcclStubs;

// Before 2.9 a version's code has one digit less.
TEST(NcclVersion, IsReadAsNcclWritesIt) {
  EXPECT_EQ(nccl::versionText(2700), "2.7.0");
  EXPECT_EQ(nccl::versionText(2804), "2.8.4");
  EXPECT_EQ(nccl::versionText(20900), "2.9.0");
  EXPECT_EQ(nccl::versionText(22809), "2.28.9");
}

TEST_F(NcclLibrary, IsTheOneThatIsNamed) {
  std::string why;
  const Nccl *const found = Nccl::open(why);
  ASSERT_TRUE(found) << why;
  EXPECT_EQ(found->version, 22809);
  EXPECT_EQ(Nccl::open(why), found);
}

TEST_F(NcclLibrary, ThatIsTooOldIsRefused) {
  tell("version=2604");
  std::filesystem::copy_file(ncclStub(), folder / "libold.so");
  ::setenv("KILN_NCCL", (folder / "libold.so").c_str(), 1);
  std::string why;
  expectError([&] { Nccl::open(why); }, {"libold.so' to be of version 2.7.0 or newer, but it is of version 2.6.4"});
}

TEST_F(NcclLibrary, ThatIsNoneIsRefused) {
  std::string why;
  ::setenv("KILN_NCCL", "libm.so.6", 1);
  expectError([&] { Nccl::open(why); }, {"NCCL's library 'libm.so.6' lacks 'ncclGetVersion'"});
  ::setenv("KILN_NCCL", "libnone.so", 1);
  expectError([&] { Nccl::open(why); },
              {"expected NCCL's library 'libnone.so', which KILN_NCCL names", "could not open"});
}

// An empty name selects no library, which is no error: ranks then use host memory.
TEST_F(NcclLibrary, MayBeNone) {
  ::setenv("KILN_NCCL", "", 1);
  std::string why;
  EXPECT_EQ(Nccl::open(why), nullptr);
  EXPECT_EQ(why, "KILN_NCCL is empty");
}

} // namespace
