// Exclusive use of a folder: a process that writes to it holds a lock on a file in it. The system releases the lock
// when the process ends, however it ends. The file names the process.

#pragma once

#include <string>
#include <vector>

namespace kiln {

/// A folder that only this process writes to while the object lives. Readers need no lock.
class FolderLock {
public:
  /// Creates `folder` with its parents if needed, and takes its lock. Throws Error (user), which names the process, if
  /// another one holds the lock, and if the path cannot be a folder. Throws Error (device) if there can be no lock
  /// file. On a file system without locks it warns and continues without one.
  explicit FolderLock(const std::string &folder);
  /// Releases the lock. A folder that was created for it and is empty is removed.
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;

  /// Whether the folder's path still leads to the locked folder. It does not after a removal or a renaming.
  bool holds() const;

private:
  bool tryLock();
  void makeFolder();
  void release();

  const std::string folder, path; // of the lock file
  std::vector<std::string> made;  // folders that were created, outermost first
  int file = -1;
};

} // namespace kiln
