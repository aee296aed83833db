/* Launches of the driver of fake.h, at once or into a graph, and what kernels compute. */
#include "fake.h"

#include <stdatomic.h>
#include <unistd.h>

enum { WARP = 32, SMS = 132 };

/* As kernels.cu declares them. */
static const Known KNOWN[] = {
    {"vadd", 4, {8, 8, 8, 4}},  {"twice", 2, {8, 4}},   {"scale", 3, {8, 8, 4}},
    {"tally", 1, {4}},          {"wide", 2, {8, 4076}}, {"nothing", 0, {0}},
};
static atomic_uint launched[sizeof KNOWN / sizeof *KNOWN];
static atomic_uint launch_count;
static atomic_uint nothings;

const Known *fake_known(const char *name) {
  for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
    if (strcmp(KNOWN[i].name, name) == 0) return &KNOWN[i];
  return NULL;
}

size_t fake_offset(const Known *known, unsigned index) {
  size_t end = 0;
  for (unsigned i = 0;; i++) {
    const size_t align = i < known->count && known->sizes[i] == 8 ? 8 : 4;
    end = (end + align - 1) / align * align;
    if (i >= index) return end;
    end += known->sizes[i];
  }
}

/* ---- what kernels do */

typedef struct {
  uint64_t start;
  uint32_t elapsed, sm;
} Record;

static void *given(const Call *call, unsigned index) {
  void *value;
  memcpy(&value, &call->parameters[fake_offset(call->function->known, index)], sizeof value);
  return value;
}

static int number(const Call *call, unsigned index) {
  int value;
  memcpy(&value, &call->parameters[fake_offset(call->function->known, index)], sizeof value);
  return value;
}

/* A constant of the module itself: what was copied there counts. */
static float constant(const Call *call, const char *name) {
  size_t size = 0;
  return *(const float *)(uintptr_t)fake_variable(call->function->module, name, &size);
}

static void compute(const Call *call) {
  const char *name = call->function->known->name;
  if (strcmp(name, "vadd") == 0) {
    const float *a = given(call, 0), *b = given(call, 1);
    float *c = given(call, 2);
    for (int i = 0; i < number(call, 3); i++) c[i] = a[i] + b[i];
  } else if (strcmp(name, "twice") == 0) {
    float *a = given(call, 0);
    for (int i = 0; i < number(call, 1); i++) a[i] *= 2;
  } else if (strcmp(name, "scale") == 0) {
    const float *a = given(call, 0), factor = constant(call, "factor");
    float *c = given(call, 1);
    for (int i = 0; i < number(call, 2); i++) c[i] = a[i] * factor;
  } else if (strcmp(name, "tally") == 0) {
    *(int *)(uintptr_t)fake_program_variable("total") += number(call, 0);
  } else if (strcmp(name, "wide") == 0) {
    *(int *)given(call, 0) = number(call, 1);
  } else {
    nothings++;
  }
}

/* A record for each warp, from which the launch can be told: `launch` counts those of the kernel
 * from 0. Where the map was not zero, they say so. */
static void write_records(const Call *call, unsigned launch) {
  const unsigned *g = call->grid, *b = call->block;
  const unsigned warps = g[0] * g[1] * g[2] * ((b[0] * b[1] * b[2] + WARP - 1) / WARP);
  Record *records = (Record *)(uintptr_t)call->map;
  for (unsigned i = 0; i < warps; i++) {
    const bool clear = records[i].start == 0 && records[i].elapsed == 0 && records[i].sm == 0;
    records[i] = (Record){1000 * (launch + 1) + i, clear ? 100 + launch : UINT32_MAX, i % SMS};
  }
}

unsigned fake_launch_count(void) { return launch_count; }

static void execute(const Call *call, uint32_t correlation, uint32_t graph) {
  launch_count++;
  const Known *known = call->function->known;
  const unsigned launch = launched[known - KNOWN]++;
  compute(call);
  if (call->function->module->probed) write_records(call, launch);
  fake_record(call, correlation, graph);
}

/* ---- launches */

static size_t padded(size_t size) { return (size + 7) / 8 * 8; }

static bool read_extra(Call *call, void **extra) {
  const Known *known = call->function->known;
  const size_t own = fake_offset(known, known->count);
  const uint8_t *block = NULL;
  size_t size = 0;
  for (void **one = extra; one != NULL && *one != CU_LAUNCH_PARAM_END; one += 2) {
    if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) block = one[1];
    if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(const size_t *)one[1];
  }
  const bool probed = call->function->module->probed;
  if (block == NULL || (probed ? size < padded(own) + 8 : size != own)) return false;
  memcpy(call->parameters, block, own);
  if (probed) memcpy(&call->map, block + padded(own), 8);
  return true;
}

/* A probed kernel has the addresses of its maps in a last parameter, or in a variable. */
static bool read_parameters(Call *call, void **parameters, void **extra) {
  const Object *module = call->function->module;
  const Known *known = call->function->known;
  for (int i = 0; i < VARIABLES; i++)
    if (module->probed && strncmp(module->variables[i].name, "gpuwatch", 8) == 0)
      memcpy(&call->map, (const void *)(uintptr_t)module->variables[i].at, 8);
  const bool takes = module->probed && call->map == 0;
  if (parameters == NULL && (known->count > 0 || takes)) return read_extra(call, extra);
  if (parameters != NULL && extra != NULL) return false;
  for (unsigned i = 0; i < known->count; i++)
    memcpy(call->parameters + fake_offset(known, i), parameters[i], known->sizes[i]);
  if (takes) memcpy(&call->map, parameters[known->count], 8);
  return true;
}

static Object *function_of(CUfunction handle) {
  Object *function = fake_object(handle, FUNCTION);
  const Object *kernel = function == NULL ? fake_object(handle, KERNEL) : NULL;
  if (kernel != NULL && cuKernelGetFunction(&handle, (CUkernel)handle) == CUDA_SUCCESS)
    function = fake_object(handle, FUNCTION);
  return function;
}

static CUresult launch(CUfunction handle, const CUlaunchConfig *config, void **parameters,
                       void **extra, uint32_t correlation) {
  if (fake_current() == NULL) return CUDA_ERROR_INVALID_CONTEXT;
  const char *slow = getenv("FAKE_SLOW_LAUNCH");
  if (slow != NULL) usleep((useconds_t)atoi(slow));
  Call *call = calloc(1, sizeof *call);
  *call = (Call){.function = function_of(handle),
                 .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                 .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                 .shared = config->sharedMemBytes};
  CUresult status = CUDA_SUCCESS;
  if (call->function == NULL) status = CUDA_ERROR_INVALID_HANDLE;
  else if (!call->function->module->library &&
           call->function->module->context != fake_current())
    status = CUDA_ERROR_INVALID_CONTEXT;
  else if (!call->function->loaded && !call->function->module->probed && fake_fails("FAKE_LAZY") &&
           launched[call->function->known - KNOWN] > 0)
    status = CUDA_ERROR_ILLEGAL_STATE;
  else if (call->function->module->probed && fake_fails("FAKE_REFUSE_PROBED"))
    status = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  else if (call->shared >
               (unsigned)call->function
                   ->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] ||
           call->block[0] == 0 || !read_parameters(call, parameters, extra))
    status = CUDA_ERROR_INVALID_VALUE;
  if (call->function != NULL) call->function->loaded = true;
  Object *stream = fake_stream(config->hStream);
  if (status == CUDA_SUCCESS && stream != NULL && stream->capturing) {
    if (stream->call_count < CAPTURED) stream->calls[stream->call_count++] = *call;
  } else if (status == CUDA_SUCCESS) {
    execute(call, correlation, 0);
  }
  free(call);
  return status;
}

#define CONFIG(q)                                                                  \
  {                                                                                \
    .gridDimX = (q).gridDimX, .gridDimY = (q).gridDimY, .gridDimZ = (q).gridDimZ,  \
    .blockDimX = (q).blockDimX, .blockDimY = (q).blockDimY,                        \
    .blockDimZ = (q).blockDimZ, .sharedMemBytes = (q).sharedMemBytes, .hStream = (q).hStream \
  }

CUresult CUDAAPI cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                unsigned by, unsigned bz, unsigned shared, CUstream stream,
                                void **parameters, void **extra) {
  TRACED(cuLaunchKernel, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  const CUlaunchConfig config = CONFIG(q);
  call.status = launch(q.f, &config, q.kernelParams, q.extra, call.correlation);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     CUstream stream, void **parameters, void **extra);
CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     CUstream stream, void **parameters, void **extra) {
  TRACED(cuLaunchKernel_ptsz, f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  const CUlaunchConfig config = CONFIG(q);
  call.status = launch(q.f, &config, q.kernelParams, q.extra, call.correlation);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **parameters,
                                  void **extra) {
  TRACED(cuLaunchKernelEx, config, f, parameters, extra);
  call.status = launch(q.f, q.config, q.kernelParams, q.extra, call.correlation);
  return fake_leave(&call);
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                                           unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                           CUstream stream, void **parameters) {
  TRACED(cuLaunchCooperativeKernel, f, gx, gy, gz, bx, by, bz, shared, stream, parameters);
  const CUlaunchConfig config = CONFIG(q);
  call.status = launch(q.f, &config, q.kernelParams, NULL, call.correlation);
  return fake_leave(&call);
}

/* ---- graphs: a stream keeps the launches while it is captured, a graph takes them over */

CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  const char *slow = getenv("FAKE_SLOW_CAPTURE");
  if (slow != NULL) usleep((useconds_t)atoi(slow));
  const Object *object = fake_stream(stream);
  const bool capturing = object != NULL && object->capturing;
  *status = capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  Object *object = fake_stream(stream);
  if (object == NULL || object->capturing) return CUDA_ERROR_INVALID_VALUE;
  object->capturing = true, object->broken = false, object->mode = mode;
  object->calls = calloc(CAPTURED, sizeof *object->calls), object->call_count = 0;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  Object *object = fake_stream(stream);
  if (object == NULL || !object->capturing) return CUDA_ERROR_INVALID_VALUE;
  object->capturing = false;
  if (object->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  Object *made = fake_new(GRAPH);
  made->calls = object->calls, made->call_count = object->call_count;
  object->calls = NULL;
  *graph = (CUgraph)made;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *made, CUgraph graph, unsigned long long flags) {
  (void)flags;
  *made = (CUgraphExec)graph;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec made, CUstream stream) {
  TRACED(cuGraphLaunch, made, stream);
  const Object *graph = fake_object(made, GRAPH);
  if (graph == NULL) call.status = CUDA_ERROR_INVALID_HANDLE;
  for (unsigned i = 0; graph != NULL && i < graph->call_count; i++)
    execute(&graph->calls[i], call.correlation, (uint32_t)((uintptr_t)graph >> 4));
  return fake_leave(&call);
}
