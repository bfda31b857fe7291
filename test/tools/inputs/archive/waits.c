/* Runs the kernel waits: each program sets its flag after the one before. */

#include "waits.h"

#include <stdio.h>

int main(void) {
  int32_t flags[5] = {0};
  const int64_t grid[3] = {4, 1, 1};
  waits_arguments arguments = {{flags, {4}, {1}}};
  const char *const error = waits_run(&arguments, grid, NULL);
  printf("%s: %d %d %d %d %d\n", error ? error : "no error", flags[0], flags[1], flags[2], flags[3], flags[4]);
  return 0;
}
