/* A program of archives that were made for a bias, for none, and for a list of two. Prints `done`; the status is the
 * number of the line that saw something else than it expected. */
#include "biased.h"
#include "plain.h"
#include "total.h"

#include <stdio.h>
#include <string.h>

int main(void) {
  float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40}, out[4];
  const biased_arguments with = {{x, {4}, {1}}, {y, {4}, {1}}, {out, {4}, {1}}};
  const plain_arguments without = {{x, {4}, {1}}, {out, {4}, {1}}};
  total_arguments list = {{x, {4}, {1}}, {y, {4}, {1}}, 0.5f, {out, {4}, {1}}};
  const int64_t grid[3] = {1, 1, 1};
  const char *error;
  if (biased_run(&with, grid, NULL) || out[1] != 22)
    return __LINE__;
  if (plain_run(&without, grid, NULL) || out[1] != 2)
    return __LINE__;
  if (total_run(&list, grid, NULL) || out[1] != 11)
    return __LINE__;
  list.xs_1.strides[0] = 2;
  error = total_run(&list, grid, NULL);
  if (!error || !strstr(error, "kernel 'total': expected 'xs[1]' to have stride 1"))
    return __LINE__;
  puts("done");
  return 0;
}
