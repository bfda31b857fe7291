// The folder of a run, held by this process alone, or by the first of its ranks, and the checkpoint in it to resume
// from.

#pragma once

#include "models/data/folder_lock.h"
#include "models/parallel/collective.h"
#include "models/train/checkpoint.h"
#include "models/train/options.h"

namespace kiln {

/// Throws Error for options that are out of range, or contradict each other or the folder.
void verify(const RunOptions &options);

class RunFolder {
public:
  /// Takes the lock and finds the checkpoint. Throws Error as FolderLock does. It also throws if the checkpoint does
  /// not exist, or if there are checkpoints and the options say nothing about them. With several ranks the first takes
  /// the lock, and the others continue once it has; only the first writes to the folder.
  explicit RunFolder(const RunOptions &options, std::shared_ptr<Collective> ranks = aloneCollective());

  /// The run's ranks, and whether this one has the folder.
  Collective &ranks() const { return *together; }
  const std::shared_ptr<Collective> &sharedRanks() const { return together; }
  bool isHeld() const { return together->isFirst(); }

  const std::string &path() const { return options.out; }
  /// The checkpoint to resume from, if any.
  const std::optional<std::string> &checkpoint() const { return begin; }
  /// The result of `read` on that checkpoint. If it is damaged, the error names the newest undamaged one before it.
  template <class Read> auto read(Read read) const {
    try {
      return read(*begin);
    } catch (const Error &error) {
      nameOlder(error);
    }
  }

  /// Whether the folder is still in its place, for the rank that has it. See FolderLock.
  bool holds() const { return lock->holds(); }
  /// Locks a new folder after the old one was removed. `saved` is the step of the run's last checkpoint, or −1. Throws
  /// Error if checkpoints of another run are there.
  void takeAgain(int64_t saved);

private:
  [[noreturn]] void nameOlder(const Error &error) const;

  const RunOptions &options;
  const std::shared_ptr<Collective> together;
  std::optional<FolderLock> lock;
  std::optional<std::string> begin;
};

} // namespace kiln
