// Preloaded into a program under test: counts its system calls on the files below certain folders, and lets one fail.
//
//   FAULT_FOLDERS   absolute paths between colons; only calls on what lies in them count
//   FAULT_AT        which call fails, from 1; 0 counts only
//   FAULT_WHAT      how: an errno (`28`), `full` (this call and all later ones that need space fail with ENOSPC),
//                   `short` (half of what was asked for is read or written), `kill` (SIGKILL in place of the call)
//   FAULT_TRACE     a file that receives a line a call: its number, name and path
//
// A filter (seccomp) turns every system call that names a file into SIGSYS, also those that the C library makes for
// itself (a stream's write, say), which no wrapper of a function sees. The handler makes the call, or lets it fail, and
// puts the result where the program expects it. It is Linux's on x86-64, as Kiln is. Children inherit the filter and
// not the handler: for programs that start none.

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

// --- The calls -------------------------------------------------------------------------------------------------------

enum { descriptors = 1024, longest = 512, none = -1 };

/// Where a system call keeps the file that it is about: the argument with a descriptor, and the one with a path, which
/// is relative to that descriptor when there are both.
struct call {
  int number, descriptor, path;
  const char *name;
};

static const struct call calls[] = {
    {SYS_open, none, 0, "open"},           {SYS_openat, 0, 1, "openat"},          {SYS_creat, none, 0, "creat"},
    {SYS_close, 0, none, "close"},         {SYS_read, 0, none, "read"},           {SYS_pread64, 0, none, "pread"},
    {SYS_readv, 0, none, "readv"},         {SYS_write, 0, none, "write"},         {SYS_pwrite64, 0, none, "pwrite"},
    {SYS_writev, 0, none, "writev"},       {SYS_lseek, 0, none, "lseek"},         {SYS_fsync, 0, none, "fsync"},
    {SYS_fdatasync, 0, none, "fdatasync"}, {SYS_ftruncate, 0, none, "ftruncate"}, {SYS_fallocate, 0, none, "fallocate"},
    {SYS_flock, 0, none, "flock"},         {SYS_fcntl, 0, none, "fcntl"},         {SYS_fchmod, 0, none, "fchmod"},
    {SYS_getdents64, 0, none, "getdents"}, {SYS_mmap, 4, none, "mmap"},           {SYS_rename, none, 0, "rename"},
    {SYS_renameat, 0, 1, "renameat"},      {SYS_renameat2, 0, 1, "renameat2"},    {SYS_link, none, 0, "link"},
    {SYS_linkat, 0, 1, "linkat"},          {SYS_symlink, none, 1, "symlink"},     {SYS_symlinkat, 1, 2, "symlinkat"},
    {SYS_readlink, none, 0, "readlink"},   {SYS_readlinkat, 0, 1, "readlinkat"},  {SYS_mkdir, none, 0, "mkdir"},
    {SYS_mkdirat, 0, 1, "mkdirat"},        {SYS_rmdir, none, 0, "rmdir"},         {SYS_unlink, none, 0, "unlink"},
    {SYS_unlinkat, 0, 1, "unlinkat"},      {SYS_stat, none, 0, "stat"},           {SYS_lstat, none, 0, "lstat"},
    {SYS_fstat, 0, none, "fstat"},         {SYS_newfstatat, 0, 1, "fstatat"},     {SYS_statx, 0, 1, "statx"},
    {SYS_access, none, 0, "access"},       {SYS_faccessat, 0, 1, "faccessat"},    {SYS_chmod, none, 0, "chmod"},
    {SYS_utimensat, 0, 1, "utimensat"},
};
enum { kinds = sizeof calls / sizeof calls[0] };

/// A system call that the filter lets pass, for it is made at an address that the filter knows.
long kiln_fault_call(long number, const long *arguments);
extern const char kiln_fault_passes[];
__asm__(".text\n"
        "kiln_fault_call:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %r11\n"
        "  mov (%r11), %rdi\n"
        "  mov 8(%r11), %rsi\n"
        "  mov 16(%r11), %rdx\n"
        "  mov 24(%r11), %r10\n"
        "  mov 32(%r11), %r8\n"
        "  mov 40(%r11), %r9\n"
        "  syscall\n"
        "kiln_fault_passes:\n"
        "  ret\n");

static long make(long number, long a, long b, long c) {
  const long arguments[6] = {a, b, c, 0, 0, 0};
  return kiln_fault_call(number, arguments);
}

// --- What is asked for -----------------------------------------------------------------------------------------------

static const char *folders = "";
static long failing;                                  // number of the call that fails
static enum { with_error, full, half, killed } fault; // how it fails
static int error_number;
static int trace = -1;
static atomic_long counted;
static char opened[descriptors][longest]; // the paths of open files that count; empty: of one that does not

static int counts(const char *path) {
  for (const char *folder = folders; *folder;) {
    const size_t size = strcspn(folder, ":");
    if (size && strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == 0))
      return 1;
    folder += size + (folder[size] == ':');
  }
  return 0;
}

/// The path that a call is about, as "FOLDER/NAME"; empty when it is none that counts.
static void find_path(const struct call *call, const long *arguments, char *path) {
  path[0] = 0;
  const char *given = call->path == none ? NULL : (const char *)arguments[call->path];
  const int descriptor = call->descriptor == none ? AT_FDCWD : (int)arguments[call->descriptor];
  if (given && (given[0] == '/' || descriptor == AT_FDCWD)) {
    if (strlen(given) < longest)
      strcpy(path, given);
  } else if (descriptor >= 0 && descriptor < descriptors && opened[descriptor][0]) {
    strcpy(path, opened[descriptor]);
    if (given && given[0] && strlen(path) + strlen(given) + 1 < longest)
      strcat(strcat(path, "/"), given);
  }
  if (!counts(path))
    path[0] = 0;
}

static void note(long number, const char *name, const char *path) {
  char line[longest + 64], digits[24];
  size_t at = sizeof digits, length = 0;
  do
    digits[--at] = (char)('0' + number % 10);
  while (number /= 10);
  memcpy(line, digits + at, sizeof digits - at);
  length = sizeof digits - at;
  line[length++] = ' ';
  length = (size_t)(stpcpy(stpcpy(stpcpy(line + length, name), " "), path) - line);
  line[length++] = '\n';
  make(SYS_write, trace, (long)line, (long)length);
}

// --- Failing ---------------------------------------------------------------------------------------------------------

static int is_one_of(long number, const int *list) {
  for (; *list != none; ++list)
    if (*list == number)
      return 1;
  return 0;
}

/// Whether a full disk lets the call fail.
static int needs_space(long number, const long *arguments) {
  static const int list[] = {SYS_write,     SYS_pwrite64,  SYS_writev, SYS_fsync,  SYS_fdatasync,
                             SYS_fallocate, SYS_ftruncate, SYS_creat,  SYS_mkdir,  SYS_mkdirat,
                             SYS_symlink,   SYS_symlinkat, SYS_link,   SYS_linkat, none};
  if (number == SYS_open || number == SYS_openat)
    return (arguments[number == SYS_open ? 1 : 2] & O_CREAT) != 0;
  return is_one_of(number, list);
}

/// Half of a read or a write.
static long make_half(long number, const long *given) {
  static const int sized[] = {SYS_read, SYS_pread64, SYS_write, SYS_pwrite64, none};
  long arguments[6];
  memcpy(arguments, given, sizeof arguments);
  if (is_one_of(number, sized) && arguments[2] > 1)
    arguments[2] /= 2;
  if ((number == SYS_readv || number == SYS_writev) && arguments[2] > 1)
    arguments[2] = 1;
  return kiln_fault_call(number, arguments);
}

static long fail(const struct call *call, const long *arguments) {
  if (fault == half)
    return make_half(call->number, arguments);
  if (fault == killed)
    make(SYS_kill, make(SYS_getpid, 0, 0, 0), SIGKILL, 0);
  if (call->number == SYS_close) // a descriptor is closed all the same
    kiln_fault_call(call->number, arguments);
  return -error_number;
}

/// Keeps the table of open files.
static void remember(const struct call *call, const long *arguments, const char *path, long result) {
  const int opens = call->number == SYS_open || call->number == SYS_openat || call->number == SYS_creat;
  const int copies =
      call->number == SYS_fcntl && (arguments[1] == F_DUPFD || arguments[1] == F_DUPFD_CLOEXEC) && result >= 0;
  if ((opens || copies) && result >= 0 && result < descriptors)
    strcpy(opened[result], path);
  if (call->number == SYS_close && arguments[0] >= 0 && arguments[0] < descriptors)
    opened[arguments[0]][0] = 0;
}

static long handle(long number, const long *arguments) {
  const struct call *call = calls;
  while (call->number != number)
    ++call;
  char path[longest];
  find_path(call, arguments, path);
  long result;
  if (!path[0]) {
    result = kiln_fault_call(number, arguments);
  } else {
    const long count = atomic_fetch_add(&counted, 1) + 1;
    if (trace >= 0)
      note(count, call->name, path);
    const int fails =
        count == failing || (fault == full && failing && count > failing && needs_space(number, arguments));
    result = fails ? fail(call, arguments) : kiln_fault_call(number, arguments);
  }
  remember(call, arguments, path, result);
  return result;
}

/// What rt_sigprocmask does, but for SIGSYS, which is never blocked. `mask` is what will hold when the handler is done.
static long change_mask(const long *arguments, uint64_t *mask) {
  const uint64_t before = *mask, *given = (const uint64_t *)arguments[1];
  if (given) {
    const uint64_t set = *given & ~(UINT64_C(1) << (SIGSYS - 1));
    if (arguments[0] < SIG_BLOCK || arguments[0] > SIG_SETMASK)
      return -EINVAL;
    *mask = arguments[0] == SIG_BLOCK ? before | set : arguments[0] == SIG_UNBLOCK ? before & ~set : set;
  }
  if (arguments[2])
    *(uint64_t *)arguments[2] = before;
  return 0;
}

static void on_call(int signal, siginfo_t *info, void *given) {
  (void)signal;
  ucontext_t *const context = given;
  greg_t *const registers = context->uc_mcontext.gregs;
  const long arguments[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                             registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  const int before = errno;
  if (info->si_syscall == SYS_rt_sigprocmask)
    registers[REG_RAX] = change_mask(arguments, (uint64_t *)&context->uc_sigmask);
  else if (info->si_syscall == SYS_rt_sigaction) // of SIGSYS, which is ours
    registers[REG_RAX] = 0;
  else
    registers[REG_RAX] = handle(info->si_syscall, arguments);
  errno = before;
}

// --- Setting up ------------------------------------------------------------------------------------------------------

static void read_environment(void) {
  const char *text = getenv("FAULT_FOLDERS");
  folders = text ? text : "";
  text = getenv("FAULT_AT");
  failing = text ? atol(text) : 0;
  text = getenv("FAULT_WHAT");
  text = text ? text : "";
  fault = !strcmp(text, "full") ? full : !strcmp(text, "short") ? half : !strcmp(text, "kill") ? killed : with_error;
  error_number = fault == full ? ENOSPC : atoi(text);
  text = getenv("FAULT_TRACE");
  if (text) { // out of the way of the program's own files
    const int file = open(text, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    trace = fcntl(file, F_DUPFD_CLOEXEC, 1000);
    close(file);
  }
}

#define WORD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define HIGH(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member) + 4)
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skip)
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##what)

/// Writes the filter to `code`; the number of its instructions.
static unsigned short write_filter(struct sock_filter *code) {
  const uint64_t passes = (uint64_t)(uintptr_t)kiln_fault_passes;
  const struct sock_filter head[] = {
      WORD(instruction_pointer),
      UNLESS(passes, 3),
      HIGH(instruction_pointer),
      UNLESS(passes >> 32, 1),
      RETURN(ALLOW),
      WORD(nr),
      UNLESS(SYS_mmap, 3),
      WORD(args[4]),
      UNLESS(-1, 1),
      RETURN(ALLOW),
      WORD(nr),
      UNLESS(SYS_rt_sigaction, 4),
      WORD(args[0]),
      UNLESS(SIGSYS, 1),
      RETURN(TRAP),
      RETURN(ALLOW),
      UNLESS(SYS_rt_sigprocmask, 1),
      RETURN(TRAP),
  };
  unsigned short size = sizeof head / sizeof head[0];
  memcpy(code, head, sizeof head);
  for (int i = 0; i < kinds; ++i) {
    code[size++] = (struct sock_filter)UNLESS(calls[i].number, 1);
    code[size++] = (struct sock_filter)RETURN(TRAP);
  }
  code[size++] = (struct sock_filter)RETURN(ALLOW);
  return size;
}

__attribute__((constructor)) static void set_up(void) {
  read_environment();
  if (!*folders)
    return;
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
  struct sock_filter code[3 * kinds];
  struct sock_fprog program = {write_filter(code), code};
  if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    abort();
}
