/* Kiln for C, and for every language that calls C: devices, kernels, and the built-in operators on tensors that
 * another library owns.
 *
 *     kiln_device *cpu;
 *     kiln_library *mine;
 *     const kiln_kernel *axpy;
 *     kiln_device_open("cpu", &cpu);
 *     kiln_library_open("axpy.cc", &mine);
 *     kiln_library_find(mine, "axpy", &axpy);
 *     const kiln_argument arguments[] = {kiln_read(&x), kiln_write(&y), kiln_real(32, 0.5)};
 *     const int64_t grid[3] = {(n + 1023) / 1024, 1, 1};
 *     if (kiln_launch(cpu, axpy, grid, arguments, 3, "block=1024") || kiln_synchronize(cpu))
 *       puts(kiln_error());
 *
 * C99 and C++. Every function is thread-safe; calls for one device take turns. A function returns a status and throws
 * no C++ exception. kiln_error() is the text of the calling thread's last error. A null pointer where one is required
 * is an error, too. */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Status ------------------------------------------------------------------------------------------------------- */

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_USER = 2,    /* the arguments are wrong, or a check in a kernel failed */
  KILN_DEVICE = 3,  /* the machine lacks something: memory, a driver, a file */
  KILN_INTERNAL = 4 /* a fault of Kiln */
} kiln_status;

/* The text of the calling thread's last error: the expected and the actual value. Valid until its next failed call. */
const char *kiln_error(void);
/* Kiln's version, such as "0.1". */
const char *kiln_version(void);

/* --- Tensors and arguments ---------------------------------------------------------------------------------------- */

/* A tensor, field by field DLPack's DLTensor, so that a `DLTensor *` may be cast to a `kiln_tensor *`. A call keeps
 * nothing of it when it returns. Only a plan keeps the tensor's memory, which must outlive the plan.
 *   device_type  1 the host, 2 CUDA, 3 pinned host memory, 13 CUDA's managed memory
 *   type_code    0 signed, 1 unsigned, 2 IEEE float, 4 bfloat, 6 bool, 10 float8_e4m3fn, 12 float8_e5m2,
 *                14 float8_e8m0fnu, 17 float4_e2m1fn in pairs (4 bits, 2 lanes)
 *   strides      in elements; null: row-major without gaps
 * Ranks are 0 to 5; a tensor of rank 0 has shape {1} for a kernel. Extents of 0 are allowed, and data may be null then.
 * A tensor must lie where the device computes: on the host for "cpu" and "simulator:…", on GPU n for "cuda:n". */
typedef struct kiln_tensor {
  void *data;
  int32_t device_type, device_id;
  int32_t rank;
  uint8_t type_code, type_bits;
  uint16_t lanes; /* 1; 2 for pairs */
  int64_t *shape, *strides;
  uint64_t byte_offset;
} kiln_tensor;

/* One argument: a tensor, a scalar, a list of tensors, or nothing for an optional view of a kernel or an optional
 * operand of an operator. The functions below make it. */
typedef struct kiln_argument {
  const kiln_tensor *tensor; /* null: a scalar, a list, or nothing where type_bits is 0 */
  int32_t is_read_only;      /* if the kernel would write the tensor, the call fails before the launch */
  uint8_t type_code, type_bits;
  uint16_t lanes;
  union {
    int64_t integer; /* of signed and unsigned types and of bool */
    double real;     /* of floats */
  } value;
  const struct kiln_argument *items; /* of a list */
  size_t count;                      /* the number of items */
  int32_t is_list;
} kiln_argument;

static inline kiln_argument kiln_write(const kiln_tensor *tensor) {
  kiln_argument argument = {NULL, 0, 0, 0, 1, {0}, NULL, 0, 0};
  argument.tensor = tensor;
  return argument;
}
static inline kiln_argument kiln_read(const kiln_tensor *tensor) {
  kiln_argument argument = kiln_write(tensor);
  argument.is_read_only = 1;
  return argument;
}
/* An absent tensor. */
static inline kiln_argument kiln_none(void) { return kiln_write(NULL); }
/* `count` tensors for a kernel's list of views. `items` must live until the call returns. */
static inline kiln_argument kiln_list(const kiln_argument *items, size_t count) {
  kiln_argument argument = kiln_none();
  argument.items = items;
  argument.count = count;
  argument.is_list = 1;
  return argument;
}
/* A float of 16, 32 or 64 bits, a signed and an unsigned integer of 8 to 64, a boolean. */
static inline kiln_argument kiln_real(int bits, double value) {
  kiln_argument argument = kiln_none();
  argument.type_code = 2;
  argument.type_bits = (uint8_t)bits;
  argument.value.real = value;
  return argument;
}
static inline kiln_argument kiln_integer(int bits, int64_t value) {
  kiln_argument argument = kiln_none();
  argument.type_bits = (uint8_t)bits;
  argument.value.integer = value;
  return argument;
}
static inline kiln_argument kiln_unsigned(int bits, uint64_t value) {
  kiln_argument argument = kiln_integer(bits, (int64_t)value);
  argument.type_code = 1;
  return argument;
}
static inline kiln_argument kiln_boolean(int value) {
  kiln_argument argument = kiln_integer(8, value != 0);
  argument.type_code = 6;
  return argument;
}

/* --- Devices ------------------------------------------------------------------------------------------------------ */

typedef struct kiln_device kiln_device;

/* Opens "cpu", "cuda:0", "simulator:sm_90a" … (an error names all). Opening a name again returns the same device; it
 * closes when it has been closed as often as opened. */
kiln_status kiln_device_open(const char *name, kiln_device **device);
void kiln_device_close(kiln_device *device);
/* DLPack's type and number of the device that owns its memory: 1, 0 for CPUs and simulators; 2, n for GPUs. */
void kiln_device_place(const kiln_device *device, int32_t *type, int32_t *id);
/* Threads of the host that run a launch on a CPU. Results do not depend on it. */
kiln_status kiln_device_threads(kiln_device *device, int threads);

/* Waits for all launches. It fails with the first device_assert() that failed since the last call, or with the findings
 * of the simulator: a race, an access out of bounds, a read of memory before it was written. */
kiln_status kiln_synchronize(kiln_device *device);
/* Order launches with a CUDA stream of another library: kiln_after(theirs), launches, kiln_before(theirs). Launches
 * begin when the stream's work so far has ended; the stream's later work begins when the launches have ended. The host
 * does not wait. On CPUs and simulators these functions do nothing. */
kiln_status kiln_after(kiln_device *device, void *stream);
kiln_status kiln_before(kiln_device *device, void *stream);

/* Memory of the device, for programs that use no other library of tensors: 256-byte aligned, with undefined content. */
kiln_status kiln_allocate(kiln_device *device, int64_t bytes, void **memory);
void kiln_release(kiln_device *device, void *memory);
kiln_status kiln_upload(kiln_device *device, void *to, const void *from, int64_t bytes);
kiln_status kiln_download(kiln_device *device, void *to, const void *from, int64_t bytes); /* waits */

/* --- Kernels ------------------------------------------------------------------------------------------------------ */

typedef struct kiln_library kiln_library;
typedef struct kiln_kernel kiln_kernel; /* lives as long as its library is open */

/* The kernels that a C++ file registers. `path` is one of these:
 *   FILE.so    a shared object, made by `kilnc FILE.cc --emit=library -o FILE.so`
 *   FILE.cc    the C++ file; $CXX or c++ compiles it, unless an earlier process did
 *   FILE.kiln  an image, made by `kilnc FILE.cc … --emit=image`; it has code for some targets, configs and arguments
 *   null       the built-in kernels
 * Close a library when no launch of it is in progress and no plan uses it. */
kiln_status kiln_library_open(const char *path, kiln_library **library);
void kiln_library_close(kiln_library *library);
size_t kiln_library_size(const kiln_library *library);
const kiln_kernel *kiln_library_kernel(const kiln_library *library, size_t index); /* null: there is none */
kiln_status kiln_library_find(const kiln_library *library, const char *name, const kiln_kernel **kernel);

const char *kiln_kernel_name(const kiln_kernel *kernel);
/* The number of its arguments. The name of one ("" if it has none) and its kind: 0 a scalar, 1 a tensor, 2 a tensor or
 * kiln_none(), 3 a list of tensors. */
size_t kiln_kernel_arguments(const kiln_kernel *kernel);
const char *kiln_kernel_argument(const kiln_kernel *kernel, size_t index, int *kind); /* null: there is none */
/* Its config with every field, "bm=64,bn=64". Fields that `config` ("bm=32" or null) does not name have their defaults.
 * Valid until the thread's next call. */
kiln_status kiln_kernel_config(const kiln_kernel *kernel, const char *config, const char **full);

/* Launches grid[0] × grid[1] × grid[2] programs. An axis that is not used has 1; 0 is an error on axes 1 and 2, and on
 * axis 0 it launches nothing. Compiles the kernel for these arguments if no cache has it. `config` is
 * "name=value,…" or null; fields that it does not name keep their defaults. May return before the launch ends. */
kiln_status kiln_launch(kiln_device *device, const kiln_kernel *kernel, const int64_t grid[3],
                        const kiln_argument *arguments, size_t count, const char *config);

/* --- Tuning ------------------------------------------------------------------------------------------------------- */

/* The config that kiln_tune() or `kilnc --tune` found for these arguments, or "". It is read from the file `findings`;
 * if that is null, from the file that KILN_FINDINGS names. Nothing is measured. Valid until the thread's next call. */
kiln_status kiln_tuned(kiln_device *device, const kiln_kernel *kernel, const kiln_argument *arguments, size_t count,
                       const char *findings, const char **config);

/* The configs to try on a device, one a line, the default first: the combinations of the candidates that the kernel's
 * registration lists and its constraint allows. The fields in `fixed`, "name=value,…" or null, keep these values.
 * Fields that change results vary if `vary_results` is not 0. Valid until the thread's next call. */
kiln_status kiln_candidates(kiln_device *device, const kiln_kernel *kernel, const char *fixed, int vary_results,
                            const char **configs);

/* A config to try, "name=value,…", and the numbers of its programs. */
typedef struct kiln_trial {
  const char *config;
  int64_t grid[3];
} kiln_trial;

/* Finds the fastest config for these arguments in about `seconds`. It compiles the trials, compares the result of each
 * with that of the first, and measures. Other launches of the device wait for it. At the end, tensors that the kernel
 * writes have their original contents. `findings`, unless it is null, is a file that gets the finding. `bucket`, unless
 * it is null, names the extents for whose buckets the finding is valid, "x.0, out.0". `config` is the fastest config;
 * `report`, unless it is null, is a table of the times. Both are valid until the thread's next call. A trial whose
 * result differs by rounding wins only if `vary_results` is not 0. A trial with a wrong result is an error, and no
 * finding is written. */
kiln_status kiln_tune(kiln_device *device, const kiln_kernel *kernel, const kiln_argument *arguments, size_t count,
                      const kiln_trial *trials, size_t trial_count, double seconds, int vary_results,
                      const char *bucket, const char *findings, const char **config, const char **report);

/* --- Operators ---------------------------------------------------------------------------------------------------- */

/* The built-in operators, one a line: "matmul: a, b -> out; accumulate=0". Operands before -> are read, those after it
 * are written. "?" marks one that may be kiln_none(). Options follow with their defaults. kernels/README.md
 * has the shapes and the result of each. */
const char *kiln_operators(void);

/* Runs an operator. `arguments` are its operands in the order that kiln_operators() gives; `options` is "name=value,…"
 * or null. Tiles and launches are chosen for the device and the shapes. */
kiln_status kiln_operate(kiln_device *device, const char *name, const kiln_argument *arguments, size_t count,
                         const char *options);

/* An operator that is ready to run on these tensors again and again: compiled, with its workspace and its arguments
 * packed. The tensors' memory and the device must outlive it. */
typedef struct kiln_plan kiln_plan;
kiln_status kiln_plan_make(kiln_device *device, const char *name, const kiln_argument *arguments, size_t count,
                           const char *options, kiln_plan **plan);
kiln_status kiln_plan_run(kiln_plan *plan);
void kiln_plan_close(kiln_plan *plan);

#ifdef __cplusplus
}
#endif

#endif
