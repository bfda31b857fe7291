// The folder of a run, held by this process alone, or by the first of its ranks, and the checkpoint in it that the run
// goes on from.

#pragma once

#include "models/data/folder_lock.h"
#include "models/parallel/collective.h"
#include "models/train/checkpoint.h"
#include "models/train/options.h"

namespace kiln {

/// Throws Error for options out of range, that contradict each other, or that the folder contradicts.
void verify(const RunOptions &options);

class RunFolder {
public:
  /// Takes the lock, and finds the checkpoint. Throws Error as FolderLock does, and when there is no such checkpoint,
  /// or there are some that nothing is said about. Of several ranks the first takes the lock, and the others go on once
  /// it has; only it writes to the folder.
  explicit RunFolder(const RunOptions &options, std::shared_ptr<Collective> ranks = aloneCollective());

  /// Those of the run, and whether this one has the folder.
  Collective &ranks() const { return *together; }
  const std::shared_ptr<Collective> &sharedRanks() const { return together; }
  bool isHeld() const { return together->isFirst(); }

  const std::string &path() const { return options.out; }
  /// The checkpoint to go on from, if any.
  const std::optional<std::string> &checkpoint() const { return begin; }
  /// What `read` makes of that checkpoint. When that is damaged, the error names the checkpoint before it that is not.
  template <class Read> auto read(Read read) const {
    try {
      return read(*begin);
    } catch (const Error &error) {
      nameOlder(error);
    }
  }

  /// Whether the folder is where it was, for the rank that has it. See FolderLock.
  bool holds() const { return lock->holds(); }
  /// Locks a folder made anew where this one went away. `saved` is the step of the run's last checkpoint, or −1; throws
  /// Error when checkpoints of another run are there.
  void takeAgain(int64_t saved);

private:
  [[noreturn]] void nameOlder(const Error &error) const;

  const RunOptions &options;
  const std::shared_ptr<Collective> together;
  std::optional<FolderLock> lock;
  std::optional<std::string> begin;
};

} // namespace kiln
