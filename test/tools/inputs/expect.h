/* What C programs that try libkiln share. An expectation that fails ends main() with 1; stderr has the number of its
 * line. */
#pragma once

#include <kiln/kiln.h>

#include <stdio.h>
#include <string.h>

#define EXPECT(condition)                                                                                              \
  if (!(condition)) {                                                                                                  \
    fprintf(stderr, "%d: %s\n", __LINE__, kiln_error());                                                               \
    return 1;                                                                                                          \
  }
#define EXPECT_ERROR(call, text) EXPECT((call) == KILN_USER && strstr(kiln_error(), text))

/* A vector of f32 on the host. */
static kiln_tensor vector(float *data, int64_t *extent) {
  kiln_tensor tensor = {0};
  tensor.data = data;
  tensor.device_type = 1;
  tensor.rank = 1;
  tensor.type_code = 2;
  tensor.type_bits = 32;
  tensor.lanes = 1;
  tensor.shape = extent;
  return tensor;
}
