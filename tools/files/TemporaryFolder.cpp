// Makes and removes folders below the system's temporary one.

#include "tools/files/TemporaryFolder.h"

#include "dialect/dsl/Types.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace fs = std::filesystem;

namespace kiln::tools {

TemporaryFolder::TemporaryFolder(const std::string &prefix) {
  std::string name = (fs::temp_directory_path() / (prefix + "-XXXXXX")).string(); // mkdtemp fills in the end
  if (!::mkdtemp(name.data()))
    throw Error(fmt::format("expected to make a folder '{}', but could not: {}", name, std::strerror(errno)),
                Fault::device);
  folder = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

} // namespace kiln::tools
