#include "tools/kilnc/Command.h"

int main(int argc, char **argv) { return kiln::tools::runCommand(argc, argv); }
