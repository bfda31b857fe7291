// Images of compiled kernels: written and read back, launched with the checks of a traced kernel, and refused with the
// file and the reason.

#include "runtime/Tensor.h"
#include "test/expect_error.h"
#include "test/runtime/images.h"
#include "test/runtime/kernels.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

/// out = x + bias.
void biased(View x, std::optional<View> bias, View out) {
  Tile y = load(x, {0}, {16});
  store(out, {0}, bias ? y + load(*bias, {0}, {16}) : y);
}
const Kernel biasedKernel = kernel("biased", biased, {"x", "bias", "out"});

class Images : public testing::Test {
protected:
  std::shared_ptr<Device> device = Device::open("cpu");
  const TemporaryFolder folder;
  const std::string path = folder / "kernels.kiln";

  Tensor tensor(Shape extents, float value) { return tensor(device, std::move(extents), value); }
  static Tensor tensor(const std::shared_ptr<Device> &device, Shape extents, float value) {
    Tensor result(device, f32, std::move(extents));
    result.uploadFloats(std::vector<float>(result.ref().count(), value));
    return result;
  }

  KernelImage addImage(const std::string &config = "") {
    Tensor x = tensor({40}, 1), y = tensor({40}, 2);
    return makeImage(*device, addKernel, {x, y}, config);
  }
  std::vector<Kernel> stored(const std::vector<KernelImage> &images) const {
    writeText(path, formatImages(images));
    return loadKernels(path);
  }
};

TEST_F(Images, AreReadAsTheyWereWritten) {
  Tensor x = tensor({40}, 1), out = tensor({40}, 2), matrix = tensor({3, 8}, 1);
  const std::string file =
      formatImages({addImage(), addImage("block=4"), makeImage(*device, rowSumsKernel, {matrix, x}),
                    makeImage(*device, biasedKernel, {x, std::nullopt, out})});
  const std::vector<KernelImage> read = readImages(file, path);
  ASSERT_EQ(read.size(), 4u);
  EXPECT_EQ(formatImages(read), file);
  EXPECT_EQ(read[1].configText(), "block=4");
  EXPECT_EQ(read[2].signature.parameters[0].extents, (Shape{Signature::dynamic, 8}));
  EXPECT_EQ(read[3].counts, std::vector<size_t>{0});
}

TEST_F(Images, LaunchWithoutTracing) {
  const std::vector<Kernel> kernels = stored({addImage()});
  ASSERT_EQ(kernels.size(), 1u);
  const CompileStatistics before = compileStatistics();
  Tensor x = tensor({100}, 3), y = tensor({100}, 4);
  const bool wasFrozen = freeze();
  for (int i = 0; i < 2; ++i)
    launch(*device, kernels[0], cdiv(100, 16), {x, y});
  freeze(wasFrozen);
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(100, 11));
  EXPECT_EQ(compileStatistics().compiled, before.compiled);
  EXPECT_EQ(compileStatistics().fromDisk, before.fromDisk + 1);
  EXPECT_EQ(compileStatistics().fromMemory, before.fromMemory + 1);
}

TEST_F(Images, RunInPlans) {
  const std::vector<Kernel> kernels = stored({addImage()});
  Tensor x = tensor({16}, 3), y = tensor({16}, 4);
  run(*device, {.launches = {{.kernel = &kernels[0], .grid = 1, .args = {x, y}},
                             {.kernel = &kernels[0], .grid = 1, .args = {y, x}}}});
  EXPECT_EQ(y.downloadFloats(), std::vector<float>(16, 11));
}

// The tests run on processors of different age, so the second target's code is made up, and must not be loaded.
TEST_F(Images, TakeTheNewestTargetThatTheDeviceRuns) {
  KernelImage fine = addImage(), none = fine, newer = fine;
  none.features.clear();
  none.target = "x86-64-v3";
  none.code.clear();
  newer.features.emplace_back("avx1024");
  newer.target = "x86-64-v9";
  newer.code.clear();
  Tensor x = tensor({16}, 3), y = tensor({16}, 4);
  launch(*device, stored({newer, none, fine})[0], 1, {x, y});
  EXPECT_EQ(x.downloadFloats(), std::vector<float>(16, 7));
  newer.features = {"avx1024"};
  expectError([&] { launch(*device, stored({newer})[0], 1, {x, y}); },
              {"kernel 'add': expected code that device 'cpu' runs, but '" + path +
               "' has code for x86-64-v9 (which requires avx1024)"});
  expectError([&] { launch(*Device::open("cpu:generic"), stored({fine})[0], 1, {x, y}); },
              {"expected code that device 'cpu:generic' runs, but", "has code for cpu"});
}

// LLVM takes instructions of these extensions by itself, and no later CPU needs to have them.
TEST_F(Images, RequireTheInstructionsOfTheirTarget) {
  const auto lack = [&](const std::string &target) {
    const std::vector<std::string> all = cpuFeatures(target), common = cpuFeatures("x86-64-v4");
    std::vector<std::string> own;
    std::copy_if(all.begin(), all.end(), std::back_inserter(own), [&](const std::string &each) {
      return std::find(common.begin(), common.end(), each) == common.end();
    });
    return own;
  };
  EXPECT_EQ(lack("x86-64-v3"), std::vector<std::string>());
  EXPECT_EQ(lack("bdver4"), (std::vector<std::string>{"fma4", "xop", "tbm"}));
  const std::vector<std::string> latest = cpuFeatures("diamondrapids");
  for (const char *feature : {"avx10.2", "apxf", "amx-bf16", "avx512f"})
    EXPECT_EQ(std::count(latest.begin(), latest.end(), feature), 1) << feature;
}

TEST_F(Images, AreOnGpusForEqualOrNewerOnes) {
  const std::shared_ptr<Device> older = Device::open("simulator:sm_80"), newer = Device::open("simulator:sm_90a");
  const auto imageFor = [](const std::shared_ptr<Device> &gpu, const std::string &target) {
    Tensor x = tensor(gpu, {48}, 1), y = tensor(gpu, {48}, 2);
    return makeImage(*gpu, addKernel, {x, y}, "", target);
  };
  const auto sumOn = [](const std::shared_ptr<Device> &gpu, const Kernel &kernel) {
    Tensor x = tensor(gpu, {64}, 3), y = tensor(gpu, {64}, 4);
    launch(*gpu, kernel, 4, {x, y});
    gpu->synchronize();
    return x.downloadFloats();
  };
  const KernelImage old = imageFor(older, "sm_80"), young = imageFor(newer, "sm_90a");
  EXPECT_EQ(sumOn(newer, stored({old})[0]), std::vector<float>(64, 7));
  EXPECT_EQ(sumOn(newer, stored({old, young})[0]), std::vector<float>(64, 7));
  EXPECT_EQ(sumOn(older, stored({young, old})[0]), std::vector<float>(64, 7));
  expectError([&] { sumOn(older, stored({young})[0]); },
              {"expected code that device 'simulator:sm_80' runs, but '" + path + "' has code for sm_90a"});
  expectError([&] { sumOn(Device::open("simulator:sm_100a"), stored({young})[0]); },
              {"expected code that device 'simulator:sm_100a' runs, but '" + path + "' has code for sm_90a"});
  expectError([&] { sumOn(device, stored({young, old})[0]); },
              {"expected code that device 'cpu' runs, but '" + path + "' has code for sm_90a, sm_80"});
}

TEST_F(Images, HaveTheirFirstConfigByDefault) {
  const Kernel kernel = stored({addImage("block=4"), addImage("block=8")})[0];
  EXPECT_EQ(kernel.configText(""), "block=4");
  Tensor x = tensor({16}, 3), y = tensor({16}, 4);
  launch(*device, kernel, 1, {x, y});
  launch(*device, kernel, 1, {x, y}, "block=8");
  std::vector<float> want(16, 3);
  std::fill_n(want.begin(), 8, 7.0f);
  std::fill_n(want.begin(), 4, 11.0f);
  EXPECT_EQ(x.downloadFloats(), want);
  expectError([&] { launch(*device, kernel, 1, {x, y}, "block=16"); },
              {"kernel 'add': expected a config that '" + path +
               "' has for device 'cpu', 'block=4' or 'block=8', but got 'block=16'"});
  expectError([&] { launch(*device, kernel, 1, {x, y}, "bm=16"); }, {"kernel 'add' has no config field 'bm'"});
}

TEST_F(Images, AreChosenByTheArguments) {
  Tensor y = tensor({8}, 0), narrow = tensor({8, 4}, 1), wide = tensor({8, 40}, 1), other = tensor({8, 5}, 1);
  const Kernel kernel =
      stored({makeImage(*device, rowSumsKernel, {narrow, y}), makeImage(*device, rowSumsKernel, {wide, y})})[0];
  for (int i = 0; i < 2; ++i) {
    launch(*device, kernel, 8, {wide, y});
    EXPECT_EQ(y.downloadFloats(), std::vector<float>(8, 40));
    launch(*device, kernel, 8, {narrow, y});
    EXPECT_EQ(y.downloadFloats(), std::vector<float>(8, 4));
  }
  expectError([&] { launch(*device, kernel, 8, {other, y}); },
              {"kernel 'row_sums': expected 'x' to be f32[?x4], as it was compiled for, but got f32[8x5]\nnote: '" +
               path + "' has it for (x f32[?x4], y f32[?]) and (x f32[?x40], y f32[?])"});
  // The checks of every launch come first.
  expectError([&] { launch(*device, kernel, 8, {wide}); }, {"expected 2 arguments, but got 1"});
  expectError([&] { launch(*device, kernel, 8, {wide, 1.0f}); }, {"expected 'y' to be a tensor, but got"});
}

TEST_F(Images, AreRefusedForOtherStrides) {
  const Kernel kernel = stored({addImage()})[0];
  Tensor x = tensor({80}, 3), y = tensor({40}, 4);
  TensorRef even = x.ref();
  even.extents = {40}, even.strides = {2};
  expectError(
      [&] { launch(*device, kernel, 3, {even, y}); },
      {"kernel 'add': expected 'x' to have stride 1 in dimension 0, as it was compiled for, but got f32[40] with "
       "strides 2\nnote: '"});
}

// Loading a file again and again needs no more memory: the code of kernels that are gone goes at the next compilation.
TEST_F(Images, AreFreedAfterTheirLastKernel) {
  Tensor x = tensor({40}, 3), y = tensor({40}, 4);
  std::vector<Kernel> kernels = stored({addImage()});
  const std::weak_ptr<const Executable> first = compile(*device, kernels[0], {x, y});
  const std::vector<Kernel> copies = kernels;
  kernels = loadKernels(path);
  compile(*device, kernels[0], {x, y});
  EXPECT_FALSE(first.expired()); // the copy has it
  const std::weak_ptr<const Executable> second = compile(*device, kernels[0], {x, y});
  kernels = loadKernels(path);
  compile(*device, kernels[0], {x, y});
  EXPECT_FALSE(first.expired());
  EXPECT_TRUE(second.expired());
}

TEST_F(Images, HaveTheNumbersOfViewsThatTheyWereCompiledFor) {
  Tensor x = tensor({16}, 3), bias = tensor({16}, 4), out = tensor({16}, 0);
  const Kernel kernel = stored({makeImage(*device, biasedKernel, {x, bias, out})})[0];
  launch(*device, kernel, 1, {x, bias, out});
  EXPECT_EQ(out.downloadFloats(), std::vector<float>(16, 7));
  expectError([&] { launch(*device, kernel, 1, {x, std::nullopt, out}); },
              {"kernel 'biased': expected views in the numbers that it was compiled for, but got 2 arguments\nnote: '",
               "has it for (x f32[?], bias f32[?], out f32[?])"});
}

TEST_F(Images, CannotBeTraced) {
  const Kernel kernel = stored({addImage()})[0];
  Tensor x = tensor({16}, 3), y = tensor({16}, 4);
  const auto expected = {"kernel 'add': expected its source, because it has to be compiled, but '" + path +
                         "' has only compiled kernels"};
  expectError([&] { codeOf(*device, {.kernel = &kernel, .grid = 1, .args = {x, y}}); }, expected);
  Tensor xs = tensor({2, 16}, 3);
  expectError([&] { launch(*device, vmap(kernel, {0, std::nullopt}), 1, {xs, y}); }, expected);
}

TEST_F(Images, OfSeveralFilesCanBeConcatenated) {
  Tensor matrix = tensor({3, 8}, 1), sums = tensor({3}, 1);
  writeText(path, formatImages({addImage(), addImage("block=4")}) +
                      formatImages({makeImage(*device, rowSumsKernel, {matrix, sums})}));
  const std::vector<Kernel> kernels = loadKernels(path);
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "add");
  EXPECT_EQ(kernels[1].name, "row_sums");
  KernelImage other = addImage();
  other.parameters[1].name = "z";
  expectError(
      [&] { stored({addImage(), other}); },
      {"expected equal parameters and fields in all images of kernel 'add' in '" + path + "', but they differ"});
}

// --- Damage ----------------------------------------------------------------------------------------------------------

TEST_F(Images, AreRefusedWhenTheyAreCut) {
  const std::string file = formatImages({addImage(), addImage("block=4")});
  for (size_t size = 0; size < file.size(); size += size < 400 || file.size() - size < 20 ? 1 : 97)
    expectError([&] { readImages(file.substr(0, size), path); },
                {"expected '" + path + "' to be a file of kernels that kilnc --emit=image made, but it "});
  expectError([&] { readImages("", path); }, {"but it is empty"});
  expectError([&] { readImages(file.substr(0, 9), path); }, {"but it ends within a header"});
  expectError([&] { readImages(file.substr(0, file.size() / 4), path); }, {"but it ends within a kernel"});
}

TEST_F(Images, AreRefusedWhenOneOfThemIsMissing) {
  const std::string one = formatImages({addImage()}), three = formatImages({addImage(), addImage(), addImage()});
  const size_t size = one.size();
  ASSERT_EQ(three.size(), 3 * size);
  expectError([&] { readImages(three.substr(0, 2 * size), path); }, {"but it lacks 1 at its end"});
  expectError([&] { readImages(three.substr(0, size) + three.substr(2 * size), path); },
              {"but it lacks kernels in its middle"});
}

TEST_F(Images, AreRefusedWhenAByteIsAltered) {
  const std::string file = formatImages({addImage()});
  for (size_t at = 0; at < file.size(); at += at < 400 ? 1 : 31) {
    std::string altered = file;
    altered[at] = static_cast<char>(altered[at] ^ 4);
    expectError([&] { readImages(altered, path); }, {"expected '" + path + "' to be a file of kernels", ", but it "});
  }
  expectError([&] { readImages(file + "x", path); }, {"but it has another form"});
}

TEST_F(Images, OfOtherVersionsAndOtherFilesAreRefused) {
  std::string older = formatImages({addImage()}), newer = older, content = takeContent(older);
  older[7] = '3';
  newer[7] = '5';
  for (const std::string &file : {older, newer})
    expectError([&] { readImages(file, path); }, {"but it was made by another version of Kiln"});
  // The identity of the ABI, in a record that is whole.
  content[8] = content[8] == '0' ? '1' : '0';
  expectError([&] { readImages(withContent(older, content), path); }, {"but it was made by another version of Kiln"});
  expectError(
      [&] {
        readImages("\x7f"
                   "ELF and so on",
                   path);
      },
      {"but it has another form"});
  expectError([&] { loadKernels(folder / "none.kiln"); }, {"none.kiln", "there is none"});
}

// Facts that would be used as sizes, indices or symbols, in records that are whole.
TEST_F(Images, AreRefusedWhenTheirFactsContradictEachOther) {
  const std::vector<void (*)(KernelImage &)> changes = {
      [](KernelImage &image) { image.kernel = "a.b"; },
      [](KernelImage &image) { image.counts = {1}; },
      [](KernelImage &image) { image.parameters[1].kind = Kernel::Parameter::Kind::scalar; },
      [](KernelImage &image) { image.parameters[1].kind = Kernel::Parameter::Kind::list; },
      [](KernelImage &image) { image.parameters.pop_back(); },
      [](KernelImage &image) { image.signature.parameters[0].strides.push_back(1); },
      [](KernelImage &image) { image.signature.parameters[0].type = static_cast<Type>(std::size(allTypes)); },
      [](KernelImage &image) { image.signature.parameters[0].alignment = 128; },
      [](KernelImage &image) { image.signature.disjoint = {{0, 2}}; },
      [](KernelImage &image) { image.signature.disjoint = {{-1, 0}}; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    KernelImage image = addImage();
    changes[i](image);
    const std::string file = formatImages({image});
    expectError([&] { readImages(file, path + std::to_string(i)); },
                {"expected '" + path + std::to_string(i) + "' to be a file of kernels", "but it is damaged"});
  }
}

// Contents with a hash that is right, as no accident makes them.
TEST_F(Images, OfAnyContentAreReadOrRefused) {
  const std::string file = formatImages({addImage()}), content = takeContent(file);
  const size_t facts = content.size() - addImage().code.size();
  int refused = 0;
  for (size_t at = 0; at < facts; ++at)
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string altered = content;
      altered[at] = value;
      try {
        readImages(withContent(file, altered), path);
      } catch (const Error &error) {
        EXPECT_EQ(error.fault, Fault::user);
        ++refused;
      }
    }
  EXPECT_GT(refused, 100);
}

} // namespace
