/* Part of fake_driver.c: what programs load. */

/* ---- modules and libraries */

static size_t elf_size(const uint8_t *image) {
  const Elf64_Ehdr *elf = (const void *)image;
  size_t end = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
  const size_t segments = elf->e_phoff + (size_t)elf->e_phnum * elf->e_phentsize;
  return end > segments ? end : segments;
}

static void take_image(Object *module, const void *image) {
  const uint8_t *content = image;
  if (*(const uint32_t *)image == 0x466243B1)
    memcpy(&content, (const char *)image + 8, sizeof content);
  if (*(const uint32_t *)(const void *)content == 0xBA55ED50)
    module->size = *(const uint16_t *)(const void *)(content + 6) +
                   *(const uint64_t *)(const void *)(content + 8);
  else if (memcmp(content, ELFMAG, SELFMAG) == 0) module->size = elf_size(content);
  else module->size = strlen((const char *)content);
  module->image = malloc(module->size + 1);
  memcpy(module->image, content, module->size);
}

static bool take_file(Object *module, const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL) return false;
  module->image = calloc(1, 1 << 20);
  module->size = fread(module->image, 1, (1 << 20) - 1, file);
  fclose(file);
  const char *run = getenv("GPUWATCH_RUN");
  module->probed = run != NULL && strncmp(path, run, strlen(run)) == 0;
  return module->size > 0;
}

static bool has(const Object *module, const char *name) {
  return memmem(module->image, module->size, name, strlen(name)) != NULL;
}

static CUresult load(void *handle, const void *image, const char *path, bool library) {
  if (!library && depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (is_unsafe()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Object *module = fake_new(MODULE);
  module->library = library;
  if (path == NULL) take_image(module, image);
  else if (!take_file(module, path)) {
    fake_end(module);
    return CUDA_ERROR_FILE_NOT_FOUND;
  }
  *(Object **)handle = module;
  return CUDA_SUCCESS;
}

/* As the driver waits for kernels that run, which may themselves wait for a launch. */
static void wait_behind(void) {
  const char *behind = getenv("FAKE_LOAD_BEHIND");
  if (behind == NULL) return;
  const unsigned until = fake_launch_count() + (unsigned)atoi(behind);
  for (int i = 0; fake_launch_count() < until; i++) {
    if (i == 25000) stop("a module waits for a launch that never comes");
    usleep(1000);
  }
}

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *path) {
  TRACED(cuModuleLoad, module, path);
  call.status = load(module, NULL, path, false);
  if (call.status == CUDA_SUCCESS && ((const Object *)*module)->probed) wait_behind();
  return fake_leave(&call);
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image) {
  TRACED(cuModuleLoadData, module, image);
  call.status = load(module, image, NULL, false);
  return fake_leave(&call);
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
                                    CUjit_option *options, void **values) {
  TRACED(cuModuleLoadDataEx, module, image, count, options, values);
  call.status = load(module, image, NULL, false);
  return fake_leave(&call);
}

CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  TRACED(cuModuleLoadFatBinary, module, image);
  call.status = load(module, image, NULL, false);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                                   void **values, unsigned count, CUlibraryOption *others,
                                   void **other_values, unsigned other_count) {
  TRACED(cuLibraryLoadData, library, image, options, values, count, others, other_values,
         other_count);
  call.status = load(library, image, NULL, true);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                                       void **values, unsigned count, CUlibraryOption *others,
                                       void **other_values, unsigned other_count) {
  TRACED(cuLibraryLoadFromFile, library, path, options, values, count, others, other_values,
         other_count);
  call.status = load(library, NULL, path, true);
  return fake_leave(&call);
}

static CUresult unload(const void *handle, bool library) {
  Object *module = fake_object(handle, MODULE);
  if (module == NULL || module->library != library) return CUDA_ERROR_INVALID_HANDLE;
  for (Kind kind = FUNCTION; kind <= KERNEL; kind++)
    for (Object *one = objects[kind]; one < &objects[kind][OBJECTS]; one++)
      if (one->used && one->module == module) fake_end(one);
  for (int i = 0; i < VARIABLES; i++)
    if (module->variables[i].at != 0) (void)cuMemFree(module->variables[i].at);
  fake_end(module);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleUnload(CUmodule module) {
  TRACED(cuModuleUnload, module);
  call.status = unload(module, false);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLibraryUnload(CUlibrary library) {
  TRACED(cuLibraryUnload, library);
  call.status = unload(library, true);
  return fake_leave(&call);
}

/* A function, or a kernel with the function behind it. */
static CUresult get(void *handle, const void *from, const char *name, Kind kind) {
  Object *module = fake_object(from, MODULE);
  const Known *known = fake_known(name);
  if (module == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (known == NULL || !has(module, name)) return CUDA_ERROR_NOT_FOUND;
  Object *found = NULL;
  pthread_mutex_lock(&fake_lock);
  for (Object *one = objects[kind]; one < &objects[kind][OBJECTS]; one++)
    if (one->used && one->module == module && one->known == known) found = one;
  if (found == NULL) {
    found = fake_new(kind);
    found->module = module, found->known = known;
    found->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 48 << 10;
    found->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
  }
  pthread_mutex_unlock(&fake_lock);
  *(Object **)handle = found;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  TRACED(cuModuleGetFunction, function, module, name);
  call.status = get(function, module, name, FUNCTION);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  TRACED(cuLibraryGetKernel, kernel, library, name);
  call.status = get(kernel, library, name, KERNEL);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  TRACED(cuLibraryGetModule, module, library);
  *module = (CUmodule)library;
  return fake_leave(&call);
}

CUresult CUDAAPI cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  TRACED(cuKernelGetFunction, function, kernel);
  const Object *from = fake_object(kernel, KERNEL);
  if (depth == 0) call.status = CUDA_ERROR_INVALID_CONTEXT;
  else if (from == NULL) call.status = CUDA_ERROR_INVALID_HANDLE;
  else call.status = get(function, from->module, from->known->name, FUNCTION);
  return fake_leave(&call);
}

static CUresult name_of(const char **name, const void *handle, Kind kind) {
  const Object *object = fake_object(handle, kind);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  *name = object->known->name;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetName(const char **name, CUfunction function) {
  return name_of(name, function, FUNCTION);
}

CUresult CUDAAPI cuKernelGetName(const char **name, CUkernel kernel) {
  return name_of(name, kernel, KERNEL);
}

CUresult CUDAAPI cuFuncGetModule(CUmodule *module, CUfunction function) {
  const Object *object = fake_object(function, FUNCTION);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  *module = (CUmodule)object->module;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
  const Object *object = fake_object(kernel, KERNEL);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  *library = (CUlibrary)object->module;
  return CUDA_SUCCESS;
}

static CUresult parameter(const void *handle, Kind kind, size_t index, size_t *offset,
                          size_t *size) {
  const Object *object = fake_object(handle, kind);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (index >= object->known->count) return CUDA_ERROR_INVALID_VALUE;
  *offset = fake_offset(object->known, (unsigned)index), *size = object->known->sizes[index];
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
                                    size_t *size) {
  return parameter(function, FUNCTION, index, offset, size);
}

CUresult CUDAAPI cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
  return parameter(kernel, KERNEL, index, offset, size);
}

CUresult CUDAAPI cuFuncLoad(CUfunction handle) {
  Object *function = fake_object(handle, FUNCTION);
  if (function == NULL || depth == 0) return CUDA_ERROR_INVALID_HANDLE;
  function->loaded = true;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                    CUfunction function) {
  const Object *object = fake_object(function, FUNCTION);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  *value = object->attributes[attribute];
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                    int value) {
  Object *object = fake_object(function, FUNCTION);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  object->attributes[attribute] = value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                             int threads, size_t shared) {
  (void)threads, (void)shared;
  const Object *object = fake_object(function, FUNCTION);
  if (object == NULL) return CUDA_ERROR_INVALID_HANDLE;
  *blocks = object->module->probed && fake_fails("FAKE_FEW_RESIDENT") ? 4 : 8;
  return CUDA_SUCCESS;
}

/* Every variable that a module has takes 256 bytes, zeros at first. */
static CUdeviceptr place(Object *module, const char *name, size_t *size) {
  *size = 256;
  for (int i = 0; i < VARIABLES; i++) {
    if (module->variables[i].at != 0 && strcmp(module->variables[i].name, name) != 0) continue;
    if (module->variables[i].at != 0) return module->variables[i].at;
    CUdeviceptr at = 0;
    if (!has(module, name) || cuMemAlloc(&at, *size) != CUDA_SUCCESS) return 0;
    memset((void *)(uintptr_t)at, 0, *size);
    snprintf(module->variables[i].name, sizeof module->variables[i].name, "%s", name);
    return module->variables[i].at = at;
  }
  return 0;
}

CUdeviceptr fake_variable(Object *module, const char *name, size_t *size) {
  pthread_mutex_lock(&fake_lock);
  const CUdeviceptr at = place(module, name, size);
  pthread_mutex_unlock(&fake_lock);
  return at;
}

CUdeviceptr fake_program_variable(const char *name) {
  size_t size = 0;
  for (Object *one = objects[MODULE]; one < &objects[MODULE][OBJECTS]; one++)
    if (one->used && !one->probed && has(one, name)) return fake_variable(one, name, &size);
  return 0;
}

static CUdeviceptr context_number(void) {
  const Object *current = fake_current();
  return current == NULL ? 0 : (CUdeviceptr)(current - objects[CONTEXT]);
}

static CUresult global(CUdeviceptr *at, size_t *size, const void *handle, const char *name) {
  Object *module = fake_object(handle, MODULE);
  if (module == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (fake_fails("FAKE_NO_VARIABLES") && gettid() != getpid()) return CUDA_ERROR_NOT_FOUND;
  *at = fake_variable(module, name, size);
  if (*at == 0) return CUDA_ERROR_NOT_FOUND;
  if (module->library && fake_fails("FAKE_APART")) *at += 16 * context_number();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleGetGlobal(CUdeviceptr *at, size_t *size, CUmodule module,
                                   const char *name) {
  return global(at, size, module, name);
}

CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *at, size_t *size, CUlibrary library,
                                    const char *name) {
  return global(at, size, library, name);
}

/* Linking gives the PTX back. */
CUresult CUDAAPI cuLinkCreate(unsigned count, CUjit_option *options, void **values,
                              CUlinkState *state) {
  (void)count, (void)options, (void)values;
  *state = (CUlinkState)fake_new(LINK);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
                               const char *name, unsigned count, CUjit_option *options,
                               void **values) {
  TRACED(cuLinkAddData_v2, state, type, data, size, name, count, options, values);
  take_image(fake_object(state, LINK), data);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void **image, size_t *size) {
  TRACED(cuLinkComplete, state, image, size);
  const Object *link = fake_object(state, LINK);
  link->image[link->size] = '\0';
  *image = link->image, *size = link->size;
  return fake_leave(&call);
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  TRACED(cuLinkDestroy, state);
  fake_end(fake_object(state, LINK));
  return fake_leave(&call);
}
