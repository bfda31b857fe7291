/* What kilnc tells of a kernel in an archive. The text of a launcher is these types, the tables of the kernel, and the
 * other files of this folder; the system's C compiler compiles it. */

enum { MOST_RANK = 5 };
#define DYNAMIC INT64_MIN /* an extent or stride that only a launch knows */

/* A parameter of the kernel, and the facts about it. */
struct parameter {
  const char *name;     /* as messages call it: 'x' */
  const char *type;     /* "f32" */
  size_t offset, bytes; /* of the argument in the struct; of one element */
  int rank;             /* of a view; -1 for a scalar */
  int64_t extents[MOST_RANK], strides[MOST_RANK];
  int64_t alignment;
  int strides_by_16, extent_by_16, fits_32, is_written;
};
enum slot_kind { SLOT_POINTER, SLOT_EXTENT, SLOT_STRIDE, SLOT_SCALAR };
struct slot {
  enum slot_kind kind;
  int argument, dimension;
};
/* What the code for CPUs, or for GPUs, takes. */
struct interface {
  int parameters, slots, apart, equals;
  const struct parameter *parameter;
  const struct slot *slot;
  const int (*pair)[2];  /* views that must not overlap */
  const int (*equal)[4]; /* extents that must be equal: a view, its dimension, another view, its dimension */
};

/* The code for one CPU. */
struct cpu_code {
  const char *target;
  const char *(*missing)(void); /* a feature that this CPU lacks; null if it has all */
  void (*program)(const void *arguments, int64_t program, void *scratch);
  const int64_t *scratch_bytes;
};

/* The code for one architecture: the text of PTX, a zero byte, and a cubin if `bytes` are more. */
struct image {
  const char *target;
  const unsigned char *code;
  size_t bytes;
  unsigned threads, shared; /* of a program; dynamic shared memory in bytes */
  unsigned count;           /* of the texts of checks and prints */
  const char *const *texts;
};
