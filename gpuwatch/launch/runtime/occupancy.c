/* How many blocks fit, and what a kernel needs. */
#include "runtime.h"

#define REGISTER_UNIT 256 /* registers are given to a warp in such units */
#define SM_PARTS 4        /* each holds a quarter of an SM's registers */
#define SHARED_UNIT 128
/* All three, and the bytes of each block that the driver keeps, from the CUDA occupancy
 * calculator. */
#define SHARED_KEPT ((size_t)(answers[MAJOR] >= 8 ? 1024 : 0))

static int smaller(int a, int b) { return a < b ? a : b; }

size_t largest_shared(void) { return (size_t)answers[SM_SHARED] - SHARED_KEPT; }

static int warps_by_registers(const struct kernel *k)
{
    const int needed = k->registers * (int)answers[WARP];
    const int per_warp = (needed + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    const int per_part = (int)answers[SM_REGISTERS] / SM_PARTS;
    return per_part / (per_warp > 0 ? per_warp : REGISTER_UNIT) * SM_PARTS;
}

int most_threads(const struct kernel *k)
{
    return smaller(k->threads, warps_by_registers(k) * (int)answers[WARP]);
}

size_t dynamic_limit(const struct kernel *k)
{
    if (k->dynamic_limit > 0) return k->dynamic_limit;
    const size_t usual = (size_t)answers[BLOCK_SHARED];
    return k->shared < usual ? usual - k->shared : 0;
}

static size_t shared_taken(const struct kernel *k, size_t dynamic)
{
    return (k->shared + dynamic + SHARED_KEPT + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
}

int resident_blocks(const struct kernel *k, int threads, size_t dynamic)
{
    if (threads > most_threads(k)) return 0;
    const int warp = (int)answers[WARP], warps = (threads + warp - 1) / warp;
    const size_t shared = shared_taken(k, dynamic);
    int blocks = smaller((int)answers[SM_BLOCKS], (int)answers[SM_THREADS] / (warps * warp));
    blocks = smaller(blocks, warps_by_registers(k) / warps);
    if (shared > 0) blocks = smaller(blocks, (int)((size_t)answers[SM_SHARED] / shared));
    return blocks;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *f,
                                                                   int threads, size_t dynamic,
                                                                   unsigned flags)
{
    (void)flags;
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (threads < 1) return fail(cudaErrorInvalidValue);
    *blocks = resident_blocks(k, threads, dynamic);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads,
                                                          size_t dynamic)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, f, threads, dynamic, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *f, int blocks,
                                                      int threads)
{
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (blocks < 1 || blocks > resident_blocks(k, threads, 0)) return fail(cudaErrorInvalidValue);
    const size_t each = (size_t)answers[SM_SHARED] / (size_t)blocks / SHARED_UNIT * SHARED_UNIT;
    *bytes = each > shared_taken(k, 0) ? each - shared_taken(k, 0) : 0;
    return cudaSuccess;
}

static unsigned blocks_of_cluster(const cudaLaunchConfig_t *c)
{
    for (unsigned i = 0; i < c->numAttrs; ++i)
        if (c->attrs[i].id == cudaLaunchAttributeClusterDimension)
            return c->attrs[i].val.clusterDim.x * c->attrs[i].val.clusterDim.y
                   * c->attrs[i].val.clusterDim.z;
    return 1;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *f,
                                                 const cudaLaunchConfig_t *config)
{
    (void)config;
    if (kernel_of(f) == NULL) return fail(cudaErrorInvalidDeviceFunction);
    *size = answers[MAJOR] >= 9 ? 8 : 1;
    return cudaSuccess;
}

/* As if every SM could join every cluster. */
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *f,
                                           const cudaLaunchConfig_t *c)
{
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    const int threads = (int)(c->blockDim.x * c->blockDim.y * c->blockDim.z);
    const int blocks = (int)answers[SMS] * resident_blocks(k, threads, c->dynamicSmemBytes);
    *clusters = blocks / (int)blocks_of_cluster(c);
    return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *f)
{
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    memset(a, 0, sizeof *a);
    a->numRegs = k->registers;
    a->sharedSizeBytes = k->shared;
    a->maxThreadsPerBlock = most_threads(k);
    a->maxDynamicSharedSizeBytes = (int)dynamic_limit(k);
    a->ptxVersion = a->binaryVersion = (int)(10 * answers[MAJOR] + answers[MINOR]);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *f, enum cudaFuncAttribute attribute, int value)
{
    struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || (size_t)value + k->shared > largest_shared())
        return fail(cudaErrorInvalidValue);
    k->dynamic_limit = (size_t)value;
    return cudaSuccess;
}

cudaError_t cudaFuncGetName(const char **name, const void *f)
{
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    *name = k->name;
    return cudaSuccess;
}

cudaError_t cudaFuncGetParamInfo(const void *f, size_t index, size_t *offset, size_t *size)
{
    const struct kernel *k = kernel_of(f);
    if (k == NULL) return fail(cudaErrorInvalidDeviceFunction);
    if (index >= (size_t)k->parameter_count) return fail(cudaErrorInvalidValue);
    *offset = k->parameters[index].offset;
    if (size != NULL) *size = k->parameters[index].size;
    return cudaSuccess;
}
