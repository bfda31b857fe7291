// A program that uses the language, the runtime and a built-in operator, by either spelling of their headers.

#include "kernels/softmax.h"
#include "runtime/Compile.h"
#include <kiln/runtime/Compile.h>
#include <kiln/runtime/Tensor.h>

int main() {
  const auto device = kiln::Device::open("cpu");
  kiln::Tensor x(device, kiln::f32, {4, 8}), y(device, kiln::f32, {4, 8});
  kiln::run(*device, kiln::planSoftmax(device->target(), x, y));
  device->synchronize();
}
