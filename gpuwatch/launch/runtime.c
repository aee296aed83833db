/*
 * A stand-in for the CUDA runtime that needs no GPU. A program linked against it allocates host
 * memory in place of device memory, copies as always, and every kernel launch is written down in
 * the folder named by GPUWATCH_CAPTURE_DIR instead of being executed.
 *
 * Read there:  request  lines "answer NAME VALUE", "name TEXT",
 *              "kernel NAME REGISTERS SHARED THREADS N OFFSET SIZE ..."
 * Written:     launches lines "launch", "buffer", "global"; N.parameters, N.buffers, N.globals
 *              counts   one uint64 for each kernel, in order of the request
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cuda_runtime_api.h>

#define PAGE ((size_t)4096)
#define MAX_PARAMETERS_BYTES 32768

struct parameter { size_t offset, size; };
struct kernel {
    char *name;
    const void *host;
    int registers, threads, parameter_count;
    size_t shared, dynamic_limit;
    struct parameter *parameters;
};
struct allocation { char *start; size_t size; int owned; };
struct variable { const void *host; char *name, *memory; size_t size; int is_set; };

static struct kernel *kernels;
static struct allocation *allocations;
static struct variable *variables;
static int kernel_count, allocation_count, variable_count, launch_count;
static uint64_t *counts;
static FILE *launches;
static char device_name[256] = "GPU";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local cudaError_t last_error;
static _Thread_local struct { dim3 grid, block; size_t shared; cudaStream_t stream; } configuration;

static struct { const char *name; long long value; } answers[] = {
    {"sm_count", 1}, {"threads_per_sm", 1536}, {"warp_size", 32}, {"threads_per_block", 1024},
    {"shared_per_block", 49152}, {"shared_per_sm", 102400}, {"registers_per_sm", 65536},
    {"compute_major", 8}, {"compute_minor", 6}, {"memory_bytes", 0}, {"clock_khz", 0},
    {"blocks_per_sm", 16},
};
enum { SMS, SM_THREADS, WARP, BLOCK_THREADS, BLOCK_SHARED, SM_SHARED, SM_REGISTERS, MAJOR, MINOR,
       MEMORY, CLOCK, SM_BLOCKS, ANSWERS };

static cudaError_t fail(cudaError_t error) { return last_error = error; }

static void die(const char *what)
{
    fprintf(stderr, "capture: %s\n", what);
    _Exit(125);
}

static void *grown(void *array, int count, size_t element)
{
    if ((count & (count - 1)) != 0) return array;
    array = realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * element);
    if (array == NULL) die("out of memory");
    return array;
}

static FILE *opened(const char *name, const char *mode)
{
    char path[4096];
    const char *folder = getenv("GPUWATCH_CAPTURE_DIR");
    if (folder == NULL) die("GPUWATCH_CAPTURE_DIR is not set");
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, mode);
    if (file == NULL) die("cannot open a file of the capture folder");
    return file;
}

static size_t number(char **place) { return strtoull(strtok_r(NULL, " \n", place), NULL, 10); }

static void read_kernel(char **place)
{
    kernels = grown(kernels, kernel_count, sizeof *kernels);
    struct kernel *k = &kernels[kernel_count++];
    memset(k, 0, sizeof *k);
    k->name = strdup(strtok_r(NULL, " \n", place));
    k->registers = (int)number(place);
    k->shared = number(place);
    k->threads = (int)number(place);
    k->parameter_count = (int)number(place);
    k->parameters = calloc((size_t)k->parameter_count + 1, sizeof *k->parameters);
    for (int i = 0; i < k->parameter_count; ++i) {
        k->parameters[i].offset = number(place);
        k->parameters[i].size = number(place);
    }
}

static void read_answer(char **place)
{
    const char *name = strtok_r(NULL, " \n", place);
    for (int i = 0; i < ANSWERS; ++i)
        if (strcmp(answers[i].name, name) == 0) answers[i].value = (long long)number(place);
}

static void read_line(char *line)
{
    char *place;
    const char *word = strtok_r(line, " \n", &place);
    if (strcmp(word, "kernel") == 0) read_kernel(&place);
    else if (strcmp(word, "answer") == 0) read_answer(&place);
    else snprintf(device_name, sizeof device_name, "%s", strtok_r(NULL, "\n", &place));
}

/* The counts are a shared mapping: they survive a program that crashes later. */
static void map_counts(void)
{
    const size_t size = sizeof *counts * ((size_t)kernel_count + 1);
    FILE *file = opened("counts", "w+b");
    for (size_t i = 0; i < size; ++i) fputc(0, file);
    fflush(file);
    counts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (counts == MAP_FAILED) die("cannot map the counts");
    fclose(file);
}

__attribute__((constructor(101))) static void start(void)
{
    FILE *request = opened("request", "r");
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, request) > 0) read_line(line);
    free(line);
    fclose(request);
    map_counts();
    launches = opened("launches", "w");
}

/* ---- registration ---- */

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;
    handle = binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
char __cudaInitModule(void **handle) { (void)handle; return 1; }

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    (void)handle, (void)device, (void)limit, (void)tid, (void)bid;
    (void)block, (void)grid, (void)warp;
    for (int i = 0; i < kernel_count; ++i)
        if (strcmp(kernels[i].name, name) == 0) kernels[i].host = host;
}

static struct variable *add_variable(const void *host, const char *name, size_t size)
{
    variables = grown(variables, variable_count, sizeof *variables);
    struct variable *v = &variables[variable_count++];
    *v = (struct variable){host, strdup(name), calloc(1, size + 1), size, 0};
    if (v->name == NULL || v->memory == NULL) die("out of memory");
    return v;
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    (void)handle, (void)device, (void)external, (void)constant, (void)global;
    add_variable(host, name, size);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    (void)handle, (void)device, (void)external, (void)constant, (void)global;
    struct variable *v = add_variable(host, name, size);
    v->is_set = 1;
    *host = v->memory;
}

/* ---- memory ---- */

static struct allocation *allocation_of(const void *address)
{
    for (int i = 0; i < allocation_count; ++i) {
        struct allocation *a = &allocations[i];
        if ((const char *)address >= a->start && (const char *)address <= a->start + a->size)
            return a;
    }
    return NULL;
}

static void add_allocation(void *start, size_t size, int owned)
{
    pthread_mutex_lock(&lock);
    allocations = grown(allocations, allocation_count, sizeof *allocations);
    allocations[allocation_count++] = (struct allocation){start, size, owned};
    pthread_mutex_unlock(&lock);
}

/* A page behind each allocation stays unmapped, so that an address just past one buffer's end
 * never is the start of another. */
static size_t span_of(size_t size) { return (size + 2 * PAGE - 1) / PAGE * PAGE; }

static cudaError_t allocate(void **result, size_t size)
{
    if (result == NULL) return fail(cudaErrorInvalidValue);
    *result = NULL;
    if (size == 0) return cudaSuccess;
    if (size > (size_t)answers[MEMORY].value) return fail(cudaErrorMemoryAllocation);
    char *start = mmap(NULL, span_of(size), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return fail(cudaErrorMemoryAllocation);
    mprotect(start + span_of(size) - PAGE, PAGE, PROT_NONE);
    add_allocation(start, size, 1);
    *result = start;
    return cudaSuccess;
}

static cudaError_t release(void *address, int owned)
{
    if (address == NULL) return cudaSuccess;
    pthread_mutex_lock(&lock);
    struct allocation *a = allocation_of(address);
    if (a == NULL || a->start != address || a->owned != owned) {
        pthread_mutex_unlock(&lock);
        return fail(cudaErrorInvalidValue);
    }
    if (owned) munmap(a->start, span_of(a->size));
    *a = allocations[--allocation_count];
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t n) { return allocate(p, n); }
cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t s) { (void)s; return allocate(p, n); }
cudaError_t cudaMallocManaged(void **p, size_t n, unsigned f) { (void)f; return allocate(p, n); }
cudaError_t cudaMallocHost(void **p, size_t n) { return allocate(p, n); }
cudaError_t cudaHostAlloc(void **p, size_t n, unsigned f) { (void)f; return allocate(p, n); }
cudaError_t cudaFree(void *p) { return release(p, 1); }
cudaError_t cudaFreeHost(void *p) { return release(p, 1); }
cudaError_t cudaFreeAsync(void *p, cudaStream_t s) { (void)s; return release(p, 1); }
cudaError_t cudaHostUnregister(void *p) { return release(p, 0); }

cudaError_t cudaHostRegister(void *p, size_t n, unsigned f)
{
    (void)f;
    add_allocation(p, n, 0);
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned f)
{
    (void)f;
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return allocate(p, *pitch * height);
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    (void)kind;
    memmove(to, from, n);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t s)
{
    (void)s;
    return cudaMemcpy(to, from, n, kind);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    (void)kind;
    for (size_t row = 0; row < height; ++row)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
    return cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t n)
{
    memset(to, value, n);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t s)
{
    (void)s;
    return cudaMemset(to, value, n);
}

static struct variable *variable_of(const void *host)
{
    for (int i = 0; i < variable_count; ++i)
        if (variables[i].host == host) return &variables[i];
    return NULL;
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t n, size_t offset,
                               enum cudaMemcpyKind kind)
{
    (void)kind;
    struct variable *v = variable_of(symbol);
    if (v == NULL) return fail(cudaErrorInvalidSymbol);
    if (offset > v->size || n > v->size - offset) return fail(cudaErrorInvalidValue);
    memcpy(v->memory + offset, from, n);
    v->is_set = 1;
    return cudaSuccess;
}

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t n, size_t offset,
                                 enum cudaMemcpyKind kind)
{
    (void)kind;
    const struct variable *v = variable_of(symbol);
    if (v == NULL) return fail(cudaErrorInvalidSymbol);
    if (offset > v->size || n > v->size - offset) return fail(cudaErrorInvalidValue);
    memcpy(to, v->memory + offset, n);
    return cudaSuccess;
}

/* ---- launches ---- */

static struct kernel *kernel_of(const void *host)
{
    for (int i = 0; host != NULL && i < kernel_count; ++i)
        if (kernels[i].host == host) return &kernels[i];
    return NULL;
}

static FILE *opened_for_launch(const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "%d.%s", launch_count, part);
    return opened(name, "wb");
}

static void write_all(FILE *file, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, file) != size) die("cannot write: is the disk full?");
}

static void closed(FILE *file)
{
    if (fclose(file) != 0) die("cannot write: is the disk full?");
}

static void write_parameters(const struct kernel *k, void **arguments)
{
    static char block[MAX_PARAMETERS_BYTES];
    size_t end = 0;
    memset(block, 0, sizeof block);
    for (int i = 0; i < k->parameter_count; ++i) {
        const struct parameter p = k->parameters[i];
        if (p.offset + p.size > sizeof block) die("a parameter block is too large");
        memcpy(block + p.offset, arguments[i], p.size);
        end = p.offset + p.size;
    }
    FILE *file = opened_for_launch("parameters");
    write_all(file, block, end);
    closed(file);
}

static void write_memory(void)
{
    FILE *file = opened_for_launch("buffers");
    for (int i = 0; i < allocation_count; ++i) {
        const struct allocation *a = &allocations[i];
        fprintf(launches, "buffer %llu %zu\n", (unsigned long long)(uintptr_t)a->start, a->size);
        write_all(file, a->start, a->size);
    }
    closed(file);
    file = opened_for_launch("globals");
    for (int i = 0; i < variable_count; ++i) {
        if (!variables[i].is_set) continue;
        fprintf(launches, "global %s %zu\n", variables[i].name, variables[i].size);
        write_all(file, variables[i].memory, variables[i].size);
    }
    closed(file);
}

static cudaError_t launch(const void *host, dim3 grid, dim3 block, void **arguments, size_t shared)
{
    const struct kernel *k = kernel_of(host);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    const size_t threads = (size_t)block.x * block.y * block.z;
    if (threads == 0 || threads > (size_t)answers[BLOCK_THREADS].value || grid.x == 0
        || grid.y == 0 || grid.z == 0)
        return fail(cudaErrorInvalidConfiguration);
    pthread_mutex_lock(&lock);
    if (counts[k - kernels]++ == 0) {
        fprintf(launches, "launch %d %s %u %u %u %u %u %u %zu\n", launch_count, k->name, grid.x,
                grid.y, grid.z, block.x, block.y, block.z, shared);
        write_parameters(k, arguments);
        write_memory();
        fprintf(launches, "end\n");
        fflush(launches);
    }
    ++launch_count;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    configuration.grid = grid;
    configuration.block = block;
    configuration.shared = shared;
    configuration.stream = stream;
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = configuration.grid;
    *block = configuration.block;
    *shared = configuration.shared;
    *(cudaStream_t *)stream = configuration.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
    *kernel = (cudaKernel_t)(uintptr_t)entry;
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    (void)stream;
    return launch(kernel, grid, block, arguments, shared);
}

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t s)
{
    (void)s;
    return launch(f, grid, block, arguments, shared);
}

cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                                        size_t shared, cudaStream_t s)
{
    (void)s;
    return launch(f, grid, block, arguments, shared);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **arguments)
{
    return launch(f, c->gridDim, c->blockDim, arguments, c->dynamicSmemBytes);
}

/* ---- questions about the device ---- */

#define SHARED_RESERVED 1024 /* bytes of each block that the driver keeps, capability 8.0 on */

static int largest_shared(void) { return (int)answers[SM_SHARED].value - SHARED_RESERVED; }

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    (void)device;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = (int)answers[BLOCK_THREADS].value; break;
    case cudaDevAttrMaxBlockDimX: *value = 1024; break;
    case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY: *value = 65535; break;
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)answers[BLOCK_SHARED].value; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = largest_shared(); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)answers[SM_SHARED].value; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *value = SHARED_RESERVED; break;
    case cudaDevAttrTotalConstantMemory: *value = 65536; break;
    case cudaDevAttrWarpSize: *value = (int)answers[WARP].value; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = (int)answers[SM_REGISTERS].value; break;
    case cudaDevAttrClockRate: *value = (int)answers[CLOCK].value; break;
    case cudaDevAttrMultiProcessorCount: *value = (int)answers[SMS].value; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = (int)answers[SM_THREADS].value; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = (int)answers[SM_BLOCKS].value; break;
    case cudaDevAttrComputeCapabilityMajor: *value = (int)answers[MAJOR].value; break;
    case cudaDevAttrComputeCapabilityMinor: *value = (int)answers[MINOR].value; break;
    case cudaDevAttrClusterLaunch: *value = answers[MAJOR].value >= 9; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrCanMapHostMemory: *value = 1; break;
    default: *value = 0;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    if (device != 0) return fail(cudaErrorInvalidDevice);
    memset(p, 0, sizeof *p);
    memcpy(p->name, device_name, sizeof p->name);
    p->totalGlobalMem = (size_t)answers[MEMORY].value;
    p->sharedMemPerBlock = (size_t)answers[BLOCK_SHARED].value;
    p->sharedMemPerBlockOptin = (size_t)largest_shared();
    p->sharedMemPerMultiprocessor = (size_t)answers[SM_SHARED].value;
    p->reservedSharedMemPerBlock = SHARED_RESERVED;
    p->regsPerBlock = p->regsPerMultiprocessor = (int)answers[SM_REGISTERS].value;
    p->warpSize = (int)answers[WARP].value;
    p->maxThreadsPerBlock = (int)answers[BLOCK_THREADS].value;
    p->maxThreadsPerMultiProcessor = (int)answers[SM_THREADS].value;
    p->maxBlocksPerMultiProcessor = (int)answers[SM_BLOCKS].value;
    p->multiProcessorCount = (int)answers[SMS].value;
    p->major = (int)answers[MAJOR].value;
    p->minor = (int)answers[MINOR].value;
    p->totalConstMem = 65536;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->concurrentKernels = p->unifiedAddressing = p->managedMemory = 1;
    p->canMapHostMemory = p->cooperativeLaunch = p->concurrentManagedAccess = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n) { *n = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int *d) { *d = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int d) { return d == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }
cudaError_t cudaDeviceReset(void) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int *v) { *v = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *v) { *v = CUDART_VERSION; return cudaSuccess; }

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = *total = (size_t)answers[MEMORY].value;
    for (int i = 0; i < allocation_count; ++i)
        *available -= allocations[i].size < *available ? allocations[i].size : *available;
    return cudaSuccess;
}

/* Registers are given out to a warp in units of 256, and each of an SM's four parts holds a
 * quarter of them (CUDA occupancy calculator). */
static int warps_by_registers(const struct kernel *k)
{
    const int unit = 256, parts = 4;
    const int per_warp = (k->registers * (int)answers[WARP].value + unit - 1) / unit * unit;
    return (int)answers[SM_REGISTERS].value / parts / (per_warp ? per_warp : unit) * parts;
}

static int smaller(int a, int b) { return a < b ? a : b; }

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f,
                                                                   int threads, size_t dynamic,
                                                                   unsigned flags)
{
    (void)flags;
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (threads < 1) return fail(cudaErrorInvalidValue);
    const int warp = (int)answers[WARP].value, warps = (threads + warp - 1) / warp;
    const size_t shared = (k->shared + dynamic + SHARED_RESERVED + 127) / 128 * 128;
    *blocks = smaller((int)answers[SM_BLOCKS].value, (int)answers[SM_THREADS].value / (warps * warp));
    *blocks = smaller(*blocks, warps_by_registers(k) / warps);
    *blocks = smaller(*blocks, (int)((size_t)answers[SM_SHARED].value / shared));
    if (threads > k->threads) *blocks = 0;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads,
                                                          size_t dynamic)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, dynamic, 0);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f)
{
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    memset(a, 0, sizeof *a);
    a->numRegs = k->registers;
    a->sharedSizeBytes = k->shared;
    a->maxThreadsPerBlock =
        smaller(k->threads, warps_by_registers(k) * (int)answers[WARP].value);
    a->maxDynamicSharedSizeBytes = (int)(k->dynamic_limit ? k->dynamic_limit
                                         : (size_t)answers[BLOCK_SHARED].value - k->shared);
    a->ptxVersion = a->binaryVersion = (int)(10 * answers[MAJOR].value + answers[MINOR].value);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute attribute, int value)
{
    struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || (size_t)value + k->shared > (size_t)largest_shared())
        return fail(cudaErrorInvalidValue);
    k->dynamic_limit = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void *f, enum cudaFuncCache c)
{
    (void)f, (void)c;
    return cudaSuccess;
}

/* ---- streams, events, errors ---- */

static void *token(void)
{
    static char tokens[1];
    return tokens;
}

cudaError_t cudaStreamCreate(cudaStream_t *s) { *s = token(); return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned f)
{
    (void)f;
    return cudaStreamCreate(s);
}
cudaError_t cudaStreamDestroy(cudaStream_t s) { (void)s; return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { (void)s; return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned f)
{
    (void)s, (void)e, (void)f;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) { *e = token(); return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned f)
{
    (void)f;
    return cudaEventCreate(e);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) { (void)e; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { (void)e, (void)s; return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { (void)e; return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t e) { (void)e; return cudaSuccess; }

/* Never zero: programs divide by it. */
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b)
{
    (void)a, (void)b;
    *ms = 1.0f;
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }
cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

static const struct { cudaError_t error; const char *name, *text; } errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
};

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (errors[i].error == error) return errors[i].text;
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (errors[i].error == error) return errors[i].name;
    return "unrecognized error code";
}
