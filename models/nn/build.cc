// Labels of launches.

#include "models/nn/build.h"

namespace kiln {

static void prepend(Plan &plan, const std::string &name, size_t begin) {
  for (size_t i = begin; i < plan.launches.size(); ++i) {
    std::string &label = plan.launches[i].label;
    label = label.empty() ? name : name + " " + label;
  }
}

Plan labelled(Plan plan, const std::string &name) {
  prepend(plan, name, 0);
  return plan;
}

Scope::~Scope() { prepend(build.plan, name, begin); }

} // namespace kiln
