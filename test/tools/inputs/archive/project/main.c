#include "add.h"

#include <stddef.h>

int main(void) {
  float x[4] = {2, 4, 6, 8}, y[4] = {1, 1, 1, 1}, sum[4];
  const add_arguments arguments = {{x, {4}, {1}}, {y, {4}, {1}}, {sum, {4}, {1}}};
  const int64_t grid[3] = {1, 1, 1};
  return add_run(&arguments, grid, NULL) != NULL || sum[3] != 9;
}
