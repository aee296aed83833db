/* Kernel launches: checked as the device would, then written down. */
#include "runtime.h"

#include <stdarg.h>
#include <sys/mman.h>

#define LISTED 65536 /* launches that get a line each; all are counted */
#define MAX_PARAMETER_BYTES 32764

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream);

static FILE *launches;
static uint64_t *counts;
static _Thread_local struct { dim3 grid, block; size_t shared; cudaStream_t stream; } configuration;

/* The counts are a shared mapping: they survive a program that crashes later. */
static void start_writing(void)
{
    if (launches != NULL) return;
    const size_t size = sizeof *counts * ((size_t)kernel_count + 1);
    FILE *file = opened("counts", "w+b");
    for (size_t i = 0; i < size; ++i) fputc(0, file);
    fflush(file);
    counts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    if (counts == MAP_FAILED) die("cannot map the counts");
    fclose(file);
    launches = opened("launches", "w");
}

static FILE *opened_for_launch(uint64_t index, const char *part)
{
    char name[64];
    snprintf(name, sizeof name, "%llu.%s", (unsigned long long)index, part);
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

static void list(uint64_t index, const char *name, const struct shape *s, cudaError_t error,
                 const char *why)
{
    fprintf(launches, "launch %llu %s %u %u %u %u %u %u %zu %d %u %u %u %s %s\n",
            (unsigned long long)index, name, s->grid.x, s->grid.y, s->grid.z, s->block.x,
            s->block.y, s->block.z, s->shared, s->cooperative, s->cluster.x, s->cluster.y,
            s->cluster.z, cudaGetErrorName(error), why);
}

static void keep(uint64_t index, const char *parameters, size_t size)
{
    FILE *file = opened_for_launch(index, "parameters");
    write_all(file, parameters, size);
    closed(file);
    file = opened_for_launch(index, "buffers");
    char *reached = reachable(parameters, size);
    for (int i = 0; i < allocation_count; ++i) {
        const struct allocation *a = &allocations[i];
        if (a->kind == VARIABLE_MEMORY || !reached[i]) continue;
        fprintf(launches, "buffer %llu %zu\n", (unsigned long long)(uintptr_t)a->start, a->size);
        write_all(file, a->start, a->size);
    }
    free(reached);
    closed(file);
    file = opened_for_launch(index, "variables");
    for (int i = 0; i < variable_count; ++i) {
        const struct variable *v = &variables[i];
        if (v->memory == NULL) continue;
        fprintf(launches, "variable %llu %zu %d %s\n", (unsigned long long)(uintptr_t)v->memory,
                v->size, v->is_set, v->name);
        write_all(file, v->memory, v->size);
    }
    closed(file);
    fprintf(launches, "kept %llu\n", (unsigned long long)index);
}

void note_refused_call(const char *name)
{
    pthread_mutex_lock(&runtime_lock);
    start_writing();
    fprintf(launches, "refused %s\n", name);
    fflush(launches);
    pthread_mutex_unlock(&runtime_lock);
}

cudaError_t launch_refused(const char *name, const struct shape *shape, cudaError_t error,
                           const char *why)
{
    pthread_mutex_lock(&runtime_lock);
    start_writing();
    const uint64_t index = counts[kernel_count]++;
    if (index < LISTED) list(index, name, shape, error, why);
    fflush(launches);
    pthread_mutex_unlock(&runtime_lock);
    return fail(error);
}

static cudaError_t refused(const struct kernel *k, const struct shape *shape, cudaError_t error,
                           const char *format, ...)
{
    char why[256];
    va_list values;
    va_start(values, format);
    vsnprintf(why, sizeof why, format, values);
    va_end(values);
    return launch_refused(k->name, shape, error, why);
}

static int is_cluster(const dim3 c) { return c.x * c.y * c.z > 1; }

static cudaError_t check_cluster(const struct kernel *k, const struct shape *s)
{
    const dim3 c = s->cluster, g = s->grid;
    if (!is_cluster(c)) return cudaSuccess;
    if (answers[MAJOR] < 9)
        return refused(k, s, cudaErrorInvalidClusterSize,
                       "clusters need compute capability 9.0, this is %lld.%lld", answers[MAJOR],
                       answers[MINOR]);
    if (c.x * c.y * c.z > 16)
        return refused(k, s, cudaErrorInvalidClusterSize, "cluster of %u blocks > 16",
                       c.x * c.y * c.z);
    if (g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0)
        return refused(k, s, cudaErrorInvalidConfiguration,
                       "grid %ux%ux%u is no multiple of cluster %ux%ux%u", g.x, g.y, g.z, c.x, c.y,
                       c.z);
    return cudaSuccess;
}

static cudaError_t check(const struct kernel *k, const struct shape *s)
{
    const dim3 g = s->grid, b = s->block;
    const unsigned long long threads = (unsigned long long)b.x * b.y * b.z;
    if (g.x == 0 || g.y == 0 || g.z == 0)
        return refused(k, s, cudaErrorInvalidConfiguration, "grid %ux%ux%u", g.x, g.y, g.z);
    if (g.x > 2147483647u || g.y > 65535 || g.z > 65535)
        return refused(k, s, cudaErrorInvalidConfiguration,
                       "grid %ux%ux%u > 2147483647x65535x65535", g.x, g.y, g.z);
    if (threads > (unsigned long long)answers[BLOCK_THREADS])
        return refused(k, s, cudaErrorInvalidConfiguration, "block %llu threads > %lld", threads,
                       answers[BLOCK_THREADS]);
    if (threads == 0 || b.x > 1024 || b.y > 1024 || b.z > 64)
        return refused(k, s, cudaErrorInvalidConfiguration,
                       "block %ux%ux%u is not within 1x1x1 and 1024x1024x64", b.x, b.y, b.z);
    if (threads > (unsigned long long)most_threads(k))
        return refused(k, s, cudaErrorLaunchOutOfResources,
                       "block %llu threads > %d that the kernel was compiled for", threads,
                       most_threads(k));
    if (s->shared > dynamic_limit(k))
        return refused(k, s, cudaErrorInvalidValue,
                       "%zu bytes of dynamic shared memory > %zu (cudaFuncSetAttribute raises it)",
                       s->shared, dynamic_limit(k));
    const long long room = answers[SMS] * resident_blocks(k, (int)threads, s->shared);
    if (s->cooperative && (unsigned long long)g.x * g.y * g.z > (unsigned long long)room)
        return refused(k, s, cudaErrorCooperativeLaunchTooLarge,
                       "%llu blocks > %lld that are resident at a time",
                       (unsigned long long)g.x * g.y * g.z, room);
    return check_cluster(k, s);
}

size_t parameter_bytes(const struct kernel *k)
{
    if (k->parameter_count == 0) return 0;
    const struct parameter last = k->parameters[k->parameter_count - 1];
    return last.offset + last.size;
}

char *packed_parameters(const struct kernel *k, void **arguments)
{
    const size_t size = parameter_bytes(k);
    if (size > MAX_PARAMETER_BYTES) die("a parameter block is too large");
    char *block = calloc(1, size + 1);
    if (block == NULL) die("out of memory");
    for (int i = 0; i < k->parameter_count; ++i)
        memcpy(block + k->parameters[i].offset, arguments[i], k->parameters[i].size);
    return block;
}

cudaError_t launch(const struct kernel *k, const struct shape *given, const char *parameters)
{
    struct shape shape = *given;
    if (!is_cluster(shape.cluster)) shape.cluster = k->cluster;
    const cudaError_t error = check(k, &shape);
    if (error != cudaSuccess) return error;
    pthread_mutex_lock(&runtime_lock);
    start_writing();
    const uint64_t index = counts[kernel_count]++;
    const int kept = counts[k - kernels]++ == 0 || (long)index == kept_launch;
    if (kept || index < LISTED) {
        list(index, k->name, &shape, cudaSuccess, "");
        if (kept) keep(index, parameters, parameter_bytes(k));
        fflush(launches);
    }
    pthread_mutex_unlock(&runtime_lock);
    return cudaSuccess;
}

static cudaError_t launch_packed(const void *host, struct shape shape, void **arguments,
                                 cudaStream_t stream)
{
    const struct kernel *k = kernel_of(host);
    if (k == NULL)
        return launch_refused(name_of_stranger(host), &shape, cudaErrorInvalidDeviceFunction,
                              "there is no PTX of this kernel");
    struct work work = {.kind = KERNEL_WORK};
    work.kernel.kernel = k;
    work.kernel.shape = shape;
    work.kernel.parameters = packed_parameters(k, arguments);
    return submit(stream, work);
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

/* A kernel's handle is the address of its host function. */
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
    *kernel = (cudaKernel_t)(uintptr_t)entry;
    return cudaSuccess;
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *entry)
{
    return __cudaGetKernel(kernel, entry);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    *function = (cudaFunction_t)(uintptr_t)symbol;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                             size_t shared, cudaStream_t stream)
{
    const struct shape shape = {.grid = grid, .block = block, .shared = shared};
    return launch_packed(f, shape, arguments, stream);
}
PER_THREAD(cudaLaunchKernel, _ptsz);

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
PER_THREAD(__cudaLaunchKernel, _ptsz);

cudaError_t cudaLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **arguments,
                                        size_t shared, cudaStream_t stream)
{
    const struct shape shape = {
        .grid = grid, .block = block, .shared = shared, .cooperative = 1};
    return launch_packed(f, shape, arguments, stream);
}
PER_THREAD(cudaLaunchCooperativeKernel, _ptsz);

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *f, void **arguments)
{
    struct shape shape = {
        .grid = c->gridDim, .block = c->blockDim, .shared = c->dynamicSmemBytes};
    for (unsigned i = 0; i < c->numAttrs; ++i) {
        const cudaLaunchAttributeValue *value = &c->attrs[i].val;
        if (c->attrs[i].id == cudaLaunchAttributeCooperative)
            shape.cooperative = value->cooperative != 0;
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
            shape.cluster = (dim3){value->clusterDim.x, value->clusterDim.y, value->clusterDim.z};
    }
    return launch_packed(f, shape, arguments, c->stream);
}
PER_THREAD(cudaLaunchKernelExC, _ptsz);
