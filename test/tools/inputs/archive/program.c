/* A program in C99 and in C++ that runs two kernels of archives. Prints what the kernels print, the text of a failed
 * check, and `done`; the status is the number of the line that saw something else than it expected. */
#include "look.h"
#include "scale.h"

#include <pthread.h>
#include <stdio.h>

enum { M = 1000, D = 64, THREADS = 3 };

struct team {
  void (*work)(void *);
  void *state;
};
static void *join_team(void *argument) {
  const struct team *team = (const struct team *)argument;
  team->work(team->state);
  return NULL;
}
static void parallel(void (*work)(void *), void *state) {
  struct team team;
  pthread_t threads[THREADS];
  int i;
  team.work = work;
  team.state = state;
  for (i = 0; i < THREADS; ++i)
    pthread_create(&threads[i], NULL, join_team, &team);
  for (i = 0; i < THREADS; ++i)
    pthread_join(threads[i], NULL);
}

int main(void) {
  static float x[M * D], y[M * D];
  scale_arguments arguments = {{x, {M, D}, {D, 1}}, {y, {M, D}, {D, 1}}, 0.5f, 1};
  look_arguments seen = {{x, {4}, {1}}, {y, {4}, {1}}};
  const int64_t grid[3] = {M / 4, 1, 1}, one[3] = {1, 1, 1}, none[3] = {0, 1, 1};
  const char *error;
  int i;
  for (i = 0; i < M * D; ++i)
    x[i] = (float)i;
  if (scale_run(&arguments, none, NULL) || y[1] != 0)
    return __LINE__;
  if (scale_run(&arguments, grid, NULL))
    return __LINE__;
  for (i = 0; i < M * D; ++i)
    if (y[i] != 0.5f * x[i])
      return __LINE__;
  arguments.default_ = 0;
  if (scale_run(&arguments, grid, parallel))
    return __LINE__;
  for (i = 0; i < M * D; ++i)
    if (y[i] != x[i])
      return __LINE__;
  if (look_run(&seen, one, NULL) || y[3] * y[3] < 2.99f)
    return __LINE__;
  x[2] = -0.25f;
  error = look_run(&seen, one, NULL);
  puts(error ? error : "no error");
  puts("done");
  return 0;
}
