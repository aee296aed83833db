/*
 * A stand-in for the CUDA runtime that needs no GPU. A program that runs against it allocates host
 * memory in place of device memory and copies as always; every kernel launch is written down in
 * the folder named by GPUWATCH_CAPTURE_DIR instead of being executed.
 *
 * Read there, once, before the program's own code runs: "request", lines
 *   name TEXT                  the device's name
 *   answer NAME VALUE          what it answers, see `enum answer`
 *   keep INDEX                 the launch whose memory is wanted besides each kernel's first
 *   variable NAME HEX          first content of a module variable
 *   kernel NAME REGISTERS SHARED THREADS CX CY CZ N OFFSET SIZE ...
 *                              static shared bytes, most threads of a block, the cluster that it
 *                              was compiled for, N parameters
 * Written: "launches", lines
 *   launch INDEX NAME GX GY GZ BX BY BZ SHARED COOPERATIVE CX CY CZ ERROR WORDS...
 *   buffer ADDRESS SIZE        | after a launch whose memory is kept: what it can reach, bytes
 *   variable ADDRESS SIZE SET NAME  | one after the other in INDEX.buffers; the variables in
 *   kept INDEX                 | INDEX.variables; the parameter block in INDEX.parameters
 *   refused NAME               a call that this runtime does not have
 * and "counts": one uint64 for each kernel of the request and one for all launches.
 */
#ifndef GPUWATCH_RUNTIME_H
#define GPUWATCH_RUNTIME_H

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

/* The name of `function` in programs built with --default-stream per-thread. */
#define PER_THREAD(function, suffix)                                                               \
    extern __typeof(function) function##suffix __attribute__((alias(#function)))

struct parameter { size_t offset, size; };

struct kernel {
    char *name;
    const void *host;
    int registers, threads, parameter_count;
    size_t shared, dynamic_limit;
    dim3 cluster;
    struct parameter *parameters;
};

enum memory_kind { DEVICE_MEMORY, MANAGED_MEMORY, PINNED_MEMORY, REGISTERED_MEMORY, VARIABLE_MEMORY };
struct allocation { char *start; size_t size, span; enum memory_kind kind; };
struct variable { const void *host; char *name, *memory; size_t size; int is_set; };

struct shape {
    dim3 grid, block, cluster;
    size_t shared;
    int cooperative;
};

/* What a stream is given to do. Copies and fills are boxes of rows: `width` bytes, `height` rows
 * `pitch` apart, `depth` slices `slice` apart. */
struct copy {
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, to_slice, from_slice, width, height, depth;
};
struct fill {
    char *to;
    unsigned value;
    size_t element, pitch, slice, width, height, depth;
};
enum work_kind { NO_WORK, COPY_WORK, FILL_WORK, KERNEL_WORK, HOST_WORK };
struct work {
    enum work_kind kind;
    union {
        struct copy copy;
        struct fill fill;
        struct { const struct kernel *kernel; struct shape shape; char *parameters; } kernel;
        struct { cudaHostFn_t function; void *data; } host;
    };
};

enum answer { SMS, SM_THREADS, WARP, BLOCK_THREADS, BLOCK_SHARED, SM_SHARED, SM_REGISTERS, MAJOR,
              MINOR, MEMORY, CLOCK, SM_BLOCKS, ANSWERS };

/* state.c */
extern long long answers[ANSWERS];
extern char device_name[256];
extern struct kernel *kernels;
extern int kernel_count;
extern long kept_launch;
extern pthread_mutex_t runtime_lock;
cudaError_t fail(cudaError_t error);
_Noreturn void die(const char *what);
void *grown(void *array, int count, size_t element);
FILE *opened(const char *name, const char *mode);
struct kernel *kernel_of(const void *host);
const char *first_content(const char *variable);

/* arena.c */
extern struct allocation *allocations;
extern int allocation_count;
cudaError_t allocate(void **result, size_t size, enum memory_kind kind);
cudaError_t add_allocation(void *start, size_t size, size_t span, enum memory_kind kind);
struct allocation *allocation_of(const void *address);

/* symbols.c */
extern struct variable *variables;
extern int variable_count;

/* reach.c */
char *reachable(const char *parameters, size_t size);

/* registration.c */
const char *name_of_stranger(const void *host);

/* launches.c */
cudaError_t launch(const struct kernel *kernel, const struct shape *shape, const char *parameters);
cudaError_t launch_refused(const char *name, const struct shape *shape, cudaError_t error,
                           const char *why);
void note_refused_call(const char *name);
size_t parameter_bytes(const struct kernel *kernel);
char *packed_parameters(const struct kernel *kernel, void **arguments);

/* streams.c */
cudaError_t submit(cudaStream_t stream, struct work work);
cudaError_t perform(const struct work *work);

/* graphs.c */
struct graph *new_graph(void);
void append(struct graph *graph, struct work work);

/* occupancy.c */
int resident_blocks(const struct kernel *kernel, int threads, size_t dynamic);
int most_threads(const struct kernel *kernel);
size_t largest_shared(void);
size_t dynamic_limit(const struct kernel *kernel);

#endif
