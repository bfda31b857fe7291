// Damaged files of images, of a kernel for a CPU and a GPU.

#include "runtime/Tensor.h"
#include "test/faults/inputs.h"
#include "test/runtime/images.h"
#include "test/runtime/kernels.h"

#include <algorithm>

namespace kiln::faults {

namespace {

class ImageInputs : public Inputs {
public:
  ImageInputs() {
    std::vector<KernelImage> images;
    for (const char *name : {"cpu", "simulator:sm_80"}) {
      const std::shared_ptr<Device> device = Device::open(name);
      Tensor x(device, f32, {3, 48}), y(device, f32, {3});
      images.push_back(
          test::makeImage(*device, test::rowSumsKernel, {x, y}, "", images.empty() ? "x86-64-v3" : "sm_80"));
      parts.push_back(formatImages({images.back()}));
    }
    whole = formatImages(images);
  }

  std::string run(Chance &chance) override {
    const bool isSealed = chance.below(2); // the damage has a hash that is right, as no accident makes it
    const std::string &part = chance.oneOf(parts);
    const std::string bytes = isSealed ? test::withContent(part, damaged(test::takeContent(part), parts, chance))
                                       : damaged(whole, parts, chance);
    bool isOther = false;
    std::string complaint = complaintOf([&] {
      for (const KernelImage &image : readImages(bytes, "damaged.kiln"))
        isOther |= std::find(parts.begin(), parts.end(), formatImages({image})) == parts.end();
    });
    if (complaint.empty() && isOther && !isSealed)
      complaint = "a damaged image was taken for whole";
    return complaint;
  }

private:
  std::string whole;
  std::vector<std::string> parts; // files of one image
};

} // namespace

std::unique_ptr<Inputs> imageInputs() { return std::make_unique<ImageInputs>(); }

} // namespace kiln::faults
