// The program kilnc as a function: of its executable, and of the library that tools/wheel packs.

#pragma once

namespace kiln::tools {

/// Does what the command line asks, and prints errors. The status of the program.
int runCommand(int argc, char **argv) noexcept;

} // namespace kiln::tools
