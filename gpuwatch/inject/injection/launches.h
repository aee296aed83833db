/* ---- a launch of the program */

typedef struct {
  CUfunction *function;
  void ***parameters, ***extra;
  Shape shape;
  CUstream stream;
  CUpti_CallbackId id;
  const void *call;
  bool cooperative, clustered;
  uint32_t cluster[3];
} Launch;

static CUstream real_stream(CUstream stream, bool per_thread) {
  if (stream != NULL) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

static Launch read_launch(CUpti_CallbackId id, const void *call) {
  Launch launch = {.id = id, .call = call};
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      cuLaunchKernelEx_params *q = (void *)(uintptr_t)call;
      const CUlaunchConfig *c = q->config;
      launch.function = &q->f, launch.parameters = &q->kernelParams, launch.extra = &q->extra;
      launch.shape = (Shape){{c->gridDimX, c->gridDimY, c->gridDimZ},
                             {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes};
      launch.stream =
          real_stream(c->hStream, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
      for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *one = &c->attrs[i];
        if (one->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
          launch.cooperative = one->value.cooperative != 0;
        if (one->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
          launch.clustered = true;
          launch.cluster[0] = one->value.clusterDim.x;
          launch.cluster[1] = one->value.clusterDim.y;
          launch.cluster[2] = one->value.clusterDim.z;
        }
      }
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      cuLaunchKernel_params *q = (void *)(uintptr_t)call;
      launch.function = &q->f, launch.parameters = &q->kernelParams, launch.extra = &q->extra;
      launch.shape = (Shape){{q->gridDimX, q->gridDimY, q->gridDimZ},
                             {q->blockDimX, q->blockDimY, q->blockDimZ}, q->sharedMemBytes};
      launch.stream = real_stream(q->hStream, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      cuLaunchCooperativeKernel_params *q = (void *)(uintptr_t)call;
      launch.function = &q->f, launch.parameters = &q->kernelParams;
      launch.shape = (Shape){{q->gridDimX, q->gridDimY, q->gridDimZ},
                             {q->blockDimX, q->blockDimY, q->blockDimZ}, q->sharedMemBytes};
      launch.cooperative = true;
      launch.stream =
          real_stream(q->hStream, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
      break;
    }
    default: break;
  }
  return launch;
}

/* Makes the launch as the program asked for it. */
static CUresult launch_own(const Launch *launch, const Slot *slot) {
  const Shape *s = &launch->shape;
  if (launch->id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx ||
      launch->id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
    CUlaunchConfig config = *((const cuLaunchKernelEx_params *)launch->call)->config;
    config.hStream = launch->stream;
    return cuLaunchKernelEx(&config, slot->own, slot->own_parameters, slot->own_extra);
  }
  if (launch->cooperative)
    return cuLaunchCooperativeKernel(slot->own, s->grid[0], s->grid[1], s->grid[2], s->block[0],
                                     s->block[1], s->block[2], s->dynamic_shared, launch->stream,
                                     slot->own_parameters);
  return cuLaunchKernel(slot->own, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1],
                        s->block[2], s->dynamic_shared, launch->stream, slot->own_parameters,
                        slot->own_extra);
}

/* The kernel behind a handle; what was got in a way that is not seen is asked for by its name. */
static uint32_t kernel_behind(CUfunction handle) {
  const Pair *pair = find(&handles, handle);
  if (pair != NULL) return pair->value;
  const char *name = NULL;
  CUmodule module = NULL;
  CUlibrary library = NULL;
  const void *from = NULL;
  if (cuFuncGetName(&name, handle) == CUDA_SUCCESS && name != NULL) {
    if (cuFuncGetModule(&module, handle) == CUDA_SUCCESS) from = module;
  } else if (cuKernelGetName(&name, (CUkernel)handle) == CUDA_SUCCESS && name != NULL) {
    if (cuKernelGetLibrary(&library, (CUkernel)handle) == CUDA_SUCCESS) from = library;
  }
  if (name == NULL) return 0;
  const Pair *image = find(&images, from);
  const uint32_t number = kernel_of(name, image != NULL ? image->value : 0, true);
  if (number == 0) return 0;
  kernels[number].owner = (void *)(uintptr_t)from;
  kernels[number].library = library != NULL;
  put(&handles, handle, number, from);
  return number;
}

static void wait_changed(uint64_t until) {
  const uint64_t now = now_ns();
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t left = until > now ? until - now : 0;
  const uint64_t step = left < 100000000u ? left : 100000000u;
  t.tv_nsec += (long)step;
  if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
  pthread_cond_timedwait(&changed, &lock, &t);
}

static bool is_watched(uint32_t number) {
  const uint64_t until = now_ns() + WAIT_MS * 1000000ull;
  while (hold && kernels[number].wish == UNDECIDED && !dead && now_ns() < until)
    wait_changed(until);
  return kernels[number].wish == WATCHED && !dead;
}

static Slot *free_slot(Instance *instance) {
  for (uint32_t i = 0; i < instance->used; i++)
    if (instance->slots[i].state == FREE) return &instance->slots[i];
  return NULL;
}

/* Takes a slot for a launch of a watched kernel; NULL while its build is made and loaded, unless
 * the program is held, and while no slot is free, unless it waits for one. */
static Slot *take_slot(uint32_t kernel, uint32_t device, const Launch *launch, CUcontext context,
                       Build **chosen) {
  const uint64_t until = now_ns() + WAIT_MS * 1000000ull;
  for (;;) { /* what was found before a wait may be gone after it */
    if (dead || kernels[kernel].wish != WATCHED) return NULL;
    if (!callbacks_on) return NULL; /* the end of the launch would not be seen */
    Build *build = build_for(kernel, device, context, *launch->function, &launch->shape);
    if (build == NULL || build->state == REFUSED) return NULL;
    bool waits = hold && !build->late;
    if (build->state == READY && build->instance == NULL && !build->loading) {
      build->asked_by = *launch->function;
      wake();
    }
    if (build->state == READY && build->instance != NULL) {
      Slot *slot = free_slot(build->instance);
      if (slot != NULL) {
        slot->state = TAKEN;
        *chosen = build;
        return slot;
      }
      waits = wait_for_slots;
    }
    if (!waits) return NULL;
    if (now_ns() >= until) {
      build->late = true;
      return NULL;
    }
    wait_changed(until);
  }
}

/* Puts the addresses of the maps behind the program's own parameters. */
static bool give_parameters(const Build *build, Slot *slot, const Launch *launch) {
  slot->own = *launch->function;
  slot->own_parameters = *launch->parameters;
  slot->own_extra = launch->extra != NULL ? *launch->extra : NULL;
  if (!build->takes) return true;
  if (slot->own_parameters != NULL || build->parameters == 0) {
    for (uint32_t i = 0; i < build->parameters; i++)
      slot->parameters[i] = slot->own_parameters[i];
    slot->parameters[build->parameters] = slot->pointers;
    *launch->parameters = slot->parameters;
    if (launch->extra != NULL) *launch->extra = NULL;
    return true;
  }
  const void *given = NULL;
  size_t size = 0;
  for (void **one = slot->own_extra; one != NULL && *one != CU_LAUNCH_PARAM_END; one += 2) {
    if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) given = one[1];
    if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(const size_t *)one[1];
  }
  const size_t own = ((size_t)build->block_bytes + 7) / 8 * 8;
  if (given == NULL || size > own) return false;
  memset(slot->block, 0, slot->block_bytes);
  memcpy(slot->block, given, size);
  memcpy(slot->block + own, slot->pointers, build->buffers * sizeof(uint64_t));
  void *extra[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, slot->block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                    &slot->block_bytes, CU_LAUNCH_PARAM_END};
  memcpy(slot->extra, extra, sizeof extra);
  *launch->extra = slot->extra;
  return true;
}

static bool fill_variables(const Build *build, const Slot *slot, CUstream stream) {
  const Instance *instance = build->instance;
  if (!build->takes && build->buffers > 0 &&
      cuMemcpyHtoDAsync(instance->variable, slot->pointers, build->buffers * 8, stream))
    return false;
  for (uint32_t i = 0; i < build->constants; i++)
    if (instance->constant_bytes[i] > 0 &&
        cuMemcpyDtoDAsync(instance->constants[i], instance->own_constants[i],
                          instance->constant_bytes[i], stream))
      return false;
  return true;
}

static bool is_captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}
