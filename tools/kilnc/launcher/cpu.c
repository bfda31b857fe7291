/* Runs a kernel of an archive on CPUs: chooses the best code that the running one has, and lets threads take the
 * programs of the grid in turn. */

/* One launch. */
struct launch {
  const struct cpu_code *code;
  const uint64_t *block;
  int64_t programs, next;
  int out_of_memory;
  pthread_mutex_t lock;
  /* The failed check of the lowest program, if `text`. */
  const char *text, *where;
  int64_t failed, element;
};
static __thread struct launch *current;

__attribute__((visibility("hidden"))) void CHECK_FAILED(const char *text, const char *where, int64_t program,
                                                        int64_t element);
void CHECK_FAILED(const char *text, const char *where, int64_t program, int64_t element) {
  pthread_mutex_lock(&current->lock);
  if (!current->text || program < current->failed) {
    current->text = text;
    current->where = where;
    current->failed = program;
    current->element = element;
  }
  pthread_mutex_unlock(&current->lock);
}

/* Runs programs until none is left. On any number of threads at once. */
static void work(void *state) {
  struct launch *const launch = state, *const outer = current;
  const int64_t programs = launch->programs, chunk = programs > 65536 ? programs / 65536 : 1;
  const size_t bytes = ((size_t)*launch->code->scratch_bytes + 63) / 64 * 64;
  int64_t begin = __atomic_load_n(&launch->next, __ATOMIC_RELAXED);
  void *scratch = NULL;
  if (begin >= programs)
    return;
  if (bytes > 0 && !(scratch = aligned_alloc(64, bytes)))
    __atomic_store_n(&launch->out_of_memory, 1, __ATOMIC_RELAXED);
  current = launch;
  while (!__atomic_load_n(&launch->out_of_memory, __ATOMIC_RELAXED) &&
         (begin = __atomic_fetch_add(&launch->next, chunk, __ATOMIC_RELAXED)) < programs) {
    const int64_t end = programs - begin < chunk ? programs : begin + chunk;
    for (int64_t program = begin; program < end; ++program)
      launch->code->program(launch->block, program, scratch);
  }
  current = outer;
  free(scratch);
}

const char *RUN(const ARGUMENTS *arguments, const int64_t grid[3], void (*parallel)(void (*work)(void *), void *)) {
  uint64_t block[CPU_BLOCK];
  struct launch launch = {.block = block};
  const char *error = NULL, *missing = NULL;
  const int count = sizeof cpu_codes / sizeof *cpu_codes;
  for (int i = 0; i < count && !launch.code; ++i)
    if (!(missing = cpu_codes[i].missing()))
      launch.code = &cpu_codes[i];
  if (!launch.code)
    return failure("expected a CPU as new as %s, but this one has no %s", cpu_codes[count - 1].target, missing);
  if ((error = pack(&cpu_interface, arguments, grid, block, &launch.programs)) || launch.programs == 0)
    return error;
  pthread_mutex_init(&launch.lock, NULL);
  if (parallel)
    parallel(work, &launch);
  work(&launch); /* whatever is left */
  pthread_mutex_destroy(&launch.lock);
  if (launch.out_of_memory)
    return failure("expected %" PRId64 " bytes of scratch memory for each thread, but there is no such memory",
                   *launch.code->scratch_bytes);
  return launch.text ? check_text(launch.text, launch.where, grid, launch.failed, launch.element) : NULL;
}
