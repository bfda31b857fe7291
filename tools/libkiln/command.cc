// kilnc in the libkiln.so of a wheel, for the command that pip installs.

#include "tools/kilnc/Command.h"

extern "C" int kiln_command(int argc, char **argv) { return kiln::tools::runCommand(argc, argv); }
