/* Questions about the one device that a captured program sees. */
#include "runtime.h"

static int known_device(int device)
{
    if (device == 0) return 1;
    fail(cudaErrorInvalidDevice);
    return 0;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    if (!known_device(device)) return cudaErrorInvalidDevice;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = (int)answers[BLOCK_THREADS]; break;
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY: *value = 1024; break;
    case cudaDevAttrMaxBlockDimZ: *value = 64; break;
    case cudaDevAttrMaxGridDimX: *value = 2147483647; break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ: *value = 65535; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)answers[BLOCK_SHARED]; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)largest_shared(); break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)answers[SM_SHARED]; break;
    case cudaDevAttrReservedSharedMemoryPerBlock:
        *value = (int)((size_t)answers[SM_SHARED] - largest_shared());
        break;
    case cudaDevAttrTotalConstantMemory: *value = 65536; break;
    case cudaDevAttrWarpSize: *value = (int)answers[WARP]; break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor: *value = (int)answers[SM_REGISTERS]; break;
    case cudaDevAttrClockRate: *value = (int)answers[CLOCK]; break;
    case cudaDevAttrMultiProcessorCount: *value = (int)answers[SMS]; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = (int)answers[SM_THREADS]; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *value = (int)answers[SM_BLOCKS]; break;
    case cudaDevAttrComputeCapabilityMajor: *value = (int)answers[MAJOR]; break;
    case cudaDevAttrComputeCapabilityMinor: *value = (int)answers[MINOR]; break;
    case cudaDevAttrClusterLaunch: *value = answers[MAJOR] >= 9; break;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrGlobalL1CacheSupported:
    case cudaDevAttrLocalL1CacheSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanMapHostMemory: *value = 1; break;
    default: *value = 0;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
    if (!known_device(device)) return cudaErrorInvalidDevice;
    memset(p, 0, sizeof *p);
    memcpy(p->name, device_name, sizeof p->name);
    p->totalGlobalMem = (size_t)answers[MEMORY];
    p->sharedMemPerBlock = (size_t)answers[BLOCK_SHARED];
    p->sharedMemPerBlockOptin = largest_shared();
    p->sharedMemPerMultiprocessor = (size_t)answers[SM_SHARED];
    p->reservedSharedMemPerBlock = (size_t)answers[SM_SHARED] - largest_shared();
    p->regsPerBlock = p->regsPerMultiprocessor = (int)answers[SM_REGISTERS];
    p->warpSize = (int)answers[WARP];
    p->maxThreadsPerBlock = (int)answers[BLOCK_THREADS];
    p->maxThreadsPerMultiProcessor = (int)answers[SM_THREADS];
    p->maxBlocksPerMultiProcessor = (int)answers[SM_BLOCKS];
    p->multiProcessorCount = (int)answers[SMS];
    p->major = (int)answers[MAJOR];
    p->minor = (int)answers[MINOR];
    p->totalConstMem = 65536;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 2147483647;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->clusterLaunch = answers[MAJOR] >= 9;
    p->concurrentKernels = p->unifiedAddressing = p->managedMemory = 1;
    p->canMapHostMemory = p->cooperativeLaunch = p->concurrentManagedAccess = 1;
    p->memoryPoolsSupported = p->streamPrioritiesSupported = p->hostRegisterSupported = 1;
    p->globalL1CacheSupported = p->localL1CacheSupported = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    return known_device(device) ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
    (void)device_flags, (void)flags;
    return cudaSetDevice(device);
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *wanted)
{
    (void)wanted;
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    *flags = 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
    if (!known_device(device)) return cudaErrorInvalidDevice;
    snprintf(id, (size_t)size, "0000:01:00.0");
    return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    (void)id;
    return cudaGetDevice(device);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    (void)device, (void)peer;
    *can = 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    if (least != NULL) *least = 0;
    if (greatest != NULL) *greatest = -5;
    return cudaSuccess;
}

static size_t limits[] = {
    [cudaLimitStackSize] = 1024, [cudaLimitPrintfFifoSize] = 1 << 20,
    [cudaLimitMallocHeapSize] = 8 << 20, [cudaLimitDevRuntimeSyncDepth] = 2,
    [cudaLimitDevRuntimePendingLaunchCount] = 2048, [cudaLimitMaxL2FetchGranularity] = 64,
    [cudaLimitPersistingL2CacheSize] = 0,
};

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    if ((size_t)limit >= sizeof limits / sizeof *limits) return fail(cudaErrorUnsupportedLimit);
    limits[limit] = value;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    if ((size_t)limit >= sizeof limits / sizeof *limits) return fail(cudaErrorUnsupportedLimit);
    *value = limits[limit];
    return cudaSuccess;
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}

/* ---- memory pools: handles without meaning, all memory is of one kind ---- */

static int pool;

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *result, int device)
{
    if (!known_device(device)) return cudaErrorInvalidDevice;
    *result = (cudaMemPool_t)&pool;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *result, int device)
{
    return cudaDeviceGetDefaultMemPool(result, device);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *result, const struct cudaMemPoolProps *properties)
{
    (void)properties;
    return cudaDeviceGetDefaultMemPool(result, 0);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t of, enum cudaMemPoolAttr attribute, void *value)
{
    (void)of;
    if (attribute >= cudaMemPoolAttrReleaseThreshold) *(uint64_t *)value = 0;
    else *(int *)value = 1;
    return cudaSuccess;
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   enum cudaChannelFormatKind kind)
{
    return (struct cudaChannelFormatDesc){x, y, z, w, kind};
}
