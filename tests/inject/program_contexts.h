/* Part of program.c: modules that are loaded again and unloaded, and contexts that end. */

/* ---- modules */

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

/* The module that is unloaded has no variables any more, though its kernel is known. */
static void unloaded(unsigned count) {
  many("", count);
  CHECK(cuModuleUnload(module));
  load();
  many("", count);
  while (!is_stopped()) usleep(1000);
}

/* None of the memory that probes take is left once what they were for is unloaded. */
static void unload_many(unsigned count) {
  size_t own = 0, total = 0;
  CHECK(cuMemGetInfo(&own, &total));
  for (unsigned turn = 0; turn < count; turn++) {
    many("", 1);
    CHECK(cuModuleUnload(module));
    load();
  }
  printf("memory given back: %d\n", is_given_back(own));
}

/* What came of one link is loaded again, and has its variables elsewhere. */
static void linked_twice(unsigned count) {
  CUlinkState state;
  void *made = NULL;
  size_t size = 0;
  CHECK(cuModuleUnload(module));
  CHECK(cuLinkCreate(0, NULL, NULL, &state));
  CHECK(cuLinkAddData(state, CU_JIT_INPUT_PTX, image, strlen(image) + 1, "", 0, NULL, NULL));
  CHECK(cuLinkComplete(state, &made, &size));
  for (int i = 0; i < 2; i++) {
    CHECK(cuModuleLoadData(&module, made));
    tally(count);
    if (i == 0) CHECK(cuModuleUnload(module));
  }
  CHECK(cuLinkDestroy(state));
}

/* Launches from a library before and after nothing is unloaded; another came after it. */
static void unload_nothing(unsigned count) {
  const CUlibrary first = library;
  many("", count);
  load();
  (void)get("vadd");
  library = first;
  printf("no module: %d\n", cuModuleUnload(NULL));
  printf("no library: %d\n", cuLibraryUnload(NULL));
  many("", count);
}

/* Many functions that are got and never launched. */
static void burst(unsigned count) {
  static const char *const names[] = {"vadd", "twice", "scale", "tally", "wide", "nothing"};
  for (unsigned turn = 0; turn < count; turn++) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) (void)get(names[i]);
    CHECK(cuModuleUnload(module));
    load();
  }
  many("", 1);
}

/* ---- contexts */

/* Goes on in a new context in the place of one that has ended. */
static void renew(void) {
  CHECK(cuCtxPopCurrent(NULL));
  CHECK(cuDevicePrimaryCtxRelease(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxPushCurrent(context));
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

/* Two at a time, launched in by turns; the second ends before the first. */
static void two_contexts(unsigned count) {
  CUcontext second = NULL;
  const CUmodule first = module;
  CHECK(cuCtxCreate(&second, NULL, 0, 0));
  if (library == NULL) load();
  const CUmodule other = module;
  for (unsigned turn = 0; turn < count; turn++) {
    CHECK(cuCtxSetCurrent(turn % 2 ? second : context));
    module = turn % 2 ? other : first;
    many("", 1);
  }
  CHECK(cuCtxSetCurrent(second));
  CHECK(cuCtxDestroy(second));
  CHECK(cuCtxSetCurrent(context));
  module = first;
  many("", count);
}

/* A library outlives the context, its variables do not. */
static void reset(unsigned count) {
  for (int i = 0; i < 2; i++) {
    tally(count);
    if (i == 1) return;
    renew();
  }
}

static void many_contexts(unsigned count) {
  for (unsigned turn = 0; turn < count; turn++, renew()) many("", 2);
}

/* The context ends with several shapes in it; the program goes on for a while. */
static void reset_shapes(unsigned count) {
  shapes(count);
  CHECK(cuCtxPopCurrent(NULL));
  CHECK(cuDevicePrimaryCtxRelease(0));
  usleep(300000);
}

/* In two contexts by turns: those in the first have even numbers. */
static void tally_two(unsigned count) {
  CUcontext second = NULL;
  const CUfunction function = get("tally");
  int n = 5;
  void *parameters[] = {&n};
  CHECK(cuCtxCreate(&second, NULL, 0, 0));
  for (unsigned turn = 0; turn < count || !is_stopped(); turn++) {
    CHECK(cuCtxSetCurrent(turn % 2 ? second : context));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
  }
}
