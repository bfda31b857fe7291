// Kernels do nothing.

#include "test/runtime/cuda/stub/engine.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

namespace kiln::stub {

namespace {
/// The allocations by their ends.
struct Memory {
  std::mutex mutex;
  std::map<const char *, const char *> beginByEnd;
};
} // namespace

static Memory &memory() {
  static auto &all = *new Memory;
  return all;
}

void *allocateDevice(size_t bytes) {
  bytes = (bytes + 255) / 256 * 256;
  char *const place = static_cast<char *>(std::aligned_alloc(256, bytes));
  const std::lock_guard lock(memory().mutex);
  if (place)
    memory().beginByEnd[place + bytes] = place;
  return place;
}

void releaseDevice(void *place) {
  const std::lock_guard lock(memory().mutex);
  std::erase_if(memory().beginByEnd, [&](const auto &each) { return each.second == place; });
  std::free(place);
}

bool ownsDevice(const void *place, size_t bytes) {
  const std::lock_guard lock(memory().mutex);
  const char *const begin = static_cast<const char *>(place);
  const auto found = memory().beginByEnd.upper_bound(begin);
  return found != memory().beginByEnd.end() && found->second <= begin && begin + bytes <= found->first;
}

namespace {
class IdleCode : public Code {
public:
  explicit IdleCode(const char *text) : text(text) {}
  ~IdleCode() override {
    if (console)
      releaseDevice(console);
  }
  bool hasKernel(const std::string &name) const override { return text.find(name) != std::string::npos; }
  void *variable(const std::string &name) const override {
    if (!console && text.find(" " + name + "[") != std::string::npos)
      console = std::memset(allocateDevice(consoleBytes), 0, consoleBytes);
    return console;
  }
  bool run(const std::array<unsigned, 3> &, const std::array<unsigned, 3> &, unsigned,
           const std::vector<char> &) override {
    return true;
  }
  bool doesRun() const override { return false; }

private:
  static constexpr size_t consoleBytes = 2 << 20;
  const std::string text;
  mutable void *console = nullptr;
};
} // namespace

std::unique_ptr<Code> loadImage(const char *image, std::string &log) {
  if (std::strstr(image, ".version"))
    return std::make_unique<IdleCode>(image);
  log = "expected PTX";
  return nullptr;
}

} // namespace kiln::stub
