// An array that owns memory on a device.

#pragma once

#include "runtime/Device.h"

namespace kiln {

/// Dense row-major memory of one element type on a device, aligned to 256 bytes and initialised to zeros. It can be
/// moved; it cannot be copied.
class Tensor {
public:
  Tensor() = default;
  Tensor(std::shared_ptr<Device> device, Type type, Shape extents);
  Tensor(Tensor &&) noexcept;
  Tensor &operator=(Tensor &&) noexcept;
  ~Tensor();

  const TensorRef &ref() const { return memory; }
  operator const TensorRef &() const { return memory; }
  Type type() const { return memory.type; }
  const Shape &extents() const { return memory.extents; }
  int64_t count() const { return memory.count(); }
  int64_t bytes() const { return memory.count() * bytesOf(memory.type); }
  void *data() const { return memory.data; }

  /// Copies all elements, in the tensor's own type, from or to the host. Throws Error unless `bytes` is bytes().
  void upload(const void *host, int64_t bytes);
  void download(void *host, int64_t bytes) const;
  /// Copies with conversion between the tensor's type and f32 on the host.
  void uploadFloats(const std::vector<float> &values);
  std::vector<float> downloadFloats() const;
  void fillZero();

private:
  std::shared_ptr<Device> device;
  TensorRef memory;
};

/// Elements of a dense host buffer of `type` as doubles, and the inverse, with rounding to nearest even.
std::vector<double> toDoubles(const void *data, Type type, int64_t count);
void fromDoubles(const std::vector<double> &values, Type type, void *data);

} // namespace kiln
