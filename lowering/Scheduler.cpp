// LLVM's scheduler is a command-line option of the process, so it is set once.

#include "lowering/Scheduler.h"

#include "dialect/dsl/Types.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"

#include <cstdlib>

namespace kiln::lowering {

/// The names are those of llc. `source` is NVPTX's default. `vliw-td` is for other machines, LLVM's NVPTX backend
/// crashes with `linearize`, and `fast` does not produce fast code.
static constexpr llvm::StringLiteral schedulers[] = {"source", "list-burr", "list-hybrid", "list-ilp"};
static constexpr llvm::StringLiteral option = "pre-RA-sched";

static std::string tellLlvm() {
  const char *const asked = std::getenv("KILN_SCHEDULER");
  const std::string name = asked ? asked : "";
  if (name.empty())
    return name;
  if (!llvm::is_contained(schedulers, name))
    throw Error("expected KILN_SCHEDULER to be one of " + llvm::join(llvm::ArrayRef(schedulers), ", ") + ", but got '" +
                name + "'");
  auto &options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(option);
  if (found == options.end() || found->second->addOccurrence(0, option, name))
    throw Error("KILN_SCHEDULER: this LLVM does not support the scheduler '" + name + "'", Fault::device);
  return name;
}

const std::string &chosenScheduler() {
  static const std::string name = tellLlvm();
  return name;
}

} // namespace kiln::lowering
