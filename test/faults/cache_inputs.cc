// The compile cache with damaged entries, below a kernel that is launched.

#include "dialect/dsl/Kernel.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/faults/inputs.h"
#include "test/temporary_folder.h"

#include <cstdlib>
#include <filesystem>
#include <sys/stat.h>

namespace fs = std::filesystem;

namespace kiln::faults {

/// y += 3 x.
static void addThreefold(View x, View y) {
  Tile n = program_id(0) * 8;
  store(y, {n}, load(y, {n}, {8}) + load(x, {n}, {8}) * 3.0);
}
static const Kernel addThreefoldKernel = kernel("add_threefold", addThreefold);

namespace {

class CacheInputs : public Inputs {
public:
  explicit CacheInputs(const std::string &place) : folder(place + "/cache") {
    setenv("KILN_CACHE", folder.c_str(), 1);
    setenv("KILN_THREADS", "1", 1);
    unsetenv("KILN_DUMP");
    device = Device::open("cpu");
    launchAndCheck();
    for (const fs::directory_entry &file : fs::recursive_directory_iterator(folder))
      if (file.is_regular_file() && file.file_size() > whole.size()) {
        entry = file.path();
        whole = readText(entry);
      }
    if (whole.empty())
      throw Error("expected an entry in the cache, but there is none", Fault::internal);
  }

  std::string run(Chance &chance) override {
    const std::string bytes = damaged(whole, {}, chance);
    fs::remove_all(entry);
    const bool damagedSurely = put(bytes, chance);
    const int64_t before = compileStatistics().fromDisk;
    forgetCompiled();
    std::string complaint = complaintOf([&] { launchAndCheck(); });
    if (complaint.empty() && damagedSurely && compileStatistics().fromDisk != before)
      complaint = "a damaged entry was taken for whole";
    return complaint;
  }

private:
  /// Replaces the entry by something else; returns whether that is certainly no complete entry.
  bool put(const std::string &bytes, Chance &chance) const {
    switch (chance.below(20)) {
    case 0: // huge, and hardly anything on the disk
      writeText(entry, whole);
      fs::resize_file(entry, uintmax_t{1} << (20 + chance.below(20)));
      return true;
    case 1:
      mkfifo(entry.c_str(), 0600);
      return true;
    case 2:
      fs::create_directory(entry);
      return true;
    case 3:
      fs::create_symlink("/dev/zero", entry);
      return true;
    case 4: // complete, but perhaps written by another user
      writeText(entry, whole);
      chmod(entry.c_str(), 0666);
      return true;
    default:
      writeText(entry, bytes);
      chmod(entry.c_str(), 0600);
      return bytes != whole;
    }
  }

  void launchAndCheck() const {
    Tensor x(device, f32, {40}), y(device, f32, {40});
    std::vector<float> from(40), want(40);
    for (int i = 0; i < 40; ++i) {
      from[i] = static_cast<float>(i);
      want[i] = static_cast<float>(3 * i + 1);
    }
    x.uploadFloats(from);
    y.uploadFloats(std::vector<float>(40, 1.0f));
    launch(*device, addThreefoldKernel, {5, 1, 1}, {x.ref(), y.ref()});
    if (y.downloadFloats() != want)
      throw std::runtime_error("the kernel's result is wrong");
  }

  const std::string folder;
  std::shared_ptr<Device> device;
  std::string entry, whole;
};

} // namespace

std::unique_ptr<Inputs> cacheInputs(const std::string &folder) { return std::make_unique<CacheInputs>(folder); }

} // namespace kiln::faults
