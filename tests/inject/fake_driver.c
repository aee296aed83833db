/* The driver of fake.h without its launches: contexts, memory, modules, streams. */
#include "fake.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
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

/* ---- its end */

static atomic_bool over;

static void end_driver(void) {
  const char *slow = getenv("FAKE_SLOW_END");
  if (slow == NULL) return;
  over = true;
  usleep((useconds_t)atoi(slow));
}

void fake_alive(void) {
  if (over) stop("a call came after the driver's end");
}

/* ---- handles */

Object *fake_object(const void *handle, Kind kind) {
  const uintptr_t at = (uintptr_t)handle, start = (uintptr_t)objects[kind];
  fake_alive();
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
  atexit(end_driver); /* after all that is injected */
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

CUresult CUDAAPI cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned flags,
                             CUdevice device) {
  if (device != 0 || parameters != NULL || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *context = (CUcontext)fake_new(CONTEXT);
  return cuCtxPushCurrent(*context);
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  if (fake_object(context, CONTEXT) == NULL) return CUDA_ERROR_INVALID_CONTEXT;
  if (fake_current() == (Object *)context) depth--;
  end_context((Object *)context);
  return CUDA_SUCCESS;
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
  const char *slow = getenv("FAKE_SLOW_FREE");
  if (slow != NULL) usleep((useconds_t)atoi(slow));
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

#include "fake_modules.h"

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
