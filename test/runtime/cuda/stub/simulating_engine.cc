// Kernels run in the simulator, as a GPU of compute capability 8.0 or newer.

#include "test/runtime/cuda/stub/engine.h"

#include "runtime/Streams.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Launch.h"
#include "runtime/simulator/Report.h"
#include "runtime/simulator/TensorMap.h"
#include "runtime/simulator/ptx/Parser.h"

#include <cstring>

namespace kiln::stub {

using namespace simulator;

static Memory &memory() {
  static auto &all = *new Memory;
  return all;
}

void *allocateDevice(size_t bytes) {
  void *const place = memory().allocate(static_cast<int64_t>(bytes));
  std::memset(place, Memory::poison, bytes);
  return place;
}

void releaseDevice(void *place) { memory().release(place); }

bool ownsDevice(const void *place, size_t bytes) {
  const auto address = reinterpret_cast<uint64_t>(place);
  return memory().find(address).holds(address, bytes);
}

namespace {
class SimulatedCode : public Code {
public:
  explicit SimulatedCode(const char *text) {
    const auto module = std::make_shared<const ptx::Module>(ptx::parse(text));
    for (const ptx::Function &function : module->functions)
      if (function.isEntry)
        program = buildProgram(module, std::string(function.name), memory());
  }
  ~SimulatedCode() override {
    for (const PlacedVariable &variable : program->variables)
      releaseDevice(variable.place);
  }

  bool hasKernel(const std::string &name) const override { return program->name == name; }
  void *variable(const std::string &name) const override {
    for (const PlacedVariable &variable : program->variables)
      if (variable.name == name)
        return variable.place;
    return nullptr;
  }
  int64_t parameterBytes() const override { return program->parameterBytes; }
  int64_t threads() const override { return program->blockIsFixed ? program->block[0] : -1; }
  bool run(const std::array<unsigned, 3> &grid, const std::array<unsigned, 3> &block, unsigned dynamicShared,
           const std::vector<char> &parameters) override {
    Findings findings;
    const auto extents = [](const std::array<unsigned, 3> &each) {
      return Extents{static_cast<int>(each[0]), static_cast<int>(each[1]), static_cast<int>(each[2])};
    };
    simulator::launch(*program, extents(grid), extents(block), dynamicShared, parameters.data(), memory(), findings);
    if (!findings.empty())
      say(textOf(findings, *program));
    return findings.empty();
  }

private:
  std::shared_ptr<const Program> program;
};
} // namespace

std::unique_ptr<Code> loadImage(const char *image, std::string &log) {
  try {
    return std::make_unique<SimulatedCode>(image);
  } catch (const std::exception &error) {
    log = error.what();
    return nullptr;
  }
}

} // namespace kiln::stub

/// The driver's numbers of element types as the simulator's.
static constexpr kiln::simulator::TensorElement elementsOfDriver[] = {
    kiln::simulator::TensorElement::u8,     kiln::simulator::TensorElement::u16,
    kiln::simulator::TensorElement::u32,    kiln::simulator::TensorElement::s32,
    kiln::simulator::TensorElement::u64,    kiln::simulator::TensorElement::s64,
    kiln::simulator::TensorElement::f16,    kiln::simulator::TensorElement::f32,
    kiln::simulator::TensorElement::f64,    kiln::simulator::TensorElement::bf16,
    kiln::simulator::TensorElement::f32Ftz, kiln::simulator::TensorElement::tf32,
    kiln::simulator::TensorElement::tf32Ftz};

/// Tools look this one up themselves: no kernel of Kiln's has a tensor map.
extern "C" int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *dims,
                                      const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int,
                                      int swizzle, int, int fill) {
  try {
    const kiln::simulator::TensorMap made =
        kiln::simulator::makeTensorMap({.element = elementsOfDriver[type],
                                        .address = reinterpret_cast<uint64_t>(address),
                                        .dims = {dims, dims + rank},
                                        .strides = {strides, strides + rank - 1},
                                        .box = {box, box + rank},
                                        .elementStrides = {steps, steps + rank},
                                        .swizzle = static_cast<kiln::simulator::Swizzle>(swizzle),
                                        .nanFill = fill != 0});
    std::memcpy(map, &made, sizeof made);
    return 0;
  } catch (const std::exception &) {
    return 1; // CUDA_ERROR_INVALID_VALUE
  }
}
