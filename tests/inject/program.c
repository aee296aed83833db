/* A program for the tests: what it launches goes by its first argument, how it loads its kernels by
 * the second, from the file that the third names; the fourth is a number.
 *
 * It prints what it got, which is the same whether it is watched or not.
 */
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

/* ---- loading */

static char *read_image(void) {
  FILE *file = fopen(image_path, "rb");
  if (file == NULL) exit(4);
  char *content = calloc(1, 1 << 20);
  if (fread(content, 1, (1 << 20) - 1, file) == 0) exit(4);
  fclose(file);
  return content;
}

static void load_linked(void) {
  CUlinkState state;
  void *made = NULL;
  size_t size = 0;
  CHECK(cuLinkCreate(0, NULL, NULL, &state));
  CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, image, strlen(image) + 1, "", 0, NULL, NULL));
  CHECK(cuLinkComplete(state, &made, &size));
  CHECK(cuModuleLoadData(&module, made));
  CHECK(cuLinkDestroy(state));
}

static void load(void) {
  if (image == NULL) image = read_image();
  const bool is_library = strcmp(loader, "library") == 0 || strcmp(loader, "early") == 0;
  if (is_library)
    CHECK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  else if (strcmp(loader, "library-file") == 0)
    CHECK(cuLibraryLoadFromFile(&library, image_path, NULL, NULL, 0, NULL, NULL, 0));
  else if (strcmp(loader, "fatbin") == 0) CHECK(cuModuleLoadFatBinary(&module, image));
  else if (strcmp(loader, "wrapped") == 0) {
    const struct {
      int magic, version;
      const void *data, *unused;
    } wrapper = {0x466243B1, 1, image, NULL};
    CHECK(cuModuleLoadData(&module, &wrapper));
  } else if (strcmp(loader, "file") == 0) CHECK(cuModuleLoad(&module, image_path));
  else if (strcmp(loader, "linked") == 0) load_linked();
  else if (strcmp(loader, "options") == 0)
    CHECK(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
  else CHECK(cuModuleLoadData(&module, image));
}

/* A function, or a kernel: launches take both. */
static CUfunction get(const char *name) {
  CUfunction function = NULL;
  CUkernel kernel = NULL;
  if (library == NULL) CHECK(cuModuleGetFunction(&function, module, name));
  else CHECK(cuLibraryGetKernel(&kernel, library, name));
  return function != NULL ? function : (CUfunction)kernel;
}

static CUdeviceptr global(const char *name) {
  CUdeviceptr at = 0;
  size_t size = 0;
  if (library == NULL) CHECK(cuModuleGetGlobal(&at, &size, module, name));
  else CHECK(cuLibraryGetGlobal(&at, &size, library, name));
  return at;
}

static void begin(void) {
  CUdevice device;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  if (strcmp(loader, "early") == 0) {
    load();
    (void)get("vadd");
  }
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxPushCurrent(context));
  if (library == NULL) load();
}

static bool is_stopped(void) {
  const char *path = getenv("PROGRAM_STOP");
  return path == NULL || access(path, F_OK) == 0;
}

/* ---- launches of vadd, each of which is looked at */

typedef struct {
  CUdeviceptr a, b, c;
  CUfunction vadd;
  CUstream stream;
  unsigned shared;
  const char *how;
} Work;

static Work prepare(const char *how) {
  Work work = {.how = how, .vadd = get("vadd")};
  CHECK(cuMemAlloc(&work.a, N * sizeof(float)));
  CHECK(cuMemAlloc(&work.b, N * sizeof(float)));
  CHECK(cuMemAlloc(&work.c, N * sizeof(float)));
  return work;
}

static void let_go(const Work *work) {
  CHECK(cuMemFree(work->a));
  CHECK(cuMemFree(work->b));
  CHECK(cuMemFree(work->c));
}

static CUresult launch_in_block(const Work *work, unsigned blocks, unsigned threads, int n) {
  struct { CUdeviceptr a, b, c; int n; } block = {work->a, work->b, work->c, n};
  size_t size = 28;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  return cuLaunchKernel(work->vadd, blocks, 1, 1, threads, 1, 1, 0, work->stream, NULL, extra);
}

static CUresult launch(const Work *work, unsigned blocks, unsigned threads, int n) {
  Work w = *work;
  void *parameters[] = {&w.a, &w.b, &w.c, &n};
  if (strcmp(w.how, "extra") == 0) return launch_in_block(work, blocks, threads, n);
  if (strcmp(w.how, "cooperative") == 0)
    return cuLaunchCooperativeKernel(w.vadd, blocks, 1, 1, threads, 1, 1, w.shared, w.stream,
                                     parameters);
  if (strcmp(w.how, "per-thread") == 0)
    return cuLaunchKernel_ptsz(w.vadd, blocks, 1, 1, threads, 1, 1, w.shared, w.stream, parameters,
                               NULL);
  if (strcmp(w.how, "config") == 0) {
    CUlaunchConfig config = {blocks, 1, 1, threads, 1, 1, w.shared, w.stream, NULL, 0};
    return cuLaunchKernelEx(&config, w.vadd, parameters, NULL);
  }
  return cuLaunchKernel(w.vadd, blocks, 1, 1, threads, 1, 1, w.shared, w.stream, parameters, NULL);
}

static void fill(const Work *work, unsigned turn) {
  float a[N], b[N], c[N] = {0};
  for (int i = 0; i < N; i++) a[i] = (float)(i + (int)turn), b[i] = (float)(2 * i);
  CHECK(cuMemcpyHtoD(work->a, a, sizeof a));
  CHECK(cuMemcpyHtoD(work->b, b, sizeof b));
  CHECK(cuMemcpyHtoD(work->c, c, sizeof c));
}

static void compare(const Work *work, unsigned turn, int n) {
  float c[N];
  uint64_t total = 0;
  unsigned bad = 0;
  CHECK(cuMemcpyDtoH(c, work->c, sizeof c));
  for (int i = 0; i < N; i++) {
    bad += c[i] != (i < n ? (float)(3 * i + (int)turn) : 0);
    total += (uint64_t)c[i] * (uint64_t)(i + 1);
  }
  __atomic_add_fetch(&wrong, bad, __ATOMIC_RELAXED);
  __atomic_add_fetch(&sum, total, __ATOMIC_RELAXED);
}

static void one(const Work *work, unsigned turn) {
  fill(work, turn);
  CHECK(launch(work, BLOCKS, THREADS, N));
  compare(work, turn, N);
}

static void many(const char *how, unsigned count) {
  Work work = prepare(how);
  for (unsigned turn = 0; turn < count; turn++) one(&work, turn);
  let_go(&work);
}

/* The dynamic shared memory is more than a kernel may have without an attribute. */
static void shared(unsigned count) {
  Work work = prepare("");
  work.shared = 60000;
  CHECK(cuFuncSetAttribute(work.vadd, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
  for (unsigned turn = 0; turn < count; turn++) one(&work, turn);
}

static void shapes(unsigned count) {
  Work work = prepare("");
  for (unsigned turn = 0; turn < count; turn++) {
    const bool few = turn % 2 == 1;
    fill(&work, turn);
    CHECK(launch(&work, few ? 2 : BLOCKS, few ? FEW / 2 : THREADS, few ? FEW : N));
    compare(&work, turn, few ? FEW : N);
  }
}

/* Launches that the driver refuses; what it says is printed. */
static void bad(unsigned count) {
  Work work = prepare("");
  for (unsigned turn = 0; turn < count; turn++) {
    fill(&work, turn);
    refused[refused_count++ % 16] = launch(&work, BLOCKS, 0, N);
  }
  one(&work, 0);
}

static void *in_thread(void *number) {
  CHECK(cuCtxPushCurrent(context));
  Work work = prepare("");
  CHECK(cuStreamCreate(&work.stream, CU_STREAM_NON_BLOCKING));
  const unsigned count = (unsigned)(uintptr_t)number;
  for (unsigned turn = 0; turn < count; turn++) one(&work, turn);
  return NULL;
}

static void threads(unsigned count) {
  pthread_t all[4];
  for (int i = 0; i < 4; i++) pthread_create(&all[i], NULL, in_thread, (void *)(uintptr_t)count);
  for (int i = 0; i < 4; i++) pthread_join(all[i], NULL);
}

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

/* ---- modules, contexts, graphs */

static void reload(unsigned count) {
  for (unsigned turn = 0; turn < count; turn++) {
    const CUmodule before = module;
    const CUfunction function = get("vadd");
    many("", 2);
    CHECK(cuModuleUnload(module));
    load();
    printf("same handles: %d %d\n", module == before, get("vadd") == function);
  }
}

/* The module that is loaded in its place has the same handles, and another kernel behind them. */
static void replaced(unsigned count) {
  many("", count);
  CUfunction before = get("vadd"), after = NULL;
  CHECK(cuModuleUnload(module));
  load();
  CHECK(cuModuleGetFunction(&after, module, "nothing"));
  printf("same handle: %d\n", before == after);
  for (unsigned turn = 0; turn < count; turn++) launch_nothing(after, 1);
}

static void contexts(unsigned count) {
  for (int i = 0; i < 2; i++) {
    many("", count);
    CHECK(cuCtxPopCurrent(NULL));
    CHECK(cuDevicePrimaryCtxRelease(0));
    if (i == 1) return;
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxPushCurrent(context));
    load();
  }
}

/* A library outlives the context, its variables do not. */
static void reset(unsigned count) {
  for (int i = 0; i < 2; i++) {
    tally(count);
    if (i == 1) return;
    CHECK(cuCtxPopCurrent(NULL));
    CHECK(cuDevicePrimaryCtxRelease(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxPushCurrent(context));
  }
}

/* The module that is unloaded has no variables any more, though its kernel is known. */
static void unloaded(unsigned count) {
  many("", count);
  CHECK(cuModuleUnload(module));
  load();
  many("", count);
  while (!is_stopped()) usleep(1000);
}

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
    {"reset", reset},
    {"graph", graph},
    {"until", until},
    {"given-back", given_back},
    {"fork-after", fork_after},
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
