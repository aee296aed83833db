/* A CUDA driver and a CUPTI for machines without a GPU, in one library that goes by both names.
 *
 * Device memory is the host's. A launch computes at once what its kernel's name stands for
 * (fake_launches.c). What a module has that the injected library loaded, which lies in the folder
 * GPUWATCH_RUN, is a probed kernel: it computes the same, and writes a record for each warp into
 * its first map. A handle that is used after its end stops the program, as do other things that the
 * real driver leaves undefined.
 *
 * What goes wrong, by environment variables:
 *   FAKE_MEMORY=BYTES       so much memory is there
 *   FAKE_REFUSE_PROBED=1    probed kernels cannot be launched
 *   FAKE_BROKEN_UPLOAD=1    copies in a stream to the device, and within it, fail
 *   FAKE_BROKEN_DOWNLOAD=1  copies from the device in a stream fail
 *   FAKE_BROKEN_EVENTS=1    events never come to pass
 *   FAKE_NO_GAPS=1          allocations lie one behind the other
 *   FAKE_NO_PINNING=1       memory of the host cannot be registered
 *   FAKE_NO_VARIABLES=1     variables are found by the program's first thread alone
 *   FAKE_FEW_RESIDENT=1     fewer blocks of a probed kernel fit on an SM
 *   FAKE_APART=1            variables of a library lie 16 bytes further on in each further context
 *   FAKE_SLOW_LAUNCH=US     a launch takes so long
 *   FAKE_LAZY=1             a function that was replaced may not be loaded by a later launch
 *   FAKE_LOAD_BEHIND=N      a probed kernel is loaded once so many more launches have been made
 *   FAKE_SLOW_CAPTURE=US    it takes so long to tell whether a stream is captured
 *   FAKE_SLOW_FREE=US       memory takes so long to be freed
 *   FAKE_SLOW_END=US        the driver takes so long to end with the program; no call may come then
 *   FAKE_SLOW_FLUSH=US      times of kernels take so long to come, unless that is forced
 *   FAKE_SECOND_SUBSCRIBER=1, FAKE_NO_ACTIVITY=1  CUPTI refuses to be subscribed to, to give times
 */
#ifndef FAKE_H
#define FAKE_H

#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cupti.h>

enum { PARAMETERS = 8, VARIABLES = 8, BLOCK = 8192, CAPTURED = 16, ATTRIBUTES = 32 };

typedef enum { CONTEXT, MODULE, FUNCTION, KERNEL, STREAM, EVENT, GRAPH, LINK, KINDS } Kind;

/* A kernel that can be launched, known by its name. */
typedef struct {
  const char *name;
  unsigned count;
  size_t sizes[PARAMETERS];
} Known;

typedef struct {
  struct Object *function;
  unsigned grid[3], block[3], shared;
  uint8_t parameters[BLOCK];
  uint64_t map; /* where a probed kernel's records go */
} Call;

/* What a handle stands for. A library is a MODULE with `library`, and lies in no context. */
typedef struct Object {
  bool used;
  struct Object *context, *module, *function;
  const Known *known;
  char *image;
  size_t size;
  bool library, probed, loaded;
  struct {
    char name[64];
    CUdeviceptr at;
    size_t size;
  } variables[VARIABLES];
  int attributes[ATTRIBUTES];
  bool capturing, broken;
  CUstreamCaptureMode mode;
  Call *calls;
  unsigned call_count;
  bool recorded;
  int queries;
} Object;

/* ---- fake_driver.c */

extern pthread_mutex_t fake_lock;
bool fake_fails(const char *variable);
/* Stops the program when the driver has ended. */
void fake_alive(void);
Object *fake_current(void);
/* NULL for what is of another kind. */
Object *fake_object(const void *handle, Kind kind);
Object *fake_new(Kind kind);
void fake_end(Object *object);
/* NULL for a stream that is not the program's own. */
Object *fake_stream(CUstream stream);
CUdeviceptr fake_variable(Object *module, const char *name, size_t *size);
/* Of the module that the program has loaded: probed kernels have its address. */
CUdeviceptr fake_program_variable(const char *name);

/* ---- fake_launches.c */

const Known *fake_known(const char *name);
/* How many launches have been made. */
unsigned fake_launch_count(void);
size_t fake_offset(const Known *known, unsigned index);

/* ---- fake_cupti.c */

/* A call of the driver that CUPTI tells of, before and after. */
typedef struct {
  CUpti_CallbackId id;
  const char *name;
  void *parameters;
  CUresult status;
  uint32_t correlation;
  uint64_t data;
} Traced;

void fake_enter(Traced *call);
CUresult fake_leave(Traced *call);
void fake_ending(CUcontext context);
void fake_record(const Call *call, uint32_t correlation, uint32_t graph);

#define TRACED(function, ...)                                                             \
  function##_params q = {__VA_ARGS__};                                                    \
  Traced call = {CUPTI_DRIVER_TRACE_CBID_##function, #function, &q, CUDA_SUCCESS, 0, 0}; \
  fake_enter(&call)

#endif
