/* Memory that stands in for the device's, at addresses that plain data is unlikely to hold. */
#include "runtime.h"

#include <sys/mman.h>

/*
 * A word of a buffer counts as an address when it lies in an allocation, so no common pattern of
 * data may do so. Allocations lie in the upper halves of 4 GiB windows from ARENA on: read as two
 * 32-bit numbers such a word is a large negative one next to 6747 or a little more, read as
 * floats -1e-29 next to a denormal, read as a double a denormal.
 */
#define ARENA ((uintptr_t)0x1A5B00000000)
#define ARENA_END ((uintptr_t)0x2A0000000000)
#define HALF_WINDOW ((size_t)1 << 31)
#define PAGE ((size_t)4096)

struct allocation *allocations;
int allocation_count;

static struct { char *start; size_t span; } *spares;
static int spare_count;
static uintptr_t next_address = ARENA + HALF_WINDOW;
static size_t device_bytes;

/* At least one byte lies between an allocation's end and the next one. */
static size_t span_of(size_t size) { return (size / PAGE + 1) * PAGE; }

/* The first allocation that starts behind `address`; they are kept in order. */
static int place_behind(const void *address)
{
    int low = 0, high = allocation_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (allocations[middle].start <= (const char *)address) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* The allocation that holds `address` or ends there; call with the lock held. */
struct allocation *allocation_of(const void *address)
{
    const int behind = place_behind(address);
    if (behind == 0) return NULL;
    struct allocation *a = &allocations[behind - 1];
    return (const char *)address <= a->start + a->size ? a : NULL;
}

cudaError_t add_allocation(void *start, size_t size, size_t span, enum memory_kind kind)
{
    pthread_mutex_lock(&runtime_lock);
    allocations = grown(allocations, allocation_count, sizeof *allocations);
    const int at = place_behind(start);
    if (kind <= MANAGED_MEMORY) device_bytes += size;
    memmove(&allocations[at + 1], &allocations[at],
            sizeof *allocations * (size_t)(allocation_count - at));
    allocations[at] = (struct allocation){start, size, span, kind};
    ++allocation_count;
    pthread_mutex_unlock(&runtime_lock);
    return cudaSuccess;
}

static char *spare_of(size_t span)
{
    for (int i = 0; i < spare_count; ++i) {
        if (spares[i].span != span) continue;
        char *start = spares[i].start;
        spares[i] = spares[--spare_count];
        return start;
    }
    return NULL;
}

/* `address`, or where the next upper half begins if it lies in a lower one. */
static uintptr_t in_upper_half(uintptr_t address)
{
    return (address & HALF_WINDOW) != 0 ? address : (address | (HALF_WINDOW - 1)) + 1;
}

static char *fresh_addresses(size_t span)
{
    const size_t left = HALF_WINDOW - (next_address & (HALF_WINDOW - 1));
    if (span > left) next_address = in_upper_half(next_address + left);
    char *start = (char *)next_address;
    next_address = in_upper_half(next_address + span);
    return next_address < ARENA_END ? start : NULL;
}

static char *mapped(size_t span)
{
    pthread_mutex_lock(&runtime_lock);
    char *start = spare_of(span);
    if (start == NULL) start = fresh_addresses(span);
    pthread_mutex_unlock(&runtime_lock);
    if (start == NULL) return NULL;
    void *memory = mmap(start, span, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

cudaError_t allocate(void **result, size_t size, enum memory_kind kind)
{
    if (result == NULL) return fail(cudaErrorInvalidValue);
    *result = NULL;
    if (size == 0) return cudaSuccess;
    const int on_device = kind <= MANAGED_MEMORY;
    if (on_device && size + device_bytes > (size_t)answers[MEMORY])
        return fail(cudaErrorMemoryAllocation);
    char *start = mapped(span_of(size));
    if (start == NULL) return fail(cudaErrorMemoryAllocation);
    *result = start;
    return add_allocation(start, size, span_of(size), kind);
}

static cudaError_t release(void *address, unsigned kinds)
{
    if (address == NULL) return cudaSuccess;
    pthread_mutex_lock(&runtime_lock);
    struct allocation *a = allocation_of(address);
    if (a == NULL || a->start != address || (kinds >> a->kind & 1) == 0) {
        pthread_mutex_unlock(&runtime_lock);
        return fail(cudaErrorInvalidValue);
    }
    if (a->span > 0) {
        munmap(a->start, a->span);
        spares = grown(spares, spare_count, sizeof *spares);
        spares[spare_count].start = a->start;
        spares[spare_count++].span = a->span;
    }
    if (a->kind <= MANAGED_MEMORY) device_bytes -= a->size;
    const size_t behind = (size_t)(&allocations[--allocation_count] - a);
    memmove(a, a + 1, sizeof *a * behind);
    pthread_mutex_unlock(&runtime_lock);
    return cudaSuccess;
}

#define ON_DEVICE (1u << DEVICE_MEMORY | 1u << MANAGED_MEMORY)
#define ON_HOST (1u << PINNED_MEMORY)

cudaError_t cudaMalloc(void **p, size_t n) { return allocate(p, n, DEVICE_MEMORY); }
cudaError_t cudaMallocHost(void **p, size_t n) { return allocate(p, n, PINNED_MEMORY); }
cudaError_t cudaFree(void *p) { return release(p, ON_DEVICE); }
cudaError_t cudaFreeHost(void *p) { return release(p, ON_HOST); }
cudaError_t cudaHostUnregister(void *p) { return release(p, 1u << REGISTERED_MEMORY); }

cudaError_t cudaMallocManaged(void **p, size_t n, unsigned flags)
{
    (void)flags;
    return allocate(p, n, MANAGED_MEMORY);
}

cudaError_t cudaHostAlloc(void **p, size_t n, unsigned flags)
{
    (void)flags;
    return allocate(p, n, PINNED_MEMORY);
}

cudaError_t cudaMallocAsync(void **p, size_t n, cudaStream_t stream)
{
    (void)stream;
    return allocate(p, n, DEVICE_MEMORY);
}
PER_THREAD(cudaMallocAsync, _ptsz);

cudaError_t cudaMallocFromPoolAsync(void **p, size_t n, cudaMemPool_t pool, cudaStream_t stream)
{
    (void)pool, (void)stream;
    return allocate(p, n, DEVICE_MEMORY);
}
PER_THREAD(cudaMallocFromPoolAsync, _ptsz);

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    (void)stream;
    return release(p, ON_DEVICE);
}
PER_THREAD(cudaFreeAsync, _ptsz);

cudaError_t cudaHostRegister(void *p, size_t n, unsigned flags)
{
    (void)flags;
    if (p == NULL || n == 0) return fail(cudaErrorInvalidValue);
    return add_allocation(p, n, 0, REGISTERED_MEMORY);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *host)
{
    (void)host;
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
}

static size_t pitch_of(size_t width) { return (width + 511) / 512 * 512; }

cudaError_t cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    *pitch = pitch_of(width);
    return allocate(p, *pitch * height, DEVICE_MEMORY);
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *p, struct cudaExtent extent)
{
    *p = (struct cudaPitchedPtr){NULL, pitch_of(extent.width), extent.width, extent.height};
    return allocate(&p->ptr, p->pitch * extent.height * extent.depth, DEVICE_MEMORY);
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *total = (size_t)answers[MEMORY];
    *available = *total - device_bytes;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address)
{
    static const enum cudaMemoryType types[] = {
        [DEVICE_MEMORY] = cudaMemoryTypeDevice, [MANAGED_MEMORY] = cudaMemoryTypeManaged,
        [PINNED_MEMORY] = cudaMemoryTypeHost, [REGISTERED_MEMORY] = cudaMemoryTypeHost,
        [VARIABLE_MEMORY] = cudaMemoryTypeDevice,
    };
    pthread_mutex_lock(&runtime_lock);
    const struct allocation *a = allocation_of(address);
    memset(attributes, 0, sizeof *attributes);
    attributes->type = a == NULL ? cudaMemoryTypeUnregistered : types[a->kind];
    if (a != NULL) attributes->devicePointer = (void *)address;
    if (a == NULL || attributes->type != cudaMemoryTypeDevice)
        attributes->hostPointer = (void *)address;
    pthread_mutex_unlock(&runtime_lock);
    return cudaSuccess;
}
