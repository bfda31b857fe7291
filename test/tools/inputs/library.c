/* A C program that launches a kernel of its own and an operator, and looks at the errors: `library KERNELS DEVICE`.
 * Ends with the number of the line that saw something else than it expected, in stderr. */
#include "expect.h"

enum { N = 1000 };

int main(int argc, char **argv) {
  static float x[N], y[N], sum[N];
  int64_t extent = N, grid[3] = {1, 1, 1};
  kiln_tensor tx = vector(x, &extent), ty = vector(y, &extent), tsum = vector(sum, &extent);
  const kiln_argument arguments[3] = {kiln_read(&tx), kiln_write(&ty), kiln_real(32, 0.5)};
  const kiln_argument operands[3] = {kiln_read(&tx), kiln_read(&ty), kiln_write(&tsum)};
  kiln_device *device = NULL, *again = NULL;
  kiln_library *library = NULL;
  const kiln_kernel *kernel = NULL;
  kiln_plan *plan = NULL;
  void *memory = NULL;
  int32_t place = 0;
  const char *config = NULL, *report = NULL;
  const kiln_trial trials[2] = {{"block=1024", {1, 1, 1}}, {"block=512", {2, 1, 1}}};
  int i, is_tensor = 0;
  if (argc != 3)
    return 2;
  for (i = 0; i < N; ++i)
    x[i] = (float)i, y[i] = 1;
  EXPECT(kiln_device_open(argv[2], &device) == KILN_OK && kiln_device_open(argv[2], &again) == KILN_OK);
  EXPECT(device == again);
  kiln_device_close(again);
  kiln_device_place(device, &place, NULL);
  EXPECT(place == 1);
  EXPECT(kiln_library_open(argv[1], &library) == KILN_OK && kiln_library_size(library) == 1);
  EXPECT(kiln_library_find(library, "axpy", &kernel) == KILN_OK && kernel == kiln_library_kernel(library, 0));
  EXPECT(strcmp(kiln_kernel_name(kernel), "axpy") == 0 && kiln_kernel_arguments(kernel) == 3);
  EXPECT(strcmp(kiln_kernel_argument(kernel, 1, &is_tensor), "y") == 0 && is_tensor);
  EXPECT(strcmp(kiln_kernel_argument(kernel, 2, &is_tensor), "alpha") == 0 && !is_tensor);
  EXPECT(!kiln_kernel_argument(kernel, 3, NULL));
  EXPECT(kiln_kernel_config(kernel, NULL, &config) == KILN_OK && strcmp(config, "block=1024") == 0);
  EXPECT(kiln_kernel_config(kernel, "block=64", &config) == KILN_OK && strcmp(config, "block=64") == 0);
  EXPECT_ERROR(kiln_kernel_config(kernel, "BLOCK_SIZE=64", &config),
               "kernel 'axpy' has no config field 'BLOCK_SIZE'; did you mean 'block'? (config fields: block)");
  EXPECT(kiln_tuned(device, kernel, arguments, 3, NULL, &config) == KILN_OK && strcmp(config, "") == 0);
  /* Tuning leaves the tensors as they are. */
  EXPECT(kiln_tune(device, kernel, arguments, 3, trials, 2, 5, 0, NULL, NULL, &config, &report) == KILN_OK);
  EXPECT(strncmp(config, "block=", 6) == 0 && strstr(report, "best of 2 configs") && y[5] == 1);
  if (strstr(argv[1], ".kiln")) { /* the configs that the file has */
    EXPECT(kiln_candidates(device, kernel, NULL, 0, &config) == KILN_OK);
    EXPECT(strcmp(config, "block=1024\nblock=512") == 0);
  } else {
    EXPECT_ERROR(kiln_candidates(device, kernel, NULL, 0, &config), "expected a field with candidates");
  }
  EXPECT_ERROR(kiln_tune(device, kernel, arguments, 3, trials, 0, 5, 0, NULL, NULL, &config, NULL),
               "expected a config to try");
  EXPECT(kiln_launch(device, kernel, grid, arguments, 3, NULL) == KILN_OK && kiln_synchronize(device) == KILN_OK);
  for (i = 0; i < N; ++i)
    EXPECT(y[i] == 1 + 0.5f * (float)i);
  EXPECT(kiln_operate(device, "add", operands, 3, NULL) == KILN_OK && kiln_synchronize(device) == KILN_OK);
  EXPECT(sum[N - 1] == x[N - 1] + y[N - 1]);
  EXPECT(kiln_plan_make(device, "add", operands, 3, NULL, &plan) == KILN_OK);
  for (x[3] = 0; x[3] < 3; ++x[3]) {
    EXPECT(kiln_plan_run(plan) == KILN_OK && kiln_synchronize(device) == KILN_OK && sum[3] == x[3] + y[3]);
  }
  kiln_plan_close(plan);
  /* Memory of the device's own, and order with a stream, of which there is none here. */
  EXPECT(kiln_allocate(device, (int64_t)sizeof x, &memory) == KILN_OK);
  EXPECT(kiln_upload(device, memory, x, (int64_t)sizeof x) == KILN_OK);
  tx.data = memory;
  EXPECT(kiln_device_threads(device, 1) == KILN_OK && kiln_after(device, NULL) == KILN_OK);
  EXPECT(kiln_operate(device, "add", operands, 3, NULL) == KILN_OK && kiln_before(device, NULL) == KILN_OK);
  EXPECT(kiln_synchronize(device) == KILN_OK && sum[7] == x[7] + y[7]);
  EXPECT(kiln_download(device, y, memory, (int64_t)sizeof y) == KILN_OK && y[N - 1] == x[N - 1]);
  kiln_release(device, memory);
  tx.data = x;
  EXPECT_ERROR(kiln_allocate(device, -1, &memory), "expected a number of bytes from 0, but got -1");
  EXPECT_ERROR(kiln_launch(device, kernel, grid, arguments, 2, NULL), "expected 3 arguments, but got 2");
  EXPECT_ERROR(kiln_launch(device, kernel, grid, operands, 3, NULL), "'alpha'");
  const int64_t short_grid[3] = {5}; /* 0 on the other axes */
  EXPECT_ERROR(kiln_launch(device, kernel, short_grid, arguments, 3, NULL),
               "on axes 1 and 2 of the grid, but got 5x0x0");
  EXPECT_ERROR(kiln_launch(device, kernel, grid, arguments, 3, "blok=1"), "'blok'");
  EXPECT_ERROR(kiln_launch(device, NULL, grid, arguments, 3, NULL), "expected a kernel, but got a null pointer");
  EXPECT_ERROR(kiln_operate(device, "ad", operands, 3, NULL), "unknown operator 'ad'; did you mean 'add'? (known: ");
  EXPECT_ERROR(kiln_operate(device, "add", operands, 3, "blok=1"),
               "operator 'add' has no option 'blok', because it has no options");
  EXPECT_ERROR(kiln_operate(device, "layernorm", operands, 3, "epsilon=1"),
               "operator 'layernorm' has no option 'epsilon'; did you mean 'eps'?");
  EXPECT_ERROR(kiln_library_find(library, "axp", &kernel), "unknown kernel 'axp'; did you mean 'axpy'? (known: axpy)");
  kiln_library_close(library);
  kiln_device_close(device);
  printf("%s on %s\n", kiln_version(), argv[2]);
  return 0;
}
