/* The arguments of a kernel in an archive: checks every fact that its code relies on, and packs the block that the code
 * reads. */

static __thread char message[2048];

/* The text of an error, which lives until the thread's next one. */
__attribute__((format(printf, 1, 2))) static const char *failure(const char *format, ...) {
  va_list values;
  const int begin = snprintf(message, sizeof message, "kernel '%s': ", KERNEL);
  va_start(values, format);
  vsnprintf(message + begin, sizeof message - (size_t)begin, format, values);
  va_end(values);
  return message;
}

/* --- Views -------------------------------------------------------------------------------------------------------- */

struct view {
  char *data;
  int64_t extents[MOST_RANK], strides[MOST_RANK];
  intptr_t low, high; /* the bytes from the first to the last element; none of a view without elements */
};

static struct view read_view(const struct parameter *parameter, const void *arguments) {
  struct view view = {0};
  const char *place = (const char *)arguments + parameter->offset;
  const size_t bytes = (size_t)parameter->rank * sizeof(int64_t);
  memcpy(&view.data, place, sizeof view.data);
  memcpy(view.extents, place + sizeof view.data, bytes);
  memcpy(view.strides, place + sizeof view.data + bytes, bytes);
  return view;
}

/* kernel 'k': expected 'x' to EXPECTED, but got f32[3x4] with strides 4x1 at 0x1000 */
__attribute__((format(printf, 3, 4))) static const char *wrong(const struct parameter *parameter,
                                                               const struct view *view, const char *expected, ...) {
  char want[128], extents[128] = "", strides[128] = "";
  va_list values;
  va_start(values, expected);
  vsnprintf(want, sizeof want, expected, values);
  va_end(values);
  for (int i = 0, at = 0, to = 0; i < parameter->rank; ++i) {
    at += snprintf(extents + at, sizeof extents - (size_t)at, "%s%" PRId64, i ? "x" : "", view->extents[i]);
    to += snprintf(strides + to, sizeof strides - (size_t)to, "%s%" PRId64, i ? "x" : "", view->strides[i]);
  }
  return failure("expected %s to %s, but got %s[%s] with strides %s at %p", parameter->name, want, parameter->type,
                 extents, strides, (void *)view->data);
}

/* Sets the range of the view's bytes; null if they are within the machine's addresses. */
static const char *measure(const struct parameter *parameter, struct view *view) {
  int64_t bytes = (int64_t)parameter->bytes, low = 0, high = bytes;
  int is_empty = 0, is_far = 0;
  for (int i = 0; i < parameter->rank; ++i) {
    const int64_t extent = view->extents[i];
    int64_t span = 0, *end;
    if (extent < 0 || extent > (int64_t)1 << EXTENT_BITS)
      return wrong(parameter, view, "have extents from 0 to 2^%d", EXTENT_BITS);
    is_empty |= extent == 0;
    if (__builtin_mul_overflow(bytes, extent > 1 ? extent : 1, &bytes))
      return wrong(parameter, view, "take less than 2^63 bytes");
    if (extent <= 1)
      continue; /* its stride is never used */
    is_far |= __builtin_mul_overflow(extent - 1, view->strides[i], &span) ||
              __builtin_mul_overflow(span, (int64_t)parameter->bytes, &span);
    end = span < 0 ? &low : &high;
    is_far |= __builtin_add_overflow(*end, span, end);
  }
  is_far |= __builtin_add_overflow((int64_t)(intptr_t)view->data, low, &low) || low < 0 ||
            __builtin_add_overflow((int64_t)(intptr_t)view->data, high, &high);
  if (is_empty)
    return NULL;
  if (!view->data)
    return wrong(parameter, view, "have memory");
  if (is_far)
    return wrong(parameter, view, "lie within the machine's addresses");
  view->low = (intptr_t)low;
  view->high = (intptr_t)high;
  return NULL;
}

static const char *check_view(const struct parameter *parameter, struct view *view) {
  const int last = parameter->rank - 1;
  const char *error = measure(parameter, view);
  if (error)
    return error;
  for (int i = 0; i <= last; ++i) {
    if (parameter->extents[i] != DYNAMIC && parameter->extents[i] != view->extents[i])
      return wrong(parameter, view, "have extent %" PRId64 " in dimension %d", parameter->extents[i], i);
    if (parameter->strides[i] != DYNAMIC && parameter->strides[i] != view->strides[i] && view->extents[i] > 1)
      return wrong(parameter, view, "have stride %" PRId64 " in dimension %d", parameter->strides[i], i);
    if (parameter->is_written && view->strides[i] == 0 && view->extents[i] > 1 && view->high > view->low)
      return wrong(parameter, view, "have no stride 0 in dimension %d, because the kernel writes it", i);
    if (parameter->strides_by_16 && i < last && view->strides[i] % 16 != 0)
      return wrong(parameter, view, "have a stride divisible by 16 in dimension %d", i);
    if (parameter->fits_32 && view->extents[i] > (int64_t)1 << SMALL_EXTENT_BITS)
      return wrong(parameter, view, "have at most 2^%d elements in dimension %d", SMALL_EXTENT_BITS, i);
    if (parameter->fits_32 && view->extents[i] > 1 &&
        (view->strides[i] < 0 || view->strides[i] > INT32_MAX / (int64_t)parameter->bytes))
      return wrong(parameter, view, "have a stride from 0 to 2^31 - 1 bytes in dimension %d", i);
  }
  if (parameter->extent_by_16 && view->extents[last] % 16 != 0)
    return wrong(parameter, view, "have a last extent divisible by 16");
  if ((intptr_t)view->data % parameter->alignment != 0)
    return wrong(parameter, view, "be aligned to %" PRId64 " bytes", parameter->alignment);
  return NULL;
}

/* --- The block ---------------------------------------------------------------------------------------------------- */

/* The slot of a scalar: a narrower value lies in its low bytes. */
static const char *read_scalar(const struct parameter *parameter, const void *arguments, uint64_t *word) {
  *word = 0;
  memcpy(word, (const char *)arguments + parameter->offset, parameter->bytes);
  if (strcmp(parameter->type, "boolean") == 0 && *word > 1)
    return failure("expected %s to be 0 or 1, but got %d", parameter->name, (int)*word);
  return NULL;
}

static const char *check_grid(const int64_t grid[3], int64_t *programs) {
  *programs = 1;
  for (int i = 0; i < 3; ++i)
    if (grid[i] < 0 || grid[i] > (int64_t)1 << GRID_BITS || __builtin_mul_overflow(*programs, grid[i], programs))
      return failure("expected a grid of extents from 0 to 2^%d and less than 2^63 programs, but got %" PRId64
                     "x%" PRId64 "x%" PRId64,
                     GRID_BITS, grid[0], grid[1], grid[2]);
  if (grid[1] == 0 || grid[2] == 0)
    return failure("expected at least 1 program on axes 1 and 2 of the grid, but got %" PRId64 "x%" PRId64 "x%" PRId64
                   "; an axis that is not used has 1",
                   grid[0], grid[1], grid[2]);
  return NULL;
}

/* Checks grid and arguments, and fills the block; null, or the text of the first thing that is wrong. */
static const char *pack(const struct interface *interface, const void *arguments, const int64_t grid[3],
                        uint64_t *block, int64_t *programs) {
  struct view views[PARAMETERS + 1];
  uint64_t scalars[PARAMETERS + 1];
  const char *error;
  if (!arguments || !grid)
    return failure("expected arguments and a grid, but got a null pointer");
  error = check_grid(grid, programs);
  for (int i = 0; i < interface->parameters && !error; ++i) {
    const struct parameter *parameter = &interface->parameter[i];
    if (parameter->rank < 0) {
      error = read_scalar(parameter, arguments, &scalars[i]);
    } else {
      views[i] = read_view(parameter, arguments);
      error = check_view(parameter, &views[i]);
    }
  }
  for (int i = 0; i < interface->apart && !error; ++i) {
    const int first = interface->pair[i][0], second = interface->pair[i][1];
    if (views[first].low < views[second].high && views[second].low < views[first].high)
      error = failure("%s and %s overlap, but it was compiled for arguments that do not overlap",
                      interface->parameter[first].name, interface->parameter[second].name);
  }
  for (int i = 0; i < interface->equals && !error; ++i) {
    const int *equal = interface->equal[i];
    if (views[equal[0]].extents[equal[1]] != views[equal[2]].extents[equal[3]])
      error = wrong(&interface->parameter[equal[2]], &views[equal[2]],
                    "have extent %" PRId64 " in dimension %d, as %s in dimension %d", views[equal[0]].extents[equal[1]],
                    equal[3], interface->parameter[equal[0]].name, equal[1]);
  }
  if (error)
    return error;
  memcpy(block, grid, 3 * sizeof *block);
  for (int i = 0; i < interface->slots; ++i) {
    const struct slot *slot = &interface->slot[i];
    const struct view *view = &views[slot->argument];
    block[3 + i] = slot->kind == SLOT_POINTER           ? (uint64_t)(uintptr_t)view->data
                   : slot->kind == SLOT_EXTENT          ? (uint64_t)view->extents[slot->dimension]
                   : slot->kind == SLOT_SCALAR          ? scalars[slot->argument]
                   : view->extents[slot->dimension] > 1 ? (uint64_t)view->strides[slot->dimension]
                                                        : 0;
  }
  return NULL;
}

/* The text of a failed check. */
static const char *check_text(const char *text, const char *where, const int64_t grid[3], int64_t program,
                              int64_t element) {
  snprintf(message, sizeof message,
           "check failed: %s, in kernel '%s' at %s, program (%" PRId64 ", %" PRId64 ", %" PRId64 "), element %" PRId64,
           text, KERNEL, where, program % grid[0], program / grid[0] % grid[1], program / grid[0] / grid[1], element);
  return message;
}
