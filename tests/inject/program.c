/* A program for the tests: what it launches goes by its first argument, how it loads its kernels by
 * the second, from the file that the third names; the fourth is a number.
 *
 * It prints what it got, which is the same whether it is watched or not.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>

enum { N = 1024, THREADS = 128, BLOCKS = N / THREADS, FEW = 64, PATIENCE = 20 };

CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     CUstream stream, void **parameters, void **extra);

static const char *loader, *image_path;
static char *image;
static CUmodule module;
static CUlibrary library;
static CUcontext context;
static unsigned wrong;
static uint64_t sum;
static unsigned refused[16];
static unsigned refused_count;

#define CHECK(call) check(call, #call)
static void check(CUresult status, const char *call) {
  if (status == CUDA_SUCCESS) return;
  printf("%s: %d\n", call, status);
  exit(3);
}

#include "program_vadd.h"

/* ---- other kernels */

static void others(unsigned count) {
  Work work = prepare("");
  CUfunction twice = get("twice");
  int n = N;
  for (unsigned turn = 0; turn < count; turn++) {
    one(&work, turn);
    void *parameters[] = {&work.a, &n};
    CHECK(cuLaunchKernel(twice, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
  }
}

static CUresult launch_scale(CUfunction scale, const Work *work, bool in_block) {
  struct { CUdeviceptr a, c; int n; } block = {work->b, work->c, N};
  size_t size = 20;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  void *parameters[] = {&block.a, &block.c, &block.n};
  return cuLaunchKernel(scale, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, in_block ? NULL : parameters,
                        in_block ? extra : NULL);
}

static void scaled(unsigned count, bool in_block) {
  Work work = prepare("");
  CUfunction scale = get("scale");
  const CUdeviceptr at = global("factor");
  for (unsigned turn = 0; turn < count; turn++) {
    const float factor = (float)turn;
    float c[N];
    fill(&work, turn);
    CHECK(cuMemcpyHtoD(at, &factor, sizeof factor));
    CHECK(launch_scale(scale, &work, in_block));
    CHECK(cuMemcpyDtoH(c, work.c, sizeof c));
    for (int i = 0; i < N; i++) wrong += c[i] != 2 * (float)i * factor;
  }
}

static void constant(unsigned count) { scaled(count, false); }
static void constant_in_block(unsigned count) { scaled(count, true); }

static void tally(unsigned count) {
  CUfunction function = get("tally");
  int n = 5, total = 0;
  void *parameters[] = {&n};
  for (unsigned turn = 0; turn < count; turn++)
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
  CHECK(cuMemcpyDtoH(&total, global("total"), sizeof total));
  printf("total %d\n", total);
}

static void wide(unsigned count) {
  Work work = prepare("");
  CUfunction function = get("wide");
  static int values[1019];
  void *parameters[] = {&work.c, values};
  for (unsigned turn = 0; turn < count; turn++) {
    int got = 0;
    values[0] = 1000 + (int)turn;
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    CHECK(cuMemcpyDtoH(&got, work.c, sizeof got));
    wrong += got != values[0];
  }
}

static void launch_nothing(CUfunction function, unsigned blocks) {
  CHECK(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void nothing(unsigned count) {
  CUfunction function = get("nothing");
  for (unsigned turn = 0; turn < count; turn++) launch_nothing(function, 1);
}

static void large(unsigned count) {
  CUfunction function = get("nothing");
  for (unsigned turn = 0; turn < count; turn++) launch_nothing(function, 100000);
}

static void sizes(unsigned count) {
  CUfunction function = get("nothing");
  for (unsigned turn = 0; turn < count; turn++) launch_nothing(function, turn + 1);
}

#include "program_contexts.h"

/* ---- graphs */

/* While one stream is captured, there are launches in it and in another. */
static void graph(unsigned count) {
  Work work = prepare(""), beside = prepare("");
  CUgraph made;
  CUgraphExec ready;
  CHECK(cuStreamCreate(&work.stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuStreamCreate(&beside.stream, CU_STREAM_NON_BLOCKING));
  fill(&beside, 9);
  CHECK(cuStreamBeginCapture(work.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CHECK(launch(&work, BLOCKS, THREADS, N));
  CHECK(launch(&beside, BLOCKS, THREADS, N));
  CHECK(launch(&work, BLOCKS, THREADS, N));
  usleep(50000);
  CHECK(cuStreamEndCapture(work.stream, &made));
  CHECK(cuGraphInstantiate(&ready, made, 0));
  compare(&beside, 9, N);
  for (unsigned turn = 0; turn < count; turn++) {
    fill(&work, turn);
    CHECK(cuGraphLaunch(ready, work.stream));
    compare(&work, turn, N);
  }
}

/* ---- until it is stopped */

static void until(unsigned count) {
  (void)count;
  Work work = prepare("");
  unsigned turn = 0;
  for (; !is_stopped(); turn++) one(&work, turn % 100);
  sum = 0;
  let_go(&work);
}

/* Goes on launching until all memory is the program's again, which it is once it was another's. */
static void given_back(unsigned count) {
  (void)count;
  Work work = prepare("");
  size_t own = 0, available = 0, total = 0;
  CHECK(cuMemGetInfo(&own, &total));
  for (unsigned turn = 0; !is_stopped(); turn++) one(&work, turn % 100);
  const time_t until = time(NULL) + PATIENCE;
  one(&work, 0);
  for (unsigned turn = 0; time(NULL) < until && available != own; turn++, usleep(1000)) {
    CHECK(cuMemGetInfo(&available, &total));
    one(&work, turn % 100);
  }
  sum = 0;
  printf("memory given back: %d\n", available == own);
}

/* ---- threads and signals */

static void *go_on_launching(void *work) {
  CHECK(cuCtxPushCurrent(context));
  for (;; pthread_testcancel()) CHECK(launch(work, BLOCKS, THREADS, N));
  return NULL;
}

static void cancelled(unsigned count) {
  Work work = prepare("");
  pthread_t thread;
  one(&work, 0);
  pthread_create(&thread, NULL, go_on_launching, &work);
  usleep(100000);
  pthread_cancel(thread);
  pthread_join(thread, NULL);
  for (unsigned turn = 0; turn < count; turn++) one(&work, turn);
}

static void end_with(int signal) {
  (void)signal;
  exit(9);
}

/* Ends so many ms after it has begun to launch. */
static void exit_in_signal(unsigned count) {
  Work work = prepare("");
  one(&work, 0);
  signal(SIGALRM, end_with);
  ualarm(count * 1000, 0);
  for (;;) CHECK(launch(&work, BLOCKS, THREADS, N));
}

/* ---- processes */

static char **arguments;

static void fork_first(unsigned count) {
  fflush(stdout);
  const pid_t child = fork();
  begin();
  many("", count);
  if (child == 0) return;
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: status %d\n", WEXITSTATUS(status));
}

/* The child of a process that uses CUDA does not; it lives on until it is stopped. */
static void fork_after(unsigned count) {
  many("", count);
  fflush(stdout);
  if (fork() != 0) return;
  while (!is_stopped()) usleep(1000);
  _exit(0);
}

/* A child of a child opens files, of which one has a number that was closed in its parent. */
static void fork_twice(unsigned count) {
  many("", count);
  fflush(stdout);
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    int files[4];
    for (int i = 0; i < 4; i++) files[i] = open("/dev/null", O_RDONLY);
    const pid_t second = fork();
    if (second == 0) {
      int lost = 0;
      for (int i = 0; i < 4; i++) lost += fcntl(files[i], F_GETFD) < 0;
      _exit(lost);
    }
    waitpid(second, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  waitpid(child, &status, 0);
  printf("files lost: %d\n", WEXITSTATUS(status));
}

static void spawn(unsigned count) {
  many("", count);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    char *words[] = {arguments[0], "many", arguments[2], arguments[3], arguments[4], NULL};
    execv(arguments[0], words);
    _exit(5);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("child: status %d\n", WEXITSTATUS(status));
}

static void report(const char *mode) {
  printf("%s: checksum %llu, wrong %u\n", mode, (unsigned long long)sum, wrong);
  for (unsigned i = 0; i < refused_count && i < 16; i++) printf("launch: %u\n", refused[i]);
  fflush(stdout);
}

/* All other modes launch vadd in the way that they name. */
static const struct {
  const char *mode;
  void (*run)(unsigned count);
} MODES[] = {
    {"shapes", shapes},
    {"shared", shared},
    {"bad", bad},
    {"threads", threads},
    {"others", others},
    {"constant", constant},
    {"constant-extra", constant_in_block},
    {"tally", tally},
    {"wide", wide},
    {"nothing", nothing},
    {"large", large},
    {"sizes", sizes},
    {"reload", reload},
    {"replaced", replaced},
    {"unloaded", unloaded},
    {"contexts", contexts},
    {"two-contexts", two_contexts},
    {"reset", reset},
    {"reset-shapes", reset_shapes},
    {"many-contexts", many_contexts},
    {"tally-two", tally_two},
    {"unload-many", unload_many},
    {"unload-nothing", unload_nothing},
    {"linked-twice", linked_twice},
    {"burst", burst},
    {"graph", graph},
    {"until", until},
    {"given-back", given_back},
    {"cancelled", cancelled},
    {"exit-in-signal", exit_in_signal},
    {"fork-after", fork_after},
    {"fork-twice", fork_twice},
    {"spawn", spawn},
};

static void run(const char *mode, unsigned count) {
  for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++)
    if (strcmp(MODES[i].mode, mode) == 0) {
      MODES[i].run(count);
      return;
    }
  many(mode, count);
}

int main(int count, char **words) {
  if (count != 5) return 2;
  arguments = words, loader = words[2], image_path = words[3];
  const unsigned number = (unsigned)atoi(words[4]);
  if (strcmp(words[1], "fork") == 0) {
    fork_first(number);
    report("fork");
    return 0;
  }
  begin();
  run(words[1], number);
  report(words[1]);
  if (strcmp(words[1], "crash") == 0) raise(SIGSEGV);
  return strcmp(words[1], "exit") == 0 ? 7 : 0;
}
