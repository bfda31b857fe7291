#include "axpy.h"

#include <stddef.h>

int main(void) {
  float x[4] = {2, 4, 6, 8}, y[4] = {1, 1, 1, 1};
  const axpy_arguments arguments = {{x, {4}, {1}}, {y, {4}, {1}}, 0.5f};
  const int64_t grid[3] = {1, 1, 1};
  return axpy_run(&arguments, grid, NULL) != NULL || y[3] != 5;
}
