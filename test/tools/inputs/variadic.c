/* A C program that leaves out an optional view and gives lists of views: `variadic KERNELS DEVICE`. Ends with the
 * number of the line that saw something else than it expected, in stderr. */
#include "expect.h"

enum { N = 8 };

int main(int argc, char **argv) {
  static float x[N] = {1, 2, 3}, y[N] = {10, 20, 30}, out[N];
  int64_t extent = N, grid[3] = {2, 1, 1};
  kiln_tensor tx = vector(x, &extent), ty = vector(y, &extent), tout = vector(out, &extent);
  kiln_argument biased[3], total[3], items[2];
  kiln_device *device = NULL;
  kiln_library *library = NULL;
  const kiln_kernel *bias = NULL, *sum = NULL;
  const char *config = NULL;
  int kind = 0;
  if (argc != 3)
    return 2;
  EXPECT(kiln_device_open(argv[2], &device) == KILN_OK && kiln_library_open(argv[1], &library) == KILN_OK);
  EXPECT(kiln_library_find(library, "biased", &bias) == KILN_OK);
  EXPECT(kiln_library_find(library, "total", &sum) == KILN_OK);
  EXPECT(strcmp(kiln_kernel_argument(bias, 0, &kind), "x") == 0 && kind == 1);
  EXPECT(strcmp(kiln_kernel_argument(bias, 1, &kind), "bias") == 0 && kind == 2);
  EXPECT(strcmp(kiln_kernel_argument(sum, 0, &kind), "xs") == 0 && kind == 3);
  EXPECT(strcmp(kiln_kernel_argument(sum, 1, &kind), "by") == 0 && kind == 0);

  biased[0] = kiln_read(&tx);
  biased[1] = kiln_none();
  biased[2] = kiln_write(&tout);
  EXPECT(kiln_launch(device, bias, grid, biased, 3, NULL) == KILN_OK && kiln_synchronize(device) == KILN_OK);
  EXPECT(out[0] == 1 && out[2] == 3);
  biased[1] = kiln_read(&ty);
  EXPECT(kiln_launch(device, bias, grid, biased, 3, "block=4") == KILN_OK && kiln_synchronize(device) == KILN_OK);
  EXPECT(out[0] == 11 && out[2] == 33);
  EXPECT(kiln_tuned(device, bias, biased, 3, NULL, &config) == KILN_OK && strcmp(config, "") == 0);

  items[0] = kiln_read(&tx);
  items[1] = kiln_read(&ty);
  total[0] = kiln_list(items, 2);
  total[1] = kiln_real(32, 2);
  total[2] = kiln_write(&tout);
  EXPECT(kiln_launch(device, sum, grid, total, 3, NULL) == KILN_OK && kiln_synchronize(device) == KILN_OK);
  EXPECT(out[0] == 22 && out[2] == 66);
  total[0] = kiln_list(items, 1);
  EXPECT(kiln_launch(device, sum, grid, total, 3, NULL) == KILN_OK && kiln_synchronize(device) == KILN_OK);
  EXPECT(out[0] == 2 && out[2] == 6);
  total[0] = kiln_list(NULL, 0);
  EXPECT(kiln_launch(device, sum, grid, total, 3, NULL) == KILN_OK && kiln_synchronize(device) == KILN_OK);
  EXPECT(out[0] == 0);

  /* What may not be written is that, wherever its argument is. */
  biased[1] = kiln_none();
  biased[2] = kiln_read(&tout);
  EXPECT_ERROR(kiln_launch(device, bias, grid, biased, 3, NULL),
               "may be written for 'out', but got a read-only tensor");
  total[0] = kiln_list(items, 2);
  total[2] = kiln_read(&tout);
  EXPECT_ERROR(kiln_launch(device, sum, grid, total, 3, NULL), "may be written for 'out', but got a read-only tensor");

  biased[1] = kiln_integer(64, 3);
  EXPECT_ERROR(kiln_launch(device, bias, grid, biased, 3, NULL),
               "kernel 'biased': expected 'bias' to be a tensor or nothing, but got i64 scalar");
  biased[0] = kiln_none();
  biased[1] = kiln_none();
  EXPECT_ERROR(kiln_launch(device, bias, grid, biased, 3, NULL), "expected 'x' to be a tensor, but got nothing");
  total[0] = kiln_none();
  EXPECT_ERROR(kiln_launch(device, sum, grid, total, 3, NULL),
               "expected 'xs' to be a list of tensors, but got nothing");
  items[1] = kiln_none();
  total[0] = kiln_list(items, 2);
  EXPECT_ERROR(kiln_launch(device, sum, grid, total, 3, NULL), "expected 'xs[1]' to be a tensor, but got nothing");
  items[1] = kiln_list(items, 1);
  EXPECT_ERROR(kiln_launch(device, sum, grid, total, 3, NULL), "argument 0[1]: expected a tensor, but got a list");
  total[0] = kiln_list(NULL, 2);
  EXPECT_ERROR(kiln_launch(device, sum, grid, total, 3, NULL), "argument 0: expected a list of 2, but got null");
  tx.rank = 6;
  total[0] = kiln_list(items, 1);
  EXPECT_ERROR(kiln_launch(device, sum, grid, total, 3, NULL), "argument 0[0]: expected a tensor of rank 0 to 5");
  EXPECT_ERROR(kiln_operate(device, "softmax", total, 2, NULL), "argument 0[0]: expected a tensor of rank 0 to 5");
  tx.rank = 1;
  EXPECT_ERROR(kiln_operate(device, "softmax", total, 2, NULL), "expected a tensor for 'x', but got a list of 1");
  kiln_library_close(library);
  kiln_device_close(device);
  printf("done on %s\n", argv[2]);
  return 0;
}
