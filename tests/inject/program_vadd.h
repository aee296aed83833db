/* Part of program.c: loading its kernels, and launches of one of them in every way. */

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

/* Whether so much memory is there again before long. */
static bool is_given_back(size_t own) {
  size_t available = 0, total = 0;
  const time_t until = time(NULL) + PATIENCE;
  while (available != own && time(NULL) < until) {
    usleep(1000);
    CHECK(cuMemGetInfo(&available, &total));
  }
  return available == own;
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
