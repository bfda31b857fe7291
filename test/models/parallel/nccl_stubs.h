// Tests of exchanges by NCCL, on the stubs of its library and of the driver.

#pragma once

#include "test/devices.h"
#include "test/temporary_folder.h"

#include <cstdlib>
#include <gtest/gtest.h>

namespace kiln::test {

/// The stub of NCCL's library, built with the tests.
inline std::string ncclStub() { return std::filesystem::path(stubDriver()).parent_path() / "libnccl_stub.so"; }

class NcclStubs : public testing::Test {
protected:
  void SetUp() override {
    ::setenv("KILN_CUDA_DRIVER", stubDriver().c_str(), 1);
    ::setenv("CUDA_PATH", "", 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3", 1);
    ::setenv("KILN_NCCL", ncclStub().c_str(), 1);
    ::setenv("TMPDIR", folder.path.c_str(), 1);
    ::unsetenv("KILN_STUB_NCCL");
  }
  void TearDown() override { ::unsetenv("TMPDIR"); }
  /// Sets the fault that the stub injects; see nccl_stub.cc.
  static void tell(const std::string &words) { ::setenv("KILN_STUB_NCCL", words.c_str(), 1); }

  TemporaryFolder folder;
};

} // namespace kiln::test
