/* Launches a kernel of an archive on GPUs, by the driver's library alone. It is opened at the first launch:
 * libcuda.so.1, or the library that KILN_CUDA_DRIVER names. */

typedef unsigned long long address;
#define CALLS(X)                                                                                                       \
  X(cuGetErrorName, (int, const char **))                                                                              \
  X(cuCtxGetCurrent, (void **))                                                                                        \
  X(cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))                                             \
  X(cuModuleGetFunction, (void **, void *, const char *))                                                              \
  X(cuModuleGetGlobal_v2, (address *, size_t *, void *, const char *))                                                 \
  X(cuFuncSetAttribute, (void *, int, int))                                                                            \
  X(cuMemsetD8Async, (address, unsigned char, size_t, void *))                                                         \
  X(cuMemsetD32Async, (address, unsigned, size_t, void *))                                                             \
  X(cuMemcpyDtoHAsync_v2, (void *, address, size_t, void *))                                                           \
  X(cuStreamSynchronize, (void *))                                                                                     \
  X(cuLaunchKernel,                                                                                                    \
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))
#define MEMBER(name, types) int(*name) types;
static struct {
  CALLS(MEMBER) int (*cuCtxGetId)(void *, unsigned long long *);
} driver;

/* The kernel in one context. */
struct loaded {
  struct loaded *next;
  void *context, *function;
  unsigned long long id; /* of the context, where the driver tells: another may get its address */
  const struct image *image;
  address console; /* of a kernel that checks or prints */
};
static struct loaded *all_loaded;
static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *open_driver(void) {
  static int is_open;
  const char *const asked = secure_getenv("KILN_CUDA_DRIVER"), *const name = asked && *asked ? asked : "libcuda.so.1";
  void *library;
  if (is_open)
    return NULL;
  if (!(library = dlopen(name, RTLD_NOW | RTLD_LOCAL)))
    return failure("expected the CUDA driver's library '%s', but could not open it: %s", name, dlerror());
#define FIND(name_, types)                                                                                             \
  if (!(*(void **)&driver.name_ = dlsym(library, #name_)))                                                             \
    return failure("the CUDA driver's library '%s' lacks '%s'", name, #name_);
  CALLS(FIND)
  *(void **)&driver.cuCtxGetId = dlsym(library, "cuCtxGetId");
  is_open = 1;
  return NULL;
}

/* The text of a call that failed. */
static const char *refused(const char *call, int result) {
  const char *name = NULL;
  driver.cuGetErrorName(result, &name);
  return failure("expected %s to succeed, but it returned %s (%d)", call, name ? name : "an error", result);
}
#define TRY(call, arguments)                                                                                           \
  do {                                                                                                                 \
    const int result_ = driver.call arguments;                                                                         \
    if (result_ != 0)                                                                                                  \
      return refused(#call, result_);                                                                                  \
  } while (0)

/* --- Loading ------------------------------------------------------------------------------------------------------ */

/* Whether code was refused because it is for another GPU, or the driver too old for it. */
static int is_for_another(int result) { return result == 200 || result == 209 || result == 218 || result == 222; }

/* Loads the first image that the context's GPU takes, cubins before PTX. */
static const char *load_module(void **module, const struct image **image) {
  char log[1024] = "";
  int result = 0, options[] = {5 /* error log */, 6 /* its bytes */, 13 /* line information */};
  void *values[] = {log, (void *)sizeof log, (void *)1};
  const char *targets = gpu_images[0].target;
  for (size_t i = 0; i < sizeof gpu_images / sizeof *gpu_images; ++i) {
    const size_t text = strlen((const char *)gpu_images[i].code) + 1;
    *image = &gpu_images[i];
    result = 200;
    if (gpu_images[i].bytes > text)
      result = driver.cuModuleLoadDataEx(module, gpu_images[i].code + text, 0, NULL, NULL);
    if (is_for_another(result))
      result = driver.cuModuleLoadDataEx(module, gpu_images[i].code, 3, options, values);
    if (result == 0)
      return NULL;
    targets = gpu_images[i].target;
    if (!is_for_another(result))
      break;
  }
  const char *name = NULL;
  driver.cuGetErrorName(result, &name);
  return failure("expected a GPU and a driver that take the code for %s, but cuModuleLoadDataEx returned %s (%d) %s",
                 targets, name ? name : "an error", result, log);
}

static const char *load(struct loaded *kernel) {
  void *module = NULL;
  size_t bytes = 0;
  const char *error = load_module(&module, &kernel->image);
  int found;
  if (error)
    return error;
  TRY(cuModuleGetFunction, (&kernel->function, module, KERNEL));
  if (kernel->image->shared > 48 << 10) /* more than a launch has without asking */
    TRY(cuFuncSetAttribute, (kernel->function, 8 /* dynamic shared memory */, (int)kernel->image->shared));
  found = driver.cuModuleGetGlobal_v2(&kernel->console, &bytes, module, "kiln_console");
  if (found != 0 && found != 500 /* not found */)
    return refused("cuModuleGetGlobal", found);
  return NULL;
}

/* The kernel in the calling thread's context; loads it there once. */
static const char *find(struct loaded **kernel) {
  struct loaded wanted = {0}, *each;
  const char *error = open_driver();
  if (error)
    return error;
  TRY(cuCtxGetCurrent, (&wanted.context));
  if (!wanted.context)
    return failure("expected the calling thread to have a CUDA context, but it has none");
  if (driver.cuCtxGetId)
    driver.cuCtxGetId(wanted.context, &wanted.id);
  for (each = all_loaded; each && (each->context != wanted.context || each->id != wanted.id);)
    each = each->next;
  if (!each) {
    if ((error = load(&wanted)))
      return error;
    if (!(each = malloc(sizeof *each)))
      return failure("out of memory: could not allocate %zu bytes", sizeof *each);
    wanted.next = all_loaded;
    *each = wanted;
    all_loaded = each;
  }
  *kernel = each;
  return NULL;
}

/* --- Launching ---------------------------------------------------------------------------------------------------- */

static const char *enqueue(const struct loaded *kernel, void *stream, const uint64_t *block) {
  size_t bytes = GPU_BLOCK * sizeof *block;
  void *extra[] = {(void *)1 /* all parameters */, (void *)block, (void *)2 /* their bytes */, &bytes, NULL};
  TRY(cuLaunchKernel, (kernel->function, (unsigned)block[0], (unsigned)block[1], (unsigned)block[2],
                       kernel->image->threads, 1, 1, kernel->image->shared, stream, NULL, extra));
  return NULL;
}

#if GPU_CONSOLE
/* Output of programs in device memory, as lowering/Abi.h has it. */
struct console {
  uint64_t launch;
  uint32_t lock, unused;
  uint64_t failed, program, element;
  uint32_t text, where;
  uint64_t printed;
  char lines[1 << 20];
};
struct console_line {
  uint64_t launch, program;
  uint32_t label, type, rank, bytes;
  int64_t extents[5];
};

/* Whether a line is as long as the tile that it has. */
static int is_whole(const struct console_line *line) {
  int64_t bytes;
  if (line->rank > 5 || line->type >= sizeof element_types / sizeof *element_types || line->bytes < sizeof *line)
    return 0;
  bytes = element_types[line->type].bytes;
  for (uint32_t i = 0; i < line->rank; ++i)
    if (line->extents[i] < 0 || __builtin_mul_overflow(bytes, line->extents[i], &bytes))
      return 0;
  return bytes <= (int64_t)(line->bytes - sizeof *line);
}

static int compare_lines(const void *a, const void *b) {
  const char *const *first = a, *const *second = b;
  struct console_line one, other;
  memcpy(&one, *first, sizeof one);
  memcpy(&other, *second, sizeof other);
  if (one.program != other.program)
    return one.program < other.program ? -1 : 1;
  return *first < *second ? -1 : 1; /* of one program: as it printed them */
}

/* Prints the lines in the order of their programs. */
static void print_lines(const struct image *image, const struct console *console) {
  const size_t end = console->printed < sizeof console->lines ? (size_t)console->printed : sizeof console->lines;
  const char **const lines = malloc((end / sizeof(struct console_line) + 1) * sizeof *lines);
  struct console_line line;
  size_t count = 0;
  for (size_t at = 0; lines && at + sizeof line <= end; at += line.bytes) {
    memcpy(&line, console->lines + at, sizeof line);
    if (line.bytes == 0 || at + line.bytes > end || !is_whole(&line) || line.label >= image->count)
      break; /* there was no room, or the kernel has written over it */
    lines[count++] = console->lines + at;
  }
  if (count)
    qsort(lines, count, sizeof *lines, compare_lines);
  for (size_t i = 0; i < count; ++i) {
    memcpy(&line, lines[i], sizeof line);
    PRINT(image->texts[line.label], (int64_t)line.program, (int32_t)line.type, line.rank, line.extents,
          lines[i] + sizeof line);
  }
  free(lines);
  if (console->printed > sizeof console->lines)
    fprintf(stderr, "kernel '%s': expected prints of at most %zu bytes, but got %" PRIu64 ": some are lost\n", KERNEL,
            sizeof console->lines, console->printed);
}

/* Launches, waits, and reads what the programs said. */
static const char *launch_and_read(const struct loaded *kernel, void *stream, const uint64_t *block,
                                   const int64_t grid[3], struct console *console) {
  const char *error;
  TRY(cuMemsetD32Async, (kernel->console, 1, 1, stream)); /* the number of the launch */
  if ((error = enqueue(kernel, stream, block)))
    return error;
  TRY(cuMemcpyDtoHAsync_v2, (console, kernel->console, sizeof *console, stream));
  TRY(cuMemsetD8Async, (kernel->console, 0, sizeof *console, stream));
  TRY(cuStreamSynchronize, (stream));
  print_lines(kernel->image, console);
  if (!console->failed)
    return NULL;
  if (console->text >= kernel->image->count || console->where >= kernel->image->count)
    return failure("a check failed, but the kernel has written over its text");
  return check_text(kernel->image->texts[console->text], kernel->image->texts[console->where], grid,
                    (int64_t)console->program, (int64_t)console->element);
}
#endif

static const char *launch_locked(void *stream, const uint64_t *block, const int64_t grid[3]) {
  struct loaded *kernel = NULL;
  const char *error = find(&kernel);
  if (error)
    return error;
#if GPU_CONSOLE
  struct console *const console = malloc(sizeof *console);
  if (!console)
    return failure("out of memory: could not allocate %zu bytes", sizeof *console);
  error = launch_and_read(kernel, stream, block, grid, console);
  free(console);
  return error;
#else
  (void)grid;
  return enqueue(kernel, stream, block);
#endif
}

const char *LAUNCH(void *stream, const ARGUMENTS *arguments, const int64_t grid[3]) {
  uint64_t block[GPU_BLOCK];
  int64_t programs = 0;
  const char *error = pack(&gpu_interface, arguments, grid, block, &programs);
  if (error || programs == 0)
    return error;
  if (grid[0] > 0x7fffffff || grid[1] > 65535 || grid[2] > 65535)
    return failure("expected a grid of at most 2147483647x65535x65535 programs on a GPU, but got %" PRId64 "x%" PRId64
                   "x%" PRId64,
                   grid[0], grid[1], grid[2]);
  pthread_mutex_lock(&gpu_lock);
  error = launch_locked(stream, block, grid);
  pthread_mutex_unlock(&gpu_lock);
  return error;
}
