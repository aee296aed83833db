/* ---- gpuwatch's commands */

static const CUpti_CallbackId LAUNCHES[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
};

/* Without the lock: CUPTI may wait for callbacks that are under way, and those for the lock. To be
 * called with false only when `callbacks_on` is false already and no launch is in the driver's
 * hands, so that no launch is taken whose end would not be seen. */
static void see_launches(bool on) {
  static bool enabled;
  if (on != enabled && subscriber != NULL) {
    enabled = on;
    for (size_t i = 0; i < sizeof LAUNCHES / sizeof *LAUNCHES; i++)
      (void)cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCHES[i]);
  }
  callbacks_on = on && subscriber != NULL;
}

static uint64_t number(char **rest) {
  const char *word = strtok_r(NULL, " ", rest);
  return word == NULL ? 0 : strtoull(word, NULL, 10);
}

static char *word(char **rest) {
  const char *found = strtok_r(NULL, " ", rest);
  return strdup(found == NULL ? "" : found);
}

static Build *build_with(uint32_t id) {
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->id == id && !builds[i]->dropped) return builds[i];
  return NULL;
}

/* The build that was asked for and is still wanted. */
static Build *named_build(char **rest) {
  Build *build = build_with((uint32_t)number(rest));
  return build != NULL && build->state == WANTED ? build : NULL;
}

/* build ID cubin entry takes variable parameters bytes slots
 * buffers SIZE... constants NAME... fixed (INDEX FILE)... */
static void take_build(char **rest) {
  Build *build = named_build(rest);
  if (build == NULL) return;
  char *cubin = word(rest);
  snprintf(build->cubin, sizeof build->cubin, "%s", cubin);
  free(cubin);
  build->entry = word(rest);
  build->takes = number(rest) != 0;
  build->variable = word(rest);
  build->parameters = (uint32_t)number(rest);
  build->block_bytes = (uint32_t)number(rest);
  build->slots = (uint32_t)number(rest);
  if (build->slots < 1 || build->slots > SLOTS) build->slots = SLOTS;
  build->buffers = (uint32_t)number(rest);
  build->sizes = calloc(build->buffers + 1, sizeof *build->sizes);
  if (build->sizes == NULL) return;
  for (uint32_t i = 0; i < build->buffers; i++) build->sizes[i] = number(rest);
  build->constants = (uint32_t)number(rest);
  if (build->constants > 16) build->constants = 16;
  for (uint32_t i = 0; i < build->constants; i++) build->constant_names[i] = word(rest);
  build->fixed = (uint32_t)number(rest);
  if (build->fixed > 16) build->fixed = 16;
  for (uint32_t i = 0; i < build->fixed; i++) {
    build->fixed_index[i] = (uint32_t)number(rest);
    build->fixed_file[i] = word(rest);
  }
  build->state = READY;
}

static void drop_builds(uint32_t kernel) {
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->kernel == kernel) builds[i]->dropped = true;
}

static void take_drop(char **rest) {
  Build *build = build_with((uint32_t)number(rest));
  if (build != NULL) build->dropped = true;
}

static void take_watch(char **rest) {
  const uint32_t kernel = (uint32_t)number(rest);
  const uint64_t first = number(rest), last = number(rest);
  if (kernel == 0 || kernel >= kernel_count) return;
  drop_builds(kernel);
  watched_count += kernels[kernel].wish != WATCHED;
  kernels[kernel].wish = WATCHED;
  kernels[kernel].first = first, kernels[kernel].last = last;
}

static void take_ignore(char **rest) {
  const uint32_t kernel = (uint32_t)number(rest);
  if (kernel == 0 || kernel >= kernel_count) return;
  watched_count -= kernels[kernel].wish == WATCHED;
  kernels[kernel].wish = IGNORED;
  drop_builds(kernel);
}

/* locate BUILD NAME...: where the variables of its own module lie, in the context it is for */
static void take_locate(char **rest) {
  const uint32_t id = (uint32_t)number(rest);
  const Build *build = build_with(id);
  if (build != NULL) (void)cuCtxPushCurrent(build->context);
  for (const char *name = strtok_r(NULL, " ", rest); build && name; name = strtok_r(NULL, " ", rest)) {
    CUdeviceptr at = 0;
    size_t size = 0;
    const CUresult status = own_global(build->owner, build->library, name, &at, &size);
    tell("at %u %s %llu %zu", id, name, status == CUDA_SUCCESS ? at : 0, size);
  }
  tell("located %u", id);
  if (build != NULL) (void)cuCtxPopCurrent(NULL);
}

static void take_free(char **rest) {
  const uint32_t id = (uint32_t)number(rest), index = (uint32_t)number(rest);
  for (uint32_t i = 0; i < build_count; i++) {
    Instance *instance = builds[i]->instance;
    if (builds[i]->id != id || instance == NULL || index >= instance->used) continue;
    Slot *slot = &instance->slots[index];
    if (slot->state != READ) return;
    (void)cuCtxPushCurrent(instance->context);
    const bool good = clear(builds[i], slot, instance->stream) == CUDA_SUCCESS &&
                      cuEventRecord(slot->copied, instance->stream) == CUDA_SUCCESS;
    (void)cuCtxPopCurrent(NULL);
    if (good) slot->state = CLEARING, wake();
  }
}

static void obey(char *line) {
  char *rest = NULL;
  const char *verb = strtok_r(line, " ", &rest);
  if (verb == NULL) return;
  if (strcmp(verb, "watch") == 0) take_watch(&rest);
  else if (strcmp(verb, "ignore") == 0) take_ignore(&rest);
  else if (strcmp(verb, "build") == 0) take_build(&rest);
  else if (strcmp(verb, "locate") == 0) take_locate(&rest);
  else if (strcmp(verb, "free") == 0) take_free(&rest);
  else if (strcmp(verb, "drop") == 0) take_drop(&rest);
  else if (strcmp(verb, "none") == 0) {
    Build *build = named_build(&rest);
    if (build != NULL) build->state = REFUSED;
  } else if (strcmp(verb, "store") == 0) {
    const uint32_t kernel = (uint32_t)number(&rest);
    const int64_t launch = (int64_t)number(&rest);
    if (kernel == 0 || kernel >= kernel_count) return;
    free(kernels[kernel].variables);
    kernels[kernel].stored = launch;
    kernels[kernel].variables = strdup(rest == NULL ? "" : rest);
  }
  pthread_cond_broadcast(&changed);
}
