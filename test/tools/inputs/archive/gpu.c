/* Launches two kernels of archives on the GPU of the driver that KILN_CUDA_DRIVER names. The status is the number of
 * the line that saw something else than it expected. */
#define _GNU_SOURCE
#include "look.h"
#include "scale.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { M = 20, D = 64 };
typedef unsigned long long address;

static int (*find(const char *name))() {
  static void *library;
  int (*call)();
  if (!library)
    library = dlopen(getenv("KILN_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
  *(void **)&call = dlsym(library, name);
  return call;
}
#define CALL(name, types, ...)                                                                                         \
  if (((int(*) types)find(#name))(__VA_ARGS__) != 0)                                                                   \
  return __LINE__

int main(void) {
  static float values[M * D], result[M * D];
  struct {
    int kind, handles, place, device;
    void *security;
    size_t most;
    unsigned short usage;
    unsigned char reserved[54];
  } properties = {1, 0, 1, 0, NULL, 0, 0, {0}};
  void *context, *stream, *pool;
  address x, y;
  const size_t bytes = sizeof values;
  const int64_t grid[3] = {M / 4, 1, 1}, one[3] = {1, 1, 1};
  scale_arguments arguments = {{NULL, {M, D}, {D, 1}}, {NULL, {M, D}, {D, 1}}, 0.5f, 1};
  look_arguments seen = {{NULL, {4}, {1}}, {NULL, {4}, {1}}};
  const char *error = scale_launch(NULL, &arguments, grid);
  int i, round;
  puts(error ? error : "no error"); /* no memory */
  CALL(cuInit, (unsigned), 0);
  CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
  arguments.x.data = values; /* which no GPU sees: the context is missing first */
  for (i = 0; (size_t)(arguments.x.data + i) % 64; ++i)
    ;
  arguments.x.data += i;
  arguments.y.data = (float *)((size_t)arguments.x.data + (1 << 20));
  error = scale_launch(NULL, &arguments, grid);
  puts(error ? error : "no error");
  CALL(cuCtxSetCurrent, (void *), context);
  CALL(cuStreamCreate, (void **, unsigned), &stream, 1);
  CALL(cuMemPoolCreate, (void **, const void *), &pool, &properties);
  CALL(cuMemAllocFromPoolAsync, (address *, size_t, void *, void *), &x, bytes, pool, stream);
  CALL(cuMemAllocFromPoolAsync, (address *, size_t, void *, void *), &y, bytes, pool, stream);
  for (i = 0; i < M * D; ++i)
    values[i] = (float)i;
  CALL(cuMemcpyHtoDAsync_v2, (address, const void *, size_t, void *), x, values, bytes, stream);
  arguments.x.data = (const float *)x;
  arguments.y.data = (float *)y;
  for (round = 0; round < 2; ++round) { /* the second one finds the module loaded */
    arguments.alpha = round ? 2.0f : 0.5f;
    if ((error = scale_launch(stream, &arguments, grid)))
      return puts(error), __LINE__;
    CALL(cuMemcpyDtoHAsync_v2, (void *, address, size_t, void *), result, y, bytes, stream);
    CALL(cuStreamSynchronize, (void *), stream);
    for (i = 0; i < M * D; ++i)
      if (result[i] != arguments.alpha * values[i])
        return __LINE__;
  }
  seen.x.data = (const float *)x;
  seen.y.data = (float *)y;
  for (round = 0; round < 2; ++round) {
    error = look_launch(stream, &seen, one);
    puts(error ? error : "no error");
    values[2] = -0.25f;
    CALL(cuMemcpyHtoDAsync_v2, (address, const void *, size_t, void *), x, values, bytes, stream);
  }
  puts("done");
  return 0;
}
