// Exchanges by NCCL: the same bits as through host memory, and an error if a call fails.

#include "models/parallel/device_exchange.h"
#include "models/parallel/nccl.h"
#include "runtime/Tensor.h"
#include "test/expect_error.h"
#include "test/models/parallel/nccl_stubs.h"
#include "test/models/parallel/process_ranks.h"

#include <fmt/format.h>

using namespace kiln;
using namespace kiln::test;
using nccl::Nccl;

namespace {

using NcclExchangeTest = NcclStubs;
using Statuses = std::vector<int>;

std::shared_ptr<Device> gpuOf(const Collective &ranks) { return Device::open(fmt::format("cuda:{}", ranks.rank())); }

/// Numbers that no other rank has, (count) f32.
Tensor numbersOf(const std::shared_ptr<Device> &device, const Collective &ranks, int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(1000 * (ranks.rank() + 1) + i);
  Tensor made(device, f32, {count});
  made.uploadFloats(values);
  return made;
}

/// Exchanges, and returns the received values as text.
std::vector<float> exchanged(DeviceExchange &between, const std::shared_ptr<Device> &device, const Collective &ranks) {
  const Tensor from = numbersOf(device, ranks, 5 * ranks.size()), to(device, f32, {5 * ranks.size()});
  between.exchange(from.ref(), to.ref());
  between.finish();
  return to.downloadFloats();
}

/// Gathers, and returns the received values as text.
std::vector<float> gathered(DeviceExchange &between, const std::shared_ptr<Device> &device, const Collective &ranks) {
  const Tensor all = numbersOf(device, ranks, 5 * ranks.size());
  between.gather(all.ref());
  between.finish();
  return all.downloadFloats();
}

// Pieces are received as through host memory, unchanged.
TEST_F(NcclExchangeTest, BringsWhatTheHostsMemoryDoes) {
  for (const int size : {2, 3}) {
    const Statuses statuses = ProcessRanks::run(size, [](Collective &ranks) {
      const std::shared_ptr<Device> device = gpuOf(ranks);
      const auto direct = ncclExchange(*device, ranks), staged = stagedExchange(*device, ranks);
      ASSERT_TRUE(direct);
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(exchanged(*direct, device, ranks), exchanged(*staged, device, ranks));
        EXPECT_EQ(gathered(*direct, device, ranks), gathered(*staged, device, ranks));
      }
    });
    EXPECT_EQ(statuses, Statuses(size, 0));
  }
}

// Work enqueued after an exchange sees its results, although the host does not wait for the exchange.
TEST_F(NcclExchangeTest, ComesBeforeWhatIsAskedForBehindIt) {
  const Statuses statuses = ProcessRanks::run(2, [](Collective &ranks) {
    const std::shared_ptr<Device> device = gpuOf(ranks);
    const auto direct = ncclExchange(*device, ranks), staged = stagedExchange(*device, ranks);
    const Tensor from = numbersOf(device, ranks, 10), to(device, f32, {10}), want(device, f32, {10});
    direct->exchange(from.ref(), to.ref());
    const std::vector<float> got = to.downloadFloats();
    staged->exchange(from.ref(), want.ref());
    EXPECT_EQ(got, want.downloadFloats());
    direct->gather(from.ref());
    EXPECT_EQ(from.downloadFloats()[5 * (1 - ranks.rank())], 1000.0f * (2 - ranks.rank()) + 5 * (1 - ranks.rank()));
  });
  EXPECT_EQ(statuses, Statuses(2, 0));
}

// Ranks on one GPU use host memory, and so do ranks without NCCL; the first rank reports why.
TEST_F(NcclExchangeTest, IsNoneWhereItCannotBe) {
  EXPECT_EQ(ProcessRanks::run(2,
                              [](Collective &ranks) {
                                const std::shared_ptr<Device> device = Device::open("cuda:0");
                                testing::internal::CaptureStderr();
                                EXPECT_FALSE(ncclExchange(*device, ranks));
                                EXPECT_EQ(testing::internal::GetCapturedStderr(),
                                          ranks.isFirst() ? "ranks exchange through the host's memory: some share a "
                                                            "GPU (--device cuda gives each its own)\n"
                                                          : "");
                              }),
            Statuses(2, 0));
  EXPECT_EQ(ProcessRanks::run(2,
                              [](Collective &ranks) {
                                if (!ranks.isFirst())
                                  ::setenv("KILN_NCCL", "", 1);
                                const std::shared_ptr<Device> device = gpuOf(ranks);
                                testing::internal::CaptureStderr();
                                EXPECT_FALSE(ncclExchange(*device, ranks));
                                const std::string said = testing::internal::GetCapturedStderr();
                                EXPECT_EQ(said, ranks.isFirst() ? "ranks exchange through the host's memory: another "
                                                                  "rank has no NCCL\n"
                                                                : "");
                              }),
            Statuses(2, 0));
}

// Each call that NCCL refuses is an error that names the rank, the call and the result. A rank stays until the other
// one has its answer. Otherwise the other's error would be that this rank has ended.
TEST_F(NcclExchangeTest, SaysWhatNcclRefuses) {
  for (const char *call : {"ncclCommInitRank", "ncclSend", "ncclRecv", "ncclGroupEnd", "ncclAllGather"}) {
    tell(std::string("refuse=") + call);
    EXPECT_EQ(ProcessRanks::run(2,
                                [&](Collective &ranks) {
                                  const std::shared_ptr<Device> device = gpuOf(ranks);
                                  std::unique_ptr<DeviceExchange> direct;
                                  expectError(
                                      [&] {
                                        direct = ncclExchange(*device, ranks);
                                        exchanged(*direct, device, ranks);
                                        gathered(*direct, device, ranks);
                                      },
                                      {fmt::format("rank {} of 2: expected ", ranks.rank()),
                                       fmt::format("but {} returned ", call), "(NCCL's result "});
                                  char here[2] = {};
                                  ranks.gather(here, 1);
                                }),
              Statuses(2, 0))
        << call;
  }
}

// NCCL has as many ranks as the launcher started, or nothing begins.
TEST_F(NcclExchangeTest, RefusesAnotherNumberOfRanks) {
  tell("size=3");
  EXPECT_EQ(ProcessRanks::run(2,
                              [](Collective &ranks) {
                                const std::shared_ptr<Device> device = gpuOf(ranks);
                                expectError([&] { ncclExchange(*device, ranks); },
                                            {fmt::format("expected NCCL to have this as rank {0} of 2, but it is rank "
                                                         "{0} of 3 there",
                                                         ranks.rank())});
                              }),
            Statuses(2, 0));
}

// If a rank ends during an exchange, the waiting ranks have an error that names it.
TEST_F(NcclExchangeTest, ADeadRankIsAnError) {
  tell("die=1:2");
  const Statuses statuses = ProcessRanks::run(2, [](Collective &ranks) {
    const std::shared_ptr<Device> device = gpuOf(ranks);
    const auto direct = ncclExchange(*device, ranks);
    exchanged(*direct, device, ranks);
    expectError([&] { exchanged(*direct, device, ranks); },
                {"rank 0 of 2: expected the other ranks to take part in an exchange, but NCCL says: remote process "
                 "exited"});
  });
  EXPECT_EQ(statuses, (Statuses{0, 9}));
}

// If a rank lives but does not take part, the others end with an error after the time limit.
TEST_F(NcclExchangeTest, ARankThatHangsIsAnError) {
  tell("hang=1:1");
  const Statuses statuses = ProcessRanks::run(2, [](Collective &ranks) {
    const std::shared_ptr<Device> device = gpuOf(ranks);
    const auto direct = ncclExchange(*device, ranks, ranks.isFirst() ? std::chrono::milliseconds(50) : longestWait);
    expectError([&] { exchanged(*direct, device, ranks); },
                {"expected the other ranks to take part in an exchange",
                 ranks.isFirst() ? "within 50 ms, but one does not" : "remote process exited"});
  });
  EXPECT_EQ(statuses, Statuses(2, 0));
}

// --- The search for NCCL's library, and the errors for unusable ones -------------------------------------------------

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
