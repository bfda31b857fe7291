// Paths of source files and of built programs, found from the running program. Thus no path is compiled into a test,
// and objects of one checkout can be reused in another.

#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace kiln::test {

/// The build folder: the nearest parent folder of the running program with a CMakeCache.txt. Throws if there is none.
inline std::filesystem::path buildFolder() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  for (std::filesystem::path folder = program.parent_path(); folder != folder.root_path();
       folder = folder.parent_path())
    if (exists(folder / "CMakeCache.txt"))
      return folder;
  throw std::runtime_error("expected '" + program.string() + "' to be in a build folder");
}

/// A file or folder of the sources, by its path from their root.
inline std::string sourcePath(const std::string &path) {
  static const std::string key = "CMAKE_HOME_DIRECTORY:INTERNAL=";
  std::ifstream cache(buildFolder() / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);)
    if (line.starts_with(key))
      return line.substr(key.size()) + "/" + path;
  throw std::runtime_error("expected the folder of the sources in CMakeCache.txt");
}

/// A program of the build, by its name.
inline std::string programPath(const std::string &name) { return (buildFolder() / "bin" / name).string(); }

} // namespace kiln::test
