// Ranks through the MPI module.

#include "dialect/dsl/Types.h"
#include "models/parallel/collective.h"
#include "models/parallel/mpi_module.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <exception>
#include <fmt/format.h>
#include <thread>

namespace kiln {

/// The number in a launcher's environment variable, or `none`.
static int numberIn(const char *variable, int none = 0) {
  const char *const text = std::getenv(variable);
  int number = none;
  if (text)
    std::from_chars(text, text + std::strlen(text), number);
  return number;
}

int launchedRanks() {
  // Open MPI's mpirun; PMI of MPICH, Intel MPI and Slurm; Slurm with PMIx, which sets the rank only.
  for (const char *variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const int size = numberIn(variable))
      return size;
  return numberIn("PMIX_RANK", -1) >= 0 ? std::max(1, numberIn("SLURM_STEP_NUM_TASKS")) : 1;
}

/// Loads the module and returns its table, for `ranks` ranks. It is never closed.
static const MpiModule &openModule(int ranks) {
  const auto refuse = [&](const std::string &what) {
    throw Error(fmt::format("expected MPI's module '{}', which {} ranks exchange by, but {}; the build makes it where "
                            "CMake finds MPI",
                            mpiModuleName, ranks, what),
                Fault::device);
  };
  void *const handle = dlopen(mpiModuleName, RTLD_NOW | RTLD_GLOBAL); // MPI's plugins resolve its symbols
  if (!handle)
    refuse(fmt::format("could not open it: {}", dlerror()));
  auto *const entry = reinterpret_cast<MpiModuleEntry *>(dlsym(handle, mpiModuleEntry));
  if (!entry)
    refuse(fmt::format("it has no '{}'", mpiModuleEntry));
  const MpiModule *const module = entry();
  if (module->version != mpiModuleVersion)
    refuse(fmt::format("it is of version {} instead of {}", module->version, mpiModuleVersion));
  return *module;
}

namespace {
class Mpi : public Collective {
public:
  Mpi(const MpiModule &module, MpiPlace place) : module(module), place(place) {}
  /// After success all ranks get here. After an error, the other ranks notice it when this process ends.
  ~Mpi() override {
    if (std::uncaught_exceptions() == 0) {
      if (const char *const wrong = module.close())
        say(fmt::format("rank {} of {}: MPI did not end well: {}\n", rank(), size(), wrong));
      return;
    }
    if (isFirst())
      return;
    // An error that all ranks find is reported by the first one, which ends all.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    say(fmt::format("rank {} of {} ends with an error:\n", rank(), size()));
  }

  int rank() const override { return place.rank; }
  int size() const override { return place.size; }
  int localRank() const override { return place.localRank; }
  int localSize() const override { return place.localSize; }
  void exchange(const void *from, void *to, int64_t bytes) override {
    expectDone("an exchange", module.exchange(from, to, bytes));
  }
  void gather(void *all, int64_t bytes) override { expectDone("gathering", module.gather(all, bytes)); }
  void broadcast(void *data, int64_t bytes) override { expectDone("a broadcast", module.broadcast(data, bytes)); }

private:
  void expectDone(const char *what, const char *wrong) const {
    if (wrong)
      throw Error(fmt::format("rank {} of {}: expected {} to succeed, but MPI says: {}", rank(), size(), what, wrong),
                  Fault::device);
  }

  const MpiModule &module;
  const MpiPlace place;
};
} // namespace

std::shared_ptr<Collective> openRanks() {
  const int ranks = launchedRanks();
  if (ranks <= 1)
    return aloneCollective();
  const MpiModule &module = openModule(ranks);
  MpiPlace place = {};
  if (const char *const wrong = module.open(&place))
    throw Error(fmt::format("expected MPI to begin by '{}', but it says: {}", mpiModuleName, wrong), Fault::device);
  on_exit([](int status, void *held) { static_cast<const MpiModule *>(held)->abort(status ? status : 3); },
          const_cast<MpiModule *>(&module)); // whichever way the process ends; after close() it does nothing
  if (place.size != ranks)
    throw Error(fmt::format("expected {} ranks, as the launcher started, but MPI knows of {}: '{}' may be built with "
                            "another MPI than the launcher's",
                            ranks, place.size, mpiModuleName),
                Fault::device);
  return std::make_shared<Mpi>(module, place);
}

} // namespace kiln
