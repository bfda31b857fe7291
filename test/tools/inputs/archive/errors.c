/* Prints the text for each wrong argument of the kernel scale, on a CPU and, behind `gpu`, on a GPU. */
#include "scale.h"

#include <stdio.h>
#include <string.h>

static float memory[2 * 64 * 64 + 16];

/* Runs with one thing changed. */
#define WRONG(...)                                                                                                     \
  do {                                                                                                                 \
    scale_arguments a = right;                                                                                         \
    int64_t grid[3] = {1, 1, 1};                                                                                       \
    const char *text;                                                                                                  \
    __VA_ARGS__;                                                                                                       \
    text = gpu ? scale_launch(NULL, &a, grid) : scale_run(&a, grid, NULL);                                             \
    puts(text ? text : "no error");                                                                                    \
  } while (0)

int main(int argc, char **argv) {
  const int gpu = argc > 1 && strcmp(argv[1], "gpu") == 0;
  float *const x = memory + (16 - (size_t)memory / 4 % 16) % 16, *const y = x + 64 * 64; /* aligned to 64 bytes */
  const scale_arguments right = {{x, {64, 64}, {64, 1}}, {y, {64, 64}, {64, 1}}, 0.5f, 1};
  WRONG(a.x.extents[1] = 63);
  WRONG(a.y.strides[1] = 2);
  WRONG(a.y.strides[0] = 0);
  WRONG(a.x.extents[0] = -1);
  WRONG(a.x.extents[0] = ((int64_t)1 << 56) + 1);
  WRONG(a.x.extents[0] = (int64_t)1 << 56);
  WRONG(a.x.extents[0] = (int64_t)1 << 50, a.x.strides[0] = (int64_t)1 << 40);
  WRONG(a.x.data = NULL);
  WRONG(a.y.data = x + 63 * 64);
  WRONG(a.y.extents[0] = 63);
  WRONG(a.default_ = 2);
  WRONG(grid[1] = -1);
  WRONG(grid[2] = 0);
  WRONG(grid[0] = (int64_t)1 << 40, grid[1] = (int64_t)1 << 40);
  if (!gpu) {
    puts(scale_run(NULL, NULL, NULL));
    return 0;
  }
  WRONG(a.x.data += 4);
  WRONG(a.x.strides[0] = 65);
  WRONG(a.x.extents[0] = ((int64_t)1 << 30) + 1);
  WRONG(a.x.strides[0] = -64);
  WRONG(grid[1] = 65536);
  WRONG((void)0);
  return 0;
}
