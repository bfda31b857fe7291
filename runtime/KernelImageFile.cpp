// Writes and reads the files of images. One function lists the parts of an image in their order, for both.

#include "runtime/KernelImage.h"
#include "runtime/Record.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace kiln {

namespace {
/// Appends each part to `bytes`: a number as 8 bytes, a text as its length and its characters.
struct Writer {
  std::string bytes;
  template <class Number> void number(Number value, int64_t, int64_t) {
    const auto bits = static_cast<int64_t>(value);
    bytes.append(reinterpret_cast<const char *>(&bits), sizeof bits);
  }
  template <class Text> void text(const Text &value) {
    number(static_cast<int64_t>(value.size()), 0, 0);
    bytes.append(value.data(), value.size());
  }
  template <class T, class Each> void list(const std::vector<T> &values, Each each) {
    number(static_cast<int64_t>(values.size()), 0, 0);
    std::for_each(values.begin(), values.end(), each);
  }
};

/// Takes each part from `bytes`. Throws Error with the reason if they end before it, and for a number out of range.
struct Reader {
  std::string_view bytes;
  template <class Number> void number(Number &value, int64_t least, int64_t most) {
    int64_t bits = 0;
    std::memcpy(&bits, take(sizeof bits).data(), sizeof bits);
    if (bits < least || bits > most)
      throw Error("it is damaged");
    value = static_cast<Number>(bits);
  }
  template <class Text> void text(Text &value) {
    int64_t length = 0;
    number(length, 0, std::numeric_limits<int64_t>::max());
    const std::string_view content = take(static_cast<size_t>(length));
    value.assign(content.begin(), content.end());
  }
  template <class T, class Each> void list(std::vector<T> &values, Each each) {
    int64_t count = 0;
    number(count, 0, static_cast<int64_t>(bytes.size()));
    for (int64_t i = 0; i < count; ++i)
      each(values.emplace_back());
  }

private:
  std::string_view take(size_t count) {
    if (count > bytes.size())
      throw Error("it is damaged");
    const std::string_view taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  }
};
} // namespace

static constexpr int64_t anyLeast = std::numeric_limits<int64_t>::min(), anyMost = std::numeric_limits<int64_t>::max();
static constexpr int64_t mostCount = 1 << 20; // of arguments, fields, images and the like

/// Passes all parts of a signature that do not follow from others. Slots do.
template <class Stream, class Signature> static void pass(Stream &stream, Signature &signature) {
  stream.text(signature.where);
  stream.list(signature.parameters, [&](auto &parameter) {
    stream.text(parameter.name);
    stream.number(parameter.isView, 0, 1);
    stream.number(parameter.type, 0, std::size(allTypes) - 1);
    stream.list(parameter.extents, [&](auto &extent) { stream.number(extent, anyLeast, anyMost); });
    stream.list(parameter.strides, [&](auto &stride) { stream.number(stride, anyLeast, anyMost); });
    stream.number(parameter.alignment, 1, 64);
    for (auto *const fact :
         {&parameter.stridesBy16, &parameter.extentBy16, &parameter.fits32, &parameter.read, &parameter.written})
      stream.number(*fact, 0, 1);
  });
  stream.list(signature.disjoint, [&](auto &pair) {
    stream.number(pair.first, 0, mostCount);
    stream.number(pair.second, 0, mostCount);
  });
  stream.list(signature.equalExtents, [&](auto &equal) {
    for (auto *const number : {&equal.first, &equal.firstAxis, &equal.second, &equal.secondAxis})
      stream.number(*number, 0, mostCount);
  });
}

/// Passes all parts of an image but its key.
template <class Stream, class Image> static void passImage(Stream &stream, Image &image) {
  stream.text(image.kernel);
  stream.text(image.target);
  stream.list(image.features, [&](auto &feature) { stream.text(feature); });
  stream.list(image.config, [&](auto &setting) {
    stream.text(setting.name);
    stream.text(setting.value);
    stream.text(setting.about);
  });
  stream.list(image.parameters, [&](auto &parameter) {
    stream.number(parameter.kind, 0, static_cast<int64_t>(Kernel::Parameter::Kind::scalar));
    stream.text(parameter.name);
    stream.text(parameter.about);
  });
  stream.list(image.counts, [&](auto &count) { stream.number(count, 0, mostCount); });
  pass(stream, image.signature);
  stream.text(image.code);
}

/// The slots of an argument block, in the order of lowering/Abi.h.
static std::vector<abi::Slot> listSlots(const Signature &signature) {
  std::vector<abi::Slot> slots;
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const Signature::Parameter &parameter = signature.parameters[i];
    const int argument = static_cast<int>(i);
    slots.push_back({parameter.isView ? abi::Slot::pointer : abi::Slot::scalar, argument, 0});
    for (const auto &[values, kind] :
         {std::pair(&parameter.extents, abi::Slot::extent), std::pair(&parameter.strides, abi::Slot::stride)})
      for (size_t d = 0; d < values->size(); ++d)
        if ((*values)[d] == Signature::dynamic)
          slots.push_back({kind, argument, static_cast<int>(d)});
  }
  return slots;
}

// --- Checks ----------------------------------------------------------------------------------------------------------

static bool isIdentifier(const std::string &name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

static bool isFine(const Signature::Parameter &parameter) {
  constexpr size_t maxRank = 5;
  const size_t rank = parameter.extents.size();
  return parameter.strides.size() == rank && (parameter.isView ? rank >= 1 && rank <= maxRank : rank == 0);
}

/// Whether a kernel of these parameters has this signature, with as many views as `counts` says.
static bool isFine(const KernelImage &image) {
  const std::vector<Signature::Parameter> &parameters = image.signature.parameters;
  std::vector<bool> areViews; // by the registered kernel
  size_t next = 0;            // in counts
  for (const Kernel::Parameter &parameter : image.parameters) {
    if (parameter.isVariadic() && next == image.counts.size())
      return false;
    const size_t count = parameter.isVariadic() ? image.counts[next++] : 1;
    if (count > parameters.size() - areViews.size())
      return false;
    areViews.insert(areViews.end(), count, parameter.isView());
  }
  const auto isView = [&](int index) {
    return index < static_cast<int>(parameters.size()) && parameters[index].isView;
  };
  const auto hasAxis = [&](int index, int axis) {
    return isView(index) && axis < static_cast<int>(parameters[index].extents.size());
  };
  return isIdentifier(image.kernel) && next == image.counts.size() &&
         std::ranges::equal(areViews, parameters, {}, {}, &Signature::Parameter::isView) &&
         std::all_of(parameters.begin(), parameters.end(), [](const auto &each) { return isFine(each); }) &&
         std::all_of(image.signature.disjoint.begin(), image.signature.disjoint.end(),
                     [&](const auto &pair) { return isView(pair.first) && isView(pair.second); }) &&
         std::all_of(image.signature.equalExtents.begin(), image.signature.equalExtents.end(), [&](const auto &equal) {
           return hasAxis(equal.first, equal.firstAxis) && hasAxis(equal.second, equal.secondAxis);
         });
}

// --- Files -----------------------------------------------------------------------------------------------------------

std::string formatImages(const std::vector<KernelImage> &images) {
  std::string file;
  for (size_t i = 0; i < images.size(); ++i) {
    if (images[i].signature.problems != 1 || images[i].signature.slots != listSlots(images[i].signature))
      throw Error(fmt::format("kernel '{}': its signature has no form in a file", images[i].kernel), Fault::internal);
    Writer content;
    content.text(std::string_view(imageIdentity));
    content.number(static_cast<int64_t>(images.size() - 1 - i), 0, 0); // the images that follow
    passImage(content, images[i]);
    file += makeRecord(images[i].key, content.bytes);
  }
  return file;
}

/// Reads one image; the number of those that must follow.
static int64_t readImage(std::string_view &bytes, KernelImage &image) {
  const Record record = takeRecord(bytes);
  image.key = record.key;
  Reader reader{record.content};
  std::string identity;
  reader.text(identity);
  if (identity != imageIdentity)
    throw Error("it was made by another version of Kiln");
  int64_t follow = 0;
  reader.number(follow, 0, anyMost);
  passImage(reader, image);
  if (!reader.bytes.empty() || !isFine(image))
    throw Error("it is damaged");
  image.signature.slots = listSlots(image.signature);
  return follow;
}

std::vector<KernelImage> readImages(std::string_view bytes, const std::string &path) {
  std::vector<KernelImage> images;
  try {
    int64_t follow = 0;
    do {
      if (bytes.empty())
        throw Error(images.empty() ? "it is empty" : fmt::format("it lacks {} at its end", follow));
      const int64_t due = follow;
      follow = readImage(bytes, images.emplace_back());
      if (due > 0 && follow != due - 1)
        throw Error("it lacks kernels in its middle");
    } while (!bytes.empty() || follow > 0);
  } catch (const Error &reason) {
    throw Error(
        fmt::format("expected '{}' to be a file of kernels that kilnc --emit=image made, but {}", path, reason.what()));
  }
  return images;
}

} // namespace kiln
