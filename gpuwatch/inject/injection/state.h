#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cuda.h>
#include <cupti.h>

enum {
  PROTOCOL = 1,
  ROWS = 16384,
  RECENT = 12,
  SLOTS = 8,
  RING = 1 << 16,
  PATH_BYTES = 512,
  WAIT_MS = 20000,     /* for gpuwatch to weave and assemble, where the program is held */
  ENDING_MS = 3000,    /* for the last records, when the program ends */
  FLUSH_MS = 50,
  BUSY_FLUSH_MS = 4,
  TIME_MS = 300, /* for the time of a launch, behind its records */
  FLIGHT_POLL_MS = 1,
  MANY_A_SECOND = 20000, /* launches from which on they are sampled: open so long, then closed */
  OPEN_MS = 20,
  CLOSED_MS = 380, /* not often: opening and closing cost the program more than being open */
  RATE_MS = 200, /* over which their rate is taken */
  MOST_BUILDS = 1024,
  MOST_STORED = 4096,
  MOST_PARAMETERS = 1 << 15, /* bytes that a kernel may have, since CUDA 12.1 */
};
static const uint64_t SPREAD = 0x9E3779B97F4A7C15u;

/* ---- the table that gpuwatch reads (protocol.py: ROW) */

typedef struct {
  uint32_t kernel, device, grid[3], block[3], dynamic_shared, static_shared, registers, unused;
  uint64_t launches, total_ns, max_ns, probed, probed_ns, in_graphs, seen, skipped;
  uint32_t recent[RECENT], recent_probed[RECENT], recents, recents_probed;
  uint64_t spare[5];
} Row;
_Static_assert(sizeof(Row) == 256, "protocol.py knows this size");

typedef struct {
  uint32_t magic, version, row_bytes, capacity;
  uint64_t rows, launches, lost_rows, lost_records, records, sampled;
  uint8_t spare[192];
} Head;
_Static_assert(sizeof(Head) == 256, "protocol.py knows this size");

/* ---- what is known of the program */

typedef struct {
  uint32_t grid[3], block[3], dynamic_shared;
} Shape;

typedef enum { UNDECIDED, IGNORED, WATCHED } Wish;

typedef struct {
  char *name;
  uint32_t image;
  void *owner;      /* CUmodule or CUlibrary that the newest handle came from */
  bool library;
  bool announced;
  Wish wish;
  uint64_t first, last; /* which of its launches are to be probed */
  uint64_t seen;
  int64_t stored;   /* which launch is to be stored, -1 for none */
  char *variables;  /* names of the variables that are stored with it */
} Kernel;

typedef struct {
  CUdeviceptr memory;
  uint8_t *host;
  uint64_t *pointers;
  void **parameters;
  void *extra[5];
  uint8_t *block;
  size_t block_bytes;
  CUevent launched, copied;
  enum { FREE, TAKEN, LAUNCHED, COPYING, READ, CLEARING } state;
  uint32_t row, correlation;
  uint64_t number, copied_ns;
  /* the launch as the program asked for it, until it has been made */
  CUfunction own;
  void **own_parameters, **own_extra;
} Slot;

typedef struct Instance {
  struct Instance *next; /* to be released with it */
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr variable; /* where the maps' addresses go, if not to a parameter */
  CUdeviceptr constants[16], own_constants[16];
  size_t constant_bytes[16];
  CUstream stream;
  Slot slots[SLOTS];
  uint32_t used;
  size_t slot_bytes;
  bool pinned; /* copies to the slots' files wait for nothing */
} Instance;

typedef struct {
  uint32_t id, kernel, device;
  CUcontext context; /* of the launch that wanted it: variables have addresses of their own in each */
  const void *owner; /* module or library of that launch's handle, whose variables they are */
  bool library;
  Shape shape;
  enum { WANTED, READY, REFUSED } state;
  CUfunction asked_by; /* handle of a launch that wants it loaded */
  bool loading;
  bool late; /* launches have waited for it long enough */
  bool dropped; /* no launch goes with it any more; freed when none under way does */
  char cubin[PATH_BYTES], *entry, *variable;
  bool takes;
  uint32_t parameters, block_bytes, buffers, slots, constants, fixed;
  size_t *sizes;
  uint32_t fixed_index[16];
  char *fixed_file[16];
  char *constant_names[16];
  Instance *instance;
} Build;

typedef struct {
  const void *key;
  uint32_t value;
  const void *owner;
} Pair;

typedef struct {
  Pair *pairs;
  size_t used, size;
} Map;

typedef struct {
  uint32_t correlation, kernel;
  bool probed;
  uint64_t ns; /* how long it took, once that is known */
} Noted;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static _Thread_local int inside; /* our own driver calls are not the program's */
static _Thread_local Slot *taken; /* by the launch under way, which has this correlation */
static _Thread_local uint32_t taken_by;
static atomic_bool dead;         /* nothing more is done: gpuwatch is gone, or this is a fork */
static atomic_bool working;      /* the worker is there */
static atomic_bool ended;        /* the program itself ends: the driver may be gone */

static char folder[PATH_BYTES - 64];
static pid_t owner;
static int link_fd = -1, wake_fd = -1;
static CUpti_SubscriberHandle subscriber;
static bool timed, hold, wait_for_slots;
static _Atomic bool callbacks_on; /* whether the end of a launch that begins now will be seen */
static bool sampling, closed; /* whether launches are seen at times only, and not now */
static double stands_for = 1, spare_share; /* how many launches one that is seen stands for */
static uint64_t interval_ns, plain_every;

static Head *head;
static Row *rows;
static Kernel *kernels; /* from 1 */
static uint32_t kernel_count = 1, kernel_room, image_count;
static Map images, handles; /* module or library -> image; function or kernel -> kernel */
static Map linked;          /* link under way, or what came of one -> image of its PTX */
static uint32_t name_table[1 << 16], row_table[1 << 16];
static Noted ring[RING];
static Build *builds[MOST_BUILDS];
static uint32_t build_count, watched_count, releasing;
static uint64_t last_probed_ns;
static struct { CUcontext context; uint32_t device; } contexts[64];
static uint32_t context_count;

static char *outgoing;
static size_t outgoing_used, outgoing_room;
static bool sending; /* some of it is in the worker's hands */

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
