// One owner a folder: who writes into a folder holds the lock on a file in it. The lock is the system's own and goes
// with the process that holds it, however that ends; the file says who that is.

#pragma once

#include <string>
#include <vector>

namespace kiln {

/// A folder that this process alone writes to while the object lives. Reading takes no lock.
class FolderLock {
public:
  /// Makes `folder` with its parents where it is missing, and takes its lock. Throws Error: (user) when another process
  /// has it, which is named, or no folder can have that name; (device) when there can be no lock file. Where the file
  /// system has no locks, that is said as a warning and the folder used without.
  explicit FolderLock(const std::string &folder);
  /// Gives the lock back. A folder that was made for it and is empty goes too.
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;

  /// Whether the folder's name still leads to the folder that was locked. It does not when that was removed or renamed.
  bool holds() const;

private:
  bool tryLock();
  void makeFolder();
  void release();

  const std::string folder, path; // of the lock file
  std::vector<std::string> made;  // folders that were not there, outermost first
  int file = -1;
};

} // namespace kiln
