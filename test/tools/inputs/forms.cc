// Every way to write a registration: static, const, neither, in an array, in a vector, of a template, in a namespace
// and in a class, in a function that runs while the file is loaded, and by way of a variable; and lines in comments and
// strings that register nothing.

#include "dialect/dsl/Kernel.h"

#include <vector>

using namespace kiln;

namespace outer::inner {
void copy(View x, View y) { store(y, {0}, load(x, {0}, {4})); }
Kernel plain = kernel("plain", copy, {"x", "y"});
static const Kernel hidden = kernel("hidden", copy);
namespace {
const auto unnamed = kernel("unnamed", copy);
}
} // namespace outer::inner

template <class Config> void filled(View x, Config cfg) { store(x, {0}, full(x.type(), {4}, cfg.value)); }
struct One {
  int value = 1;
};
struct Half {
  double value = 0.5;
};
const Kernel family[] = {kernel("one", filled<One>, {"x"}, {field("value", &One::value)}),
                         kernel("half", filled<Half>, {"x"}, {field("value", &Half::value)})};

struct Holder {
  static const Kernel member;
};
const Kernel Holder::member = kernel("member", outer::inner::copy);

/// A kernel for each width.
std::vector<Kernel> widths() {
  std::vector<Kernel> made;
  for (const char *name : {"narrow", "wide"})
    made.push_back(kernel(name, outer::inner::copy));
  return made;
}
const std::vector<Kernel> made = widths();

// const Kernel comment = kernel("comment", outer::inner::copy);
const char *const text = "const Kernel text = kernel(\"text\", copy);";
