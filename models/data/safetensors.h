// The safetensors format: eight bytes with the header's length, a JSON header (name → dtype, shape, data_offsets), then
// the tensors' bytes without gaps. Written from host memory, and read with every size checked.

#pragma once

#include "dialect/dsl/Types.h"
#include "runtime/Files.h"

#include <functional>
#include <map>
#include <memory>

namespace kiln {

/// A tensor to write, in host memory or anywhere it can be read from, one at a time.
struct HostTensor {
  /// Returns its bytes, which may be written into `place`; the old contents of `place` do not matter.
  using Read = std::function<const void *(std::vector<char> &place)>;
  HostTensor(std::string name, Type type, Shape extents, const void *data)
      : HostTensor(std::move(name), type, std::move(extents), [data](std::vector<char> &) { return data; }) {}
  HostTensor(std::string name, Type type, Shape extents, Read read)
      : name(std::move(name)), type(type), extents(std::move(extents)), read(std::move(read)) {}

  int64_t bytes() const;

  std::string name;
  Type type;
  Shape extents;
  Read read;
};

/// Metadata with a checksum for each of `tensors`. Safetensors verifies the checksums of a file when it reads.
std::map<std::string, std::string> computeChecksums(const std::vector<HostTensor> &tensors);
/// As above, with placeholders of the length of a checksum, for use before the tensors are read.
std::map<std::string, std::string> blankChecksums(const std::vector<HostTensor> &tensors);

/// Writes and syncs `path`, in the order given. Each tensor is read once, and no two are in memory at once. Returns
/// their checksums.
std::map<std::string, std::string> writeSafetensors(const std::string &path, const std::vector<HostTensor> &tensors,
                                                    const std::map<std::string, std::string> &metadata = {});
/// Gives such a file other metadata, whose texts are as long, in place of those that it was written with, and syncs it.
void replaceMetadata(const std::string &path, const std::vector<HostTensor> &tensors,
                     const std::map<std::string, std::string> &metadata);

/// A file opened for reading. Opening checks that it is complete. Throws Error that names the file, the expected and
/// the actual value.
class Safetensors {
public:
  explicit Safetensors(const std::string &path);

  /// Copies the tensor `name` to `to` as `type`; floating-point numbers of another type are converted, rounding to
  /// nearest even. Throws Error if it is missing, has another shape, or is of a type without conversion.
  void read(const std::string &name, Type type, const Shape &extents, void *to) const;
  bool has(const std::string &name) const { return entries.count(name) > 0; }
  /// Reads every tensor that has a checksum. Throws Error that names the first damaged one.
  void verify() const;
  std::vector<std::string> names() const;
  const std::map<std::string, std::string> &metadata() const { return texts; }

private:
  struct Entry {
    std::string type;
    Shape extents;
    int64_t begin, end; // within the data
  };
  void parse(const std::string &header);
  void verifyPlaces() const;
  void verify(const std::string &name, std::string_view bytes) const;

  std::string path;
  std::shared_ptr<const InputFile> file;
  int64_t dataBegin = 0, dataBytes = 0;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> texts;
};

} // namespace kiln
