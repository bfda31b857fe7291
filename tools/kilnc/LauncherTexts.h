// The files in launcher/, as a part of kilnc.

#pragma once

namespace kiln::tools {

extern const char *const launcherTables, *const launcherArguments, *const launcherPrint, *const launcherCpu,
                                                                                             *const launcherGpu;

} // namespace kiln::tools
