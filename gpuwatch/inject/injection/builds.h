/* ---- probed kernels */

static bool same_shape(const Shape *one, const Shape *other) {
  return memcmp(one, other, sizeof *one) == 0;
}

static Build *build_for(uint32_t kernel, uint32_t device, CUcontext context, CUfunction handle,
                        const Shape *shape) {
  const Pair *known = find(&handles, handle);
  const void *from = known != NULL ? known->owner : kernels[kernel].owner;
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->kernel == kernel && builds[i]->context == context &&
        builds[i]->owner == from && !builds[i]->dropped && same_shape(&builds[i]->shape, shape))
      return builds[i];
  const Pair *image = find(&images, from); /* of a library it lies in no context */
  const bool library =
      kernels[kernel].owner == from ? kernels[kernel].library : image != NULL && !image->owner;
  static bool full;
  static uint32_t asked;
  Build *build = build_count < MOST_BUILDS ? malloc(sizeof *build) : NULL;
  if (build == NULL) {
    if (!full) tell("problem no more shapes can be probed: launches in further ones run plain");
    full = true;
    return NULL;
  }
  *build = (Build){
      .id = ++asked, .kernel = kernel, .device = device, .context = context, .owner = from,
      .library = library, .shape = *shape, .state = WANTED};
  builds[build_count++] = build;
  const uint32_t *g = shape->grid, *b = shape->block;
  tell("want %u %u %u %u %u %u %u %u %u %u", asked, kernel, device, g[0], g[1], g[2], b[0], b[1], b[2],
       shape->dynamic_shared);
  return build;
}

static void refuse(Build *build, const char *what, CUresult status) {
  build->state = REFUSED;
  tell("refused %u %u %s: %s", build->id, build->kernel, what, words_of(status));
  pthread_cond_broadcast(&changed);
}

static void release(Instance *instance) {
  if (instance == NULL) return;
  (void)cuCtxPushCurrent(instance->context);
  if (instance->stream != NULL) (void)cuStreamSynchronize(instance->stream);
  for (uint32_t i = 0; i < instance->used; i++) {
    Slot *slot = &instance->slots[i];
    if (slot->memory != 0) (void)cuMemFree(slot->memory);
    if (slot->launched != NULL) (void)cuEventDestroy(slot->launched);
    if (slot->copied != NULL) (void)cuEventDestroy(slot->copied);
    free(slot->pointers), free(slot->parameters), free(slot->block);
  }
  if (instance->slots[0].host != NULL) {
    (void)cuMemHostUnregister(instance->slots[0].host);
    munmap(instance->slots[0].host, instance->slot_bytes * instance->used);
  }
  if (instance->stream != NULL) (void)cuStreamDestroy(instance->stream);
  if (instance->module != NULL) (void)cuModuleUnload(instance->module);
  (void)cuCtxPopCurrent(NULL);
  free(instance);
}

static bool in_use(const Instance *instance) {
  for (uint32_t i = 0; instance != NULL && i < instance->used; i++)
    if (instance->slots[i].state == TAKEN || instance->slots[i].state == LAUNCHED ||
        instance->slots[i].state == COPYING)
      return true;
  return false;
}

/* Whether a launch is in the driver's hands: its end has to be seen. */
static bool launching(void) {
  for (uint32_t i = 0; i < build_count; i++)
    for (uint32_t k = 0; builds[i]->instance != NULL && k < builds[i]->instance->used; k++)
      if (builds[i]->instance->slots[k].state == TAKEN) return true;
  return false;
}

/* Lets go of the lock meanwhile. A context in which something is released may not end before. */
static void release_apart(Instance *instance) {
  releasing++;
  pthread_mutex_unlock(&lock);
  release(instance);
  pthread_mutex_lock(&lock);
  releasing--;
}

static void free_build(Build *build) {
  free(build->entry), free(build->variable), free(build->sizes);
  for (uint32_t k = 0; k < build->constants; k++) free(build->constant_names[k]);
  for (uint32_t k = 0; k < build->fixed; k++) free(build->fixed_file[k]);
  free(build);
}

/* Frees what nothing uses any more: dropped builds, and what refused ones had loaded. */
static void sweep(void) {
  for (uint32_t i = 0; i < build_count;) {
    Build *build = builds[i];
    const bool idle = !build->loading && !in_use(build->instance);
    if (idle && build->dropped) {
      builds[i] = builds[--build_count];
      release_apart(build->instance);
      tell("freed %u", build->id);
      free_build(build);
    } else if (idle && build->state == REFUSED && build->instance != NULL) {
      Instance *instance = build->instance;
      build->instance = NULL;
      release_apart(instance);
    } else {
      i++;
    }
  }
}

static CUresult own_global(const void *owner, bool library, const char *name, CUdeviceptr *at,
                           size_t *size) {
  if (owner == NULL) return CUDA_ERROR_NOT_FOUND; /* unloaded */
  return library ? cuLibraryGetGlobal(at, size, (CUlibrary)(uintptr_t)owner, name)
                 : cuModuleGetGlobal(at, size, (CUmodule)(uintptr_t)owner, name);
}

static uint8_t *map_slots(const Build *build, size_t size) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/slots-%u", folder, build->id);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return NULL;
  void *memory = MAP_FAILED;
  if (make_room(fd, size))
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

/* In a stream of ours: the legacy one waits for all others, and disturbs those that are captured. */
static CUresult fill_fixed(const Build *build, CUdeviceptr memory, const size_t *offsets,
                           CUstream stream) {
  for (uint32_t i = 0; i < build->fixed; i++) {
    const uint32_t index = build->fixed_index[i];
    const int fd = open(build->fixed_file[i], O_RDONLY | O_CLOEXEC);
    uint8_t *content = fd < 0 ? NULL : malloc(build->sizes[index] + 1);
    const ssize_t got = content == NULL ? -1 : read(fd, content, build->sizes[index]);
    if (fd >= 0) close(fd);
    CUresult status = CUDA_ERROR_FILE_NOT_FOUND;
    if (got == (ssize_t)build->sizes[index])
      status = got == 0 ? CUDA_SUCCESS
                        : cuMemcpyHtoDAsync(memory + offsets[index], content, (size_t)got, stream);
    if (status == CUDA_SUCCESS) status = cuStreamSynchronize(stream);
    free(content);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

/* Whether a probed kernel is loaded just now into a context, or beside a module. */
static bool loads_in(const void *owner) {
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->loading && (builds[i]->context == owner || builds[i]->owner == owner))
      return true;
  return false;
}

static bool is_fixed(const Build *build, uint32_t index) {
  for (uint32_t i = 0; i < build->fixed; i++)
    if (build->fixed_index[i] == index) return true;
  return false;
}

/* Clears the buffers of a slot but those that the kernel only reads. */
static CUresult clear(const Build *build, const Slot *slot, CUstream stream) {
  size_t at = 0;
  for (uint32_t i = 0; i < build->buffers; i++) {
    const size_t size = (build->sizes[i] + 255) & ~(size_t)255;
    if (!is_fixed(build, i) && build->sizes[i] > 0) {
      const CUresult status = cuMemsetD8Async(slot->memory + at, 0, build->sizes[i], stream);
      if (status != CUDA_SUCCESS) return status;
    }
    at += size;
  }
  return CUDA_SUCCESS;
}

static CUresult make_slot(const Build *build, Instance *instance, Slot *slot) {
  CUresult status = cuMemAlloc(&slot->memory, instance->slot_bytes);
  if (status == CUDA_SUCCESS) status = cuEventCreate(&slot->launched, CU_EVENT_DISABLE_TIMING);
  if (status == CUDA_SUCCESS) status = cuEventCreate(&slot->copied, CU_EVENT_DISABLE_TIMING);
  if (status != CUDA_SUCCESS) return status;
  slot->pointers = calloc(build->buffers + 1, sizeof(uint64_t));
  slot->parameters = calloc(build->parameters + 1, sizeof(void *));
  slot->block_bytes = ((size_t)build->block_bytes + 7) / 8 * 8 + build->buffers * 8;
  slot->block = calloc(1, slot->block_bytes + 8);
  size_t *offsets = calloc(build->buffers + 1, sizeof(size_t));
  if (!slot->pointers || !slot->parameters || !slot->block || !offsets) {
    free(offsets);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (uint32_t i = 0; i < build->buffers; i++) {
    offsets[i + 1] = offsets[i] + ((build->sizes[i] + 255) & ~(size_t)255);
    slot->pointers[i] = slot->memory + offsets[i];
  }
  status = fill_fixed(build, slot->memory, offsets, instance->stream);
  free(offsets);
  return status == CUDA_SUCCESS ? clear(build, slot, instance->stream) : status;
}

static CUfunction own_function(CUfunction handle) {
  CUfunction function = NULL;
  if (cuKernelGetFunction(&function, (CUkernel)handle) == CUDA_SUCCESS) return function;
  return handle;
}

/* As the launch that is replaced would have done: a later one may come when nothing can be loaded,
 * behind a kernel that waits for it. Since CUDA 12.4. */
extern CUresult CUDAAPI cuFuncLoad(CUfunction function) __attribute__((weak));
static void load_own(CUfunction function) {
  if (cuFuncLoad != NULL) (void)cuFuncLoad(function);
}

static CUresult find_constants(const Build *build, Instance *instance) {
  for (uint32_t i = 0; i < build->constants; i++) {
    size_t size = 0;
    CUresult status = own_global(build->owner, build->library, build->constant_names[i],
                                 &instance->own_constants[i], &instance->constant_bytes[i]);
    if (status != CUDA_SUCCESS) return status;
    status = cuModuleGetGlobal(&instance->constants[i], &size, instance->module,
                               build->constant_names[i]);
    if (status == CUDA_ERROR_NOT_FOUND) instance->constant_bytes[i] = 0;
    else if (status != CUDA_SUCCESS) return status;
    else if (size < instance->constant_bytes[i]) instance->constant_bytes[i] = size;
  }
  return CUDA_SUCCESS;
}

static const CUfunction_attribute CARRIED[] = {
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
};

static CUresult carry_attributes(CUfunction from, CUfunction to) {
  for (size_t i = 0; i < sizeof CARRIED / sizeof *CARRIED; i++) {
    int value = 0, present = 0;
    if (cuFuncGetAttribute(&value, CARRIED[i], from) != CUDA_SUCCESS) continue;
    if (cuFuncGetAttribute(&present, CARRIED[i], to) == CUDA_SUCCESS && present == value) continue;
    const CUresult status = cuFuncSetAttribute(to, CARRIED[i], value);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

static CUresult fill_instance(Build *build, Instance *instance, CUfunction own,
                              const char **what) {
  *what = "its module cannot be loaded";
  CUresult status = cuModuleLoad(&instance->module, build->cubin);
  if (status == CUDA_SUCCESS)
    status = cuModuleGetFunction(&instance->function, instance->module, build->entry);
  size_t size = 0;
  if (status == CUDA_SUCCESS && !build->takes && build->buffers > 0)
    status = cuModuleGetGlobal(&instance->variable, &size, instance->module, build->variable);
  if (status != CUDA_SUCCESS) return status;
  *what = "its variables are not to be found";
  if ((status = find_constants(build, instance)) != CUDA_SUCCESS) return status;
  *what = "its attributes cannot be set";
  if ((status = carry_attributes(own, instance->function)) != CUDA_SUCCESS) return status;
  *what = "no memory for its maps";
  for (uint32_t i = 0; i < build->buffers; i++)
    instance->slot_bytes += (build->sizes[i] + 255) & ~(size_t)255;
  if (instance->slot_bytes == 0) instance->slot_bytes = 256;
  status = cuStreamCreate(&instance->stream, CU_STREAM_NON_BLOCKING);
  for (uint32_t i = 0; i < build->slots && status == CUDA_SUCCESS; i++) {
    instance->used = i + 1;
    status = make_slot(build, instance, &instance->slots[i]);
  }
  if (status != CUDA_SUCCESS) return status;
  uint8_t *host = map_slots(build, instance->slot_bytes * instance->used);
  if (host == NULL) return CUDA_ERROR_OPERATING_SYSTEM;
  for (uint32_t i = 0; i < instance->used; i++)
    instance->slots[i].host = host + i * instance->slot_bytes;
  const size_t whole = instance->slot_bytes * instance->used;
  instance->pinned = cuMemHostRegister(host, whole, 0) == CUDA_SUCCESS;
  return cuStreamSynchronize(instance->stream);
}

/* Loads a build into the context of a launch that wants it. Lets go of the lock meanwhile, for the
 * driver may wait for all that runs there. */
static void load(Build *build, CUfunction handle) {
  build->loading = true;
  pthread_mutex_unlock(&lock);
  Instance *instance = calloc(1, sizeof *instance);
  const char *what = "no memory";
  CUresult status = instance == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  int plain = 0, probed = 0, registers = 0, shared = 0;
  if (status == CUDA_SUCCESS) {
    const int threads =
        (int)(build->shape.block[0] * build->shape.block[1] * build->shape.block[2]);
    instance->context = build->context;
    (void)cuCtxPushCurrent(instance->context);
    const CUfunction own = own_function(handle);
    load_own(own);
    status = fill_instance(build, instance, own, &what);
    if (status == CUDA_SUCCESS) {
      (void)cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, own);
      (void)cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, own);
      (void)cuOccupancyMaxActiveBlocksPerMultiprocessor(&plain, own, threads,
                                                        build->shape.dynamic_shared);
      (void)cuOccupancyMaxActiveBlocksPerMultiprocessor(&probed, instance->function, threads,
                                                        build->shape.dynamic_shared);
    }
    (void)cuCtxPopCurrent(NULL);
    if (status != CUDA_SUCCESS) release(instance), instance = NULL;
  }
  pthread_mutex_lock(&lock);
  build->instance = instance;
  build->loading = false;
  if (status != CUDA_SUCCESS) refuse(build, what, status);
  else
    tell("loaded %u %d %d %d %d", build->id, plain, probed, registers, shared);
  pthread_cond_broadcast(&changed);
}

/* Loads what launches have asked for, in the worker: a running kernel that the driver waits for may
 * itself wait for a launch. */
static void load_asked(void) {
  for (uint32_t i = 0; i < build_count; i++) {
    Build *build = builds[i];
    const CUfunction handle = build->asked_by;
    build->asked_by = NULL;
    if (handle == NULL || build->dropped || build->loading || build->instance != NULL ||
        build->state != READY)
      continue;
    load(build, handle);
    i = UINT32_MAX; /* others may have come and gone */
  }
}
