/* The driver of fake.h without its launches: contexts, memory, modules, streams. */
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

enum { OBJECTS = 512, DEPTH = 8, ALLOCATIONS = 1024 };

pthread_mutex_t fake_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static Object objects[KINDS][OBJECTS];
static struct { char *start; size_t size; Object *context; } allocations[ALLOCATIONS];
static Object *primary;
static unsigned primary_uses;
static uint64_t free_bytes = 1ull << 40;
static char row[64 << 20]; /* where there are no gaps, and nothing is given twice */
static size_t row_used;
static _Thread_local Object *stack[DEPTH];
static _Thread_local unsigned depth;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static void stop(const char *what) {
  fprintf(stderr, "fake driver: %s\n", what);
  abort();
}

bool fake_fails(const char *variable) {
  const char *value = getenv(variable);
  return value != NULL && *value != '\0';
}

/* ---- handles */

Object *fake_object(const void *handle, Kind kind) {
  const uintptr_t at = (uintptr_t)handle, start = (uintptr_t)objects[kind];
  if (at < start || at >= start + sizeof objects[kind]) return NULL;
  Object *object = (Object *)at;
  pthread_mutex_lock(&fake_lock);
  if (!object->used) stop("a handle was used after its end");
  pthread_mutex_unlock(&fake_lock);
  return object;
}

/* The first that is free: what is loaded again has the handles that it had. */
Object *fake_new(Kind kind) {
  pthread_mutex_lock(&fake_lock);
  Object *object = objects[kind];
  while (object->used && object < &objects[kind][OBJECTS - 1]) object++;
  if (object->used) stop("too many objects");
  *object = (Object){.used = true, .context = fake_current()};
  pthread_mutex_unlock(&fake_lock);
  return object;
}

void fake_end(Object *object) {
  pthread_mutex_lock(&fake_lock);
  free(object->image), free(object->calls);
  object->used = false;
  pthread_mutex_unlock(&fake_lock);
}

Object *fake_current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

Object *fake_stream(CUstream stream) {
  if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return NULL;
  return fake_object(stream, STREAM);
}

/* A call that no capture bears: it breaks those under way, unless this thread is let off. */
static bool is_unsafe(void) {
  bool unsafe = false;
  pthread_mutex_lock(&fake_lock);
  for (Object *one = objects[STREAM]; one < &objects[STREAM][OBJECTS]; one++)
    if (one->used && one->capturing && one->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
        thread_mode != CU_STREAM_CAPTURE_MODE_RELAXED)
      unsafe = one->broken = true;
  pthread_mutex_unlock(&fake_lock);
  return unsafe;
}

/* Whether work for a stream would go into a graph that is captured: none but launches may. */
static bool breaks(CUstream stream) {
  Object *object = fake_stream(stream);
  if (object == NULL || !object->capturing) return false;
  return object->broken = true;
}

/* ---- the library itself, and devices */

static void load_injection(void) {
  const char *path = getenv("CUDA_INJECTION64_PATH");
  void *library = path == NULL ? NULL : dlopen(path, RTLD_NOW);
  if (path != NULL && library == NULL) stop(dlerror());
  int (*initialize)(void) = NULL;
  if (library != NULL) *(void **)&initialize = dlsym(library, "InitializeInjection");
  if (initialize != NULL) (void)initialize();
}

CUresult CUDAAPI cuInit(unsigned flags) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const char *memory = getenv("FAKE_MEMORY");
  if (memory != NULL && *memory) free_bytes = strtoull(memory, NULL, 10);
  pthread_once(&once, load_injection);
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuDriverGetVersion(int *version) {
  *version = 13000;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: *name = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    case CUDA_ERROR_FILE_NOT_FOUND: *name = "CUDA_ERROR_FILE_NOT_FOUND"; break;
    default: *name = "CUDA_ERROR_UNKNOWN"; break;
  }
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult CUDAAPI cuDeviceGetName(char *name, int size, CUdevice device) {
  snprintf(name, (size_t)size, "Fake H200 %d", device);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1980000; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 233472; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK: *value = 1024; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/* ---- contexts */

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  if (fake_object(context, CONTEXT) == NULL) return CUDA_ERROR_INVALID_CONTEXT;
  if (depth == DEPTH) stop("contexts are pushed and never popped");
  stack[depth++] = (Object *)context;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  if (context != NULL) *context = (CUcontext)stack[depth];
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  if (depth > 0) depth--;
  return context == NULL ? CUDA_SUCCESS : cuCtxPushCurrent(context);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  *context = (CUcontext)fake_current();
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
  *device = 0;
  return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxSynchronize(void) {
  if (is_unsafe()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return depth > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static void free_memory(char *start);

static void end_context(Object *context) {
  fake_ending((CUcontext)context);
  pthread_mutex_lock(&fake_lock);
  for (Kind kind = MODULE; kind < KINDS; kind++)
    for (Object *one = objects[kind]; one < &objects[kind][OBJECTS]; one++)
      if (one->used && one->context == context && !one->library) fake_end(one);
  for (Object *one = objects[MODULE]; one < &objects[MODULE][OBJECTS]; one++)
    if (one->used && one->library) memset(one->variables, 0, sizeof one->variables);
  for (int i = 0; i < ALLOCATIONS; i++)
    if (allocations[i].start != NULL && allocations[i].context == context) {
      free_memory(allocations[i].start);
      free_bytes += allocations[i].size;
      allocations[i].start = NULL;
    }
  fake_end(context);
  pthread_mutex_unlock(&fake_lock);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  if (primary_uses++ == 0) primary = fake_new(CONTEXT);
  *context = (CUcontext)primary;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  if (device != 0 || primary_uses == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--primary_uses == 0) end_context(primary);
  return CUDA_SUCCESS;
}

/* ---- memory */

static char *take_memory(size_t size) {
  const size_t whole = (size + 255) / 256 * 256;
  if (!fake_fails("FAKE_NO_GAPS")) return aligned_alloc(256, whole);
  if (row_used == 0) row_used = -(uintptr_t)row % 256;
  if (row_used + whole > sizeof row) stop("too much memory without gaps");
  row_used += whole;
  return row + row_used - whole;
}

static void free_memory(char *start) {
  if (start < row || start >= row + sizeof row) free(start);
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *at, size_t size) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (is_unsafe()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&fake_lock);
  for (int i = 0; i < ALLOCATIONS && status != CUDA_SUCCESS && size <= free_bytes; i++) {
    if (allocations[i].start != NULL) continue;
    allocations[i].start = take_memory(size);
    allocations[i].size = size, allocations[i].context = fake_current();
    memset(allocations[i].start, 0xAB, size);
    free_bytes -= size;
    *at = (CUdeviceptr)(uintptr_t)allocations[i].start;
    status = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&fake_lock);
  return status;
}

CUresult CUDAAPI cuMemFree(CUdeviceptr at) {
  CUresult status = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&fake_lock);
  for (int i = 0; i < ALLOCATIONS; i++)
    if (allocations[i].start != NULL && (CUdeviceptr)(uintptr_t)allocations[i].start == at) {
      free_memory(allocations[i].start);
      free_bytes += allocations[i].size;
      allocations[i].start = NULL;
      status = CUDA_SUCCESS;
    }
  pthread_mutex_unlock(&fake_lock);
  return status;
}

CUresult CUDAAPI cuMemGetInfo(size_t *available, size_t *total) {
  pthread_mutex_lock(&fake_lock);
  *available = free_bytes;
  pthread_mutex_unlock(&fake_lock);
  *total = 1ull << 40;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  CUresult status = CUDA_ERROR_NOT_FOUND;
  pthread_mutex_lock(&fake_lock);
  for (int i = 0; i < ALLOCATIONS; i++) {
    const CUdeviceptr start = (CUdeviceptr)(uintptr_t)allocations[i].start;
    if (start == 0 || address < start || address >= start + allocations[i].size) continue;
    *base = start, *size = allocations[i].size;
    status = CUDA_SUCCESS;
  }
  pthread_mutex_unlock(&fake_lock);
  return status;
}

CUresult CUDAAPI cuMemHostRegister(void *start, size_t size, unsigned flags) {
  (void)start, (void)size, (void)flags;
  if (fake_fails("FAKE_NO_PINNING")) return CUDA_ERROR_OPERATING_SYSTEM;
  return is_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemHostUnregister(void *start) {
  (void)start;
  return CUDA_SUCCESS;
}

static CUresult copy(uintptr_t to, uintptr_t from, size_t size) {
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  memcpy((void *)to, (const void *)from, size);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t size) {
  if (is_unsafe()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return copy((uintptr_t)to, (uintptr_t)from, size);
}

CUresult CUDAAPI cuMemcpyDtoH(void *to, CUdeviceptr from, size_t size) {
  if (is_unsafe()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return copy((uintptr_t)to, (uintptr_t)from, size);
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
  if (breaks(stream) || fake_fails("FAKE_BROKEN_UPLOAD")) return CUDA_ERROR_INVALID_VALUE;
  return copy((uintptr_t)to, (uintptr_t)from, size);
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
  if (breaks(stream) || fake_fails("FAKE_BROKEN_DOWNLOAD")) return CUDA_ERROR_INVALID_VALUE;
  return copy((uintptr_t)to, (uintptr_t)from, size);
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
  if (breaks(stream) || fake_fails("FAKE_BROKEN_UPLOAD")) return CUDA_ERROR_INVALID_VALUE;
  return copy((uintptr_t)to, (uintptr_t)from, size);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t size,
                                 CUstream stream) {
  if (breaks(stream) || depth == 0) return CUDA_ERROR_INVALID_VALUE;
  memset((void *)(uintptr_t)at, value, size);
  return CUDA_SUCCESS;
}

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

CUresult CUDAAPI cuModuleLoad(CUmodule *module, const char *path) {
  TRACED(cuModuleLoad, module, path);
  call.status = load(module, NULL, path, false);
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
  if (from == NULL) call.status = CUDA_ERROR_INVALID_HANDLE;
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

static CUresult global(CUdeviceptr *at, size_t *size, const void *handle, const char *name) {
  Object *module = fake_object(handle, MODULE);
  if (module == NULL) return CUDA_ERROR_INVALID_HANDLE;
  if (fake_fails("FAKE_NO_VARIABLES") && gettid() != getpid()) return CUDA_ERROR_NOT_FOUND;
  *at = fake_variable(module, name, size);
  return *at == 0 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
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

/* ---- streams and events */

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags) {
  (void)flags;
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *stream = (CUstream)fake_new(STREAM);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  fake_end(fake_object(stream, STREAM));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  return breaks(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  (void)flags;
  const Object *object = fake_object(event, EVENT);
  if (object == NULL || !object->recorded) return CUDA_ERROR_INVALID_HANDLE;
  return breaks(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags) {
  (void)flags;
  if (depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *event = (CUevent)fake_new(EVENT);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
  fake_end(fake_object(event, EVENT));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  Object *object = fake_object(event, EVENT);
  if (object == NULL || breaks(stream)) return CUDA_ERROR_INVALID_HANDLE;
  object->recorded = true, object->queries = 0;
  return CUDA_SUCCESS;
}

/* What an event stands behind is done when it is asked for the second time. */
CUresult CUDAAPI cuEventQuery(CUevent event) {
  Object *object = fake_object(event, EVENT);
  if (object == NULL || is_unsafe()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (fake_fails("FAKE_BROKEN_EVENTS")) return CUDA_ERROR_ILLEGAL_ADDRESS;
  return object->recorded && object->queries++ == 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  const CUstreamCaptureMode before = thread_mode;
  thread_mode = *mode, *mode = before;
  return CUDA_SUCCESS;
}
