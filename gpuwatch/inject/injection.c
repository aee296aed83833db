/* The library that the CUDA driver loads into a program started by `gpuwatch run`
 * (CUDA_INJECTION64_PATH). It sees the program's kernels through CUPTI, launches probed kernels in
 * place of the program's own as gpuwatch says, and hands their records over. README.md beside this
 * file describes the folder, the socket and the shared table; `protocol.py` is the other side.
 *
 * Whatever goes wrong here is told, and the program's own kernel runs.
 */
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
  CLOSED_MS = 380, /* opening and closing cost the program some milliseconds */
  WATCHED_OPEN_MS = 10,
  WATCHED_CLOSED_MS = 40, /* where records are to come often */
  RATE_MS = 200, /* over which their rate is taken */
  MOST_BUILDS = 1024,
  MOST_STORED = 4096,
};
static const uint64_t SPREAD = 0x9E3779B97F4A7C15u;

/* ---- the table that gpuwatch reads (protocol.py: ROW) */

typedef struct {
  uint32_t kernel, device, grid[3], block[3], dynamic_shared, static_shared, registers, clustered;
  uint64_t launches, total_ns, min_ns, max_ns;
  uint64_t probed, probed_ns, probed_min_ns, probed_max_ns;
  uint64_t in_graphs, seen, skipped, refused;
  uint32_t recent[RECENT], recent_probed[RECENT], recents, recents_probed;
  uint64_t spare;
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

typedef struct {
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
} Instance;

typedef struct {
  uint32_t id, kernel, device;
  Shape shape;
  enum { WANTED, READY, REFUSED } state;
  bool loading;
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
static atomic_bool ended;        /* the program itself ends: the driver may be gone */

static char folder[PATH_BYTES - 64];
static pid_t owner;
static int link_fd = -1, wake_fd = -1;
static CUpti_SubscriberHandle subscriber;
static bool timed, hold, wait_for_slots, callbacks_on;
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
static uint32_t build_count, watched_count;
static uint64_t last_probed_ns;
static struct { CUcontext context; uint32_t device; bool told; } contexts[64];
static uint32_t context_count;

static char *outgoing;
static size_t outgoing_used, outgoing_room;
static bool sending; /* some of it is in the worker's hands */

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- telling: app threads only append, the worker sends. The caller holds the lock. */

static void wake(void) {
  const uint64_t one = 1;
  if (write(wake_fd, &one, sizeof one) < 0 && errno != EAGAIN) dead = true;
}

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
  va_list values;
  va_start(values, format);
  char *text = NULL;
  const int size = vasprintf(&text, format, values);
  va_end(values);
  if (size < 0) return;
  if (outgoing_used + (size_t)size + 1 > outgoing_room) {
    const size_t room = 2 * (outgoing_used + (size_t)size + 4096);
    char *larger = realloc(outgoing, room);
    if (larger == NULL) {
      free(text);
      return;
    }
    outgoing = larger, outgoing_room = room;
  }
  memcpy(outgoing + outgoing_used, text, (size_t)size);
  outgoing[outgoing_used + (size_t)size] = '\n';
  outgoing_used += (size_t)size + 1;
  free(text);
  wake();
}

static const char *words_of(CUresult status) {
  const char *name = NULL;
  return cuGetErrorName(status, &name) == CUDA_SUCCESS && name != NULL ? name : "unknown error";
}

/* ---- maps from handles */

static Pair *place(const Map *map, const void *key) {
  size_t at = (size_t)(((uintptr_t)key * SPREAD) >> 20) & (map->size - 1);
  while (map->pairs[at].key != NULL && map->pairs[at].key != key) at = (at + 1) & (map->size - 1);
  return &map->pairs[at];
}

static const Pair *find(const Map *map, const void *key) {
  if (map->size == 0 || key == NULL) return NULL;
  const Pair *pair = place(map, key);
  return pair->key == key && pair->value != 0 ? pair : NULL;
}

static void put(Map *map, const void *key, uint32_t value, const void *of) {
  if (key == NULL) return;
  if (2 * map->used >= map->size) {
    Map larger = {calloc(map->size ? 2 * map->size : 1024, sizeof(Pair)), 0,
                  map->size ? 2 * map->size : 1024};
    if (larger.pairs == NULL) return;
    for (size_t i = 0; i < map->size; i++)
      if (map->pairs[i].key != NULL && map->pairs[i].value != 0)
        *place(&larger, map->pairs[i].key) = map->pairs[i], larger.used++;
    free(map->pairs);
    *map = larger;
  }
  Pair *pair = place(map, key);
  if (pair->key == NULL) map->used++;
  *pair = (Pair){key, value, of};
}

/* Forgets a module, and the functions that came from it: their handles may be given again. */
static void forget(const void *module) {
  const Pair *pair = find(&images, module);
  if (pair != NULL) put(&images, module, 0, NULL);
  for (size_t i = 0; i < handles.size; i++)
    if (handles.pairs[i].owner == module) handles.pairs[i].value = 0;
  for (uint32_t i = 1; i < kernel_count; i++)
    if (kernels[i].owner == module) kernels[i].owner = NULL;
}

/* ---- kernels and rows */

static uint32_t hash_text(const char *text) {
  uint64_t hash = 14695981039346656037u;
  for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 1099511628211u;
  return (uint32_t)(hash >> 32 ^ hash);
}

static void announce(uint32_t number) {
  Kernel *kernel = &kernels[number];
  if (kernel->announced) return;
  kernel->announced = true;
  tell("kernel %u %u %s", number, kernel->image, kernel->name);
}

/* The kernel of this name and image; image 0 takes the newest of the name. */
static uint32_t kernel_of(const char *name, uint32_t image, bool anew) {
  size_t at = hash_text(name) & 0xFFFF;
  uint32_t found = 0;
  for (size_t tries = 0; name_table[at] != 0 && tries < 0x10000; at = (at + 1) & 0xFFFF, tries++) {
    const uint32_t number = name_table[at];
    if (strcmp(kernels[number].name, name) != 0) continue;
    if (image == 0) found = number > found ? number : found;
    else if (kernels[number].image == image) return number;
  }
  if (found != 0 || !anew || kernel_count >= 0xC000) return found;
  if (kernel_count >= kernel_room) {
    const uint32_t room = kernel_room ? 2 * kernel_room : 256;
    Kernel *larger = realloc(kernels, room * sizeof(Kernel));
    if (larger == NULL) return 0;
    kernels = larger, kernel_room = room;
  }
  kernels[kernel_count] = (Kernel){.name = strdup(name), .image = image, .stored = -1};
  if (kernels[kernel_count].name == NULL) return 0;
  name_table[at] = kernel_count;
  if (hold) announce(kernel_count);
  return kernel_count++;
}

static Row *row_of(uint32_t kernel, uint32_t device, const Shape *shape) {
  uint64_t hash = kernel * SPREAD ^ device;
  const uint32_t *words = (const uint32_t *)shape;
  for (size_t i = 0; i < sizeof(Shape) / 4; i++) hash = (hash ^ words[i]) * SPREAD;
  size_t at = (hash >> 40) & 0xFFFF;
  for (; row_table[at] != 0; at = (at + 1) & 0xFFFF) {
    Row *row = &rows[row_table[at] - 1];
    if (row->kernel == kernel && row->device == device &&
        memcmp(row->grid, shape->grid, sizeof row->grid) == 0 &&
        memcmp(row->block, shape->block, sizeof row->block) == 0 &&
        row->dynamic_shared == shape->dynamic_shared)
      return row;
  }
  if (head->rows >= head->capacity) {
    head->lost_rows++;
    return NULL;
  }
  Row *row = &rows[head->rows];
  *row = (Row){.kernel = kernel, .device = device, .dynamic_shared = shape->dynamic_shared};
  memcpy(row->grid, shape->grid, sizeof row->grid);
  memcpy(row->block, shape->block, sizeof row->block);
  row_table[at] = (uint32_t)++head->rows;
  announce(kernel);
  return row;
}

/* ---- times: CUPTI's records of kernels */

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
  *size = 1 << 20;
  *most = 0;
  *buffer = aligned_alloc(8, *size);
}

static void add_time(Row *row, uint64_t ns, bool probed) {
  uint64_t times = 1;
  if (sampling && !probed) {
    spare_share += stands_for;
    times = (uint64_t)spare_share;
    spare_share -= (double)times;
  }
  const uint32_t brief = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
  uint64_t *least = probed ? &row->probed_min_ns : &row->min_ns;
  uint64_t *most = probed ? &row->probed_max_ns : &row->max_ns;
  if (*least == 0 || ns < *least) *least = ns;
  if (ns > *most) *most = ns;
  if (probed) {
    row->probed++, row->probed_ns += ns;
    row->recent_probed[row->recents_probed++ % RECENT] = brief;
  } else {
    row->total_ns += ns * times;
    row->recent[row->recents++ % RECENT] = brief;
  }
  row->launches += times;
  head->launches += times;
  head->sampled += times - 1;
  head->records++;
}

static void take_record(const CUpti_ActivityKernel9 *one) {
  if (one->name == NULL || one->end < one->start) return;
  const Noted *noted = &ring[one->correlationId % RING];
  const bool known = noted->correlation == one->correlationId && noted->kernel != 0;
  const uint32_t kernel = known ? noted->kernel : kernel_of(one->name, 0, true);
  if (kernel == 0) return;
  const Shape shape = {
      {(uint32_t)one->gridX, (uint32_t)one->gridY, (uint32_t)one->gridZ},
      {(uint32_t)one->blockX, (uint32_t)one->blockY, (uint32_t)one->blockZ},
      (uint32_t)one->dynamicSharedMemory};
  Row *row = row_of(kernel, one->deviceId, &shape);
  if (row == NULL) return;
  const bool probed = known && noted->probed;
  ring[one->correlationId % RING].ns = known ? one->end - one->start : 0;
  if (!probed) {
    row->registers = one->registersPerThread;
    row->static_shared = (uint32_t)one->staticSharedMemory;
  }
  row->in_graphs += one->graphId != 0;
  add_time(row, one->end - one->start, probed);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
  (void)size;
  CUpti_Activity *record = NULL;
  pthread_mutex_lock(&lock);
  if (!dead)
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
      if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        take_record((const CUpti_ActivityKernel9 *)(const void *)record);
  pthread_mutex_unlock(&lock);
  size_t lost = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS && !dead)
    head->lost_records += lost;
  free(buffer);
}

/* ---- images */

/* What is mapped without room behind it ends the program when it is written to. */
static bool make_room(int fd, size_t size) {
  int problem = EINTR;
  while (problem == EINTR) problem = posix_fallocate(fd, 0, (off_t)size);
  return problem == 0;
}

static bool write_file(const char *name, const void *content, size_t size) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const char *at = content;
  while (size > 0) {
    const ssize_t written = write(fd, at, size);
    if (written <= 0) break;
    at += written, size -= (size_t)written;
  }
  close(fd);
  return size == 0;
}

static size_t elf_bytes(const uint8_t *image) {
  const Elf64_Ehdr *elf = (const void *)image;
  if (elf->e_ident[EI_CLASS] != ELFCLASS64) return 0;
  size_t end = elf->e_shoff + (size_t)elf->e_shnum * elf->e_shentsize;
  const size_t segments = elf->e_phoff + (size_t)elf->e_phnum * elf->e_phentsize;
  if (segments > end) end = segments;
  for (int i = 0; i < elf->e_shnum; i++) {
    const Elf64_Shdr *one =
        (const void *)(image + elf->e_shoff + (size_t)i * elf->e_shentsize);
    if (one->sh_type != SHT_NOBITS && one->sh_offset + one->sh_size > end)
      end = one->sh_offset + one->sh_size;
  }
  return end;
}

/* The entries of a fat binary that hold PTX, behind a header of their own; what is machine code
 * would be megabytes that nothing reads. Layout as in gpuwatch/launch/binary.py. */
static size_t ptx_entries(const uint8_t *fat, uint8_t **found) {
  const uint16_t header = *(const uint16_t *)(fat + 6);
  const uint64_t body = *(const uint64_t *)(fat + 8);
  uint8_t *copy = malloc(header + body);
  if (copy == NULL) return 0;
  memcpy(copy, fat, header);
  size_t used = header;
  for (uint64_t at = 0; at + 64 <= body;) {
    const uint8_t *entry = fat + header + at;
    const uint64_t size = *(const uint32_t *)(entry + 4) + *(const uint64_t *)(entry + 8);
    if (size < 64 || at + size > body) break;
    if (*(const uint16_t *)entry == 1) {
      memcpy(copy + used, entry, size);
      used += size;
    }
    at += size;
  }
  *(uint64_t *)(copy + 8) = used - header;
  *found = copy;
  return used;
}

/* Stores what a module was loaded from; gives the image's number. */
static uint32_t keep_image(const void *image, const char *file) {
  const Pair *made = find(&linked, image);
  if (made != NULL) return made->value;
  const uint32_t number = ++image_count;
  const char *kind = "unknown";
  const void *content = image;
  uint8_t *entries = NULL;
  size_t size = 0;
  if (file != NULL) {
    kind = "file", content = file, size = strlen(file);
  } else if (image != NULL) {
    const uint32_t *words = image;
    if (words[0] == 0x466243B1) memcpy(&content, (const char *)image + 8, sizeof content);
    words = content;
    if (words[0] == 0xBA55ED50) {
      kind = "fatbin", size = ptx_entries(content, &entries), content = entries;
    } else if (memcmp(words, ELFMAG, SELFMAG) == 0) {
      kind = "cubin", size = elf_bytes(content);
    } else {
      kind = "ptx", size = strlen(content);
    }
  }
  char name[64];
  snprintf(name, sizeof name, "%u.%s", number, kind);
  if (size == 0 || !write_file(name, content, size)) kind = "unknown";
  tell("image %u %s %s", number, kind, name);
  free(entries);
  return number;
}

/* ---- contexts and devices */

static uint32_t device_of(CUcontext context) {
  for (uint32_t i = 0; i < context_count; i++)
    if (contexts[i].context == context) return contexts[i].device;
  CUdevice device = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return 0;
  bool told = false;
  for (uint32_t i = 0; i < context_count; i++) told |= contexts[i].device == (uint32_t)device;
  if (context_count < 64) {
    contexts[context_count].context = context;
    contexts[context_count++].device = (uint32_t)device;
  }
  if (told) return (uint32_t)device;
  static const CUdevice_attribute asked[] = {
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
      CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
      CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_CLOCK_RATE,
      CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
      CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
  };
  enum { ASKED = sizeof asked / sizeof *asked };
  int got[ASKED] = {0};
  for (int i = 0; i < ASKED; i++) (void)cuDeviceGetAttribute(&got[i], asked[i], device);
  char name[128] = "";
  (void)cuDeviceGetName(name, sizeof name, device);
  tell("device %d %d %d %d %d %d %d %d %d %d %s", device, got[0], got[1], got[2], got[3], got[4],
       got[5], got[6], got[7], got[8], name);
  return (uint32_t)device;
}

static CUcontext context_on(uint32_t device) {
  for (uint32_t i = 0; i < context_count; i++)
    if (contexts[i].device == device) return contexts[i].context;
  return NULL;
}

/* ---- probed kernels */

static bool same_shape(const Shape *one, const Shape *other) {
  return memcmp(one, other, sizeof *one) == 0;
}

static Build *build_for(uint32_t kernel, uint32_t device, const Shape *shape) {
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->kernel == kernel && builds[i]->device == device && !builds[i]->dropped &&
        same_shape(&builds[i]->shape, shape))
      return builds[i];
  Build *build = build_count < MOST_BUILDS ? malloc(sizeof *build) : NULL;
  if (build == NULL) return NULL;
  *build = (Build){.kernel = kernel, .device = device, .shape = *shape, .state = WANTED};
  builds[build_count++] = build;
  const uint32_t *g = shape->grid, *b = shape->block;
  tell("want %u %u %u %u %u %u %u %u %u", kernel, device, g[0], g[1], g[2], b[0], b[1], b[2],
       shape->dynamic_shared);
  return build;
}

static void refuse(Build *build, const char *what, CUresult status) {
  build->state = REFUSED;
  tell("refused %u %u %s: %s", build->id, build->kernel, what, words_of(status));
  pthread_cond_broadcast(&changed);
}

static void release(Instance *instance) {
  if (instance == NULL) return;
  (void)cuCtxPushCurrent(instance->context);
  if (instance->stream != NULL) (void)cuStreamSynchronize(instance->stream);
  for (uint32_t i = 0; i < instance->used; i++) {
    Slot *slot = &instance->slots[i];
    if (slot->memory != 0) (void)cuMemFree(slot->memory);
    if (slot->launched != NULL) (void)cuEventDestroy(slot->launched);
    if (slot->copied != NULL) (void)cuEventDestroy(slot->copied);
    free(slot->pointers), free(slot->parameters), free(slot->block);
  }
  if (instance->slots[0].host != NULL) {
    (void)cuMemHostUnregister(instance->slots[0].host);
    munmap(instance->slots[0].host, instance->slot_bytes * instance->used);
  }
  if (instance->stream != NULL) (void)cuStreamDestroy(instance->stream);
  if (instance->module != NULL) (void)cuModuleUnload(instance->module);
  (void)cuCtxPopCurrent(NULL);
  free(instance);
}

static bool in_use(const Instance *instance) {
  for (uint32_t i = 0; instance != NULL && i < instance->used; i++)
    if (instance->slots[i].state == TAKEN || instance->slots[i].state == LAUNCHED ||
        instance->slots[i].state == COPYING)
      return true;
  return false;
}

/* Whether a launch is in the driver's hands: its end has to be seen. */
static bool launching(void) {
  for (uint32_t i = 0; i < build_count; i++)
    for (uint32_t k = 0; builds[i]->instance != NULL && k < builds[i]->instance->used; k++)
      if (builds[i]->instance->slots[k].state == TAKEN) return true;
  return false;
}

/* Frees the dropped builds that nothing uses any more; lets go of the lock meanwhile. */
static void sweep(void) {
  for (uint32_t i = 0; i < build_count;) {
    Build *build = builds[i];
    if (!build->dropped || build->loading || in_use(build->instance)) {
      i++;
      continue;
    }
    builds[i] = builds[--build_count];
    pthread_mutex_unlock(&lock);
    release(build->instance);
    free(build->entry), free(build->variable), free(build->sizes);
    for (uint32_t k = 0; k < build->constants; k++) free(build->constant_names[k]);
    for (uint32_t k = 0; k < build->fixed; k++) free(build->fixed_file[k]);
    free(build);
    pthread_mutex_lock(&lock);
  }
}

static CUresult own_global(const Kernel *kernel, const char *name, CUdeviceptr *at, size_t *size) {
  if (kernel->owner == NULL) return CUDA_ERROR_NOT_FOUND; /* unloaded */
  return kernel->library ? cuLibraryGetGlobal(at, size, (CUlibrary)kernel->owner, name)
                         : cuModuleGetGlobal(at, size, (CUmodule)kernel->owner, name);
}

static uint8_t *map_slots(const Build *build, size_t size) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/slots-%u", folder, build->id);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return NULL;
  void *memory = MAP_FAILED;
  if (make_room(fd, size))
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory == MAP_FAILED ? NULL : memory;
}

static CUresult fill_fixed(const Build *build, CUdeviceptr memory, const size_t *offsets) {
  for (uint32_t i = 0; i < build->fixed; i++) {
    const uint32_t index = build->fixed_index[i];
    const int fd = open(build->fixed_file[i], O_RDONLY | O_CLOEXEC);
    uint8_t *content = fd < 0 ? NULL : malloc(build->sizes[index] + 1);
    const ssize_t got = content == NULL ? -1 : read(fd, content, build->sizes[index]);
    if (fd >= 0) close(fd);
    CUresult status = CUDA_ERROR_FILE_NOT_FOUND;
    if (got == (ssize_t)build->sizes[index])
      status = got == 0 ? CUDA_SUCCESS
                        : cuMemcpyHtoD(memory + offsets[index], content, (size_t)got);
    free(content);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

static bool is_fixed(const Build *build, uint32_t index) {
  for (uint32_t i = 0; i < build->fixed; i++)
    if (build->fixed_index[i] == index) return true;
  return false;
}

/* Clears the buffers of a slot but those that the kernel only reads. */
static CUresult clear(const Build *build, const Slot *slot, CUstream stream) {
  size_t at = 0;
  for (uint32_t i = 0; i < build->buffers; i++) {
    const size_t size = (build->sizes[i] + 255) & ~(size_t)255;
    if (!is_fixed(build, i) && build->sizes[i] > 0) {
      const CUresult status = cuMemsetD8Async(slot->memory + at, 0, build->sizes[i], stream);
      if (status != CUDA_SUCCESS) return status;
    }
    at += size;
  }
  return CUDA_SUCCESS;
}

static CUresult make_slot(const Build *build, Instance *instance, Slot *slot) {
  CUresult status = cuMemAlloc(&slot->memory, instance->slot_bytes);
  if (status == CUDA_SUCCESS) status = cuEventCreate(&slot->launched, CU_EVENT_DISABLE_TIMING);
  if (status == CUDA_SUCCESS) status = cuEventCreate(&slot->copied, CU_EVENT_DISABLE_TIMING);
  if (status != CUDA_SUCCESS) return status;
  slot->pointers = calloc(build->buffers + 1, sizeof(uint64_t));
  slot->parameters = calloc(build->parameters + 1, sizeof(void *));
  slot->block_bytes = ((size_t)build->block_bytes + 7) / 8 * 8 + build->buffers * 8;
  slot->block = calloc(1, slot->block_bytes + 8);
  size_t *offsets = calloc(build->buffers + 1, sizeof(size_t));
  if (!slot->pointers || !slot->parameters || !slot->block || !offsets) {
    free(offsets);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (uint32_t i = 0; i < build->buffers; i++) {
    offsets[i + 1] = offsets[i] + ((build->sizes[i] + 255) & ~(size_t)255);
    slot->pointers[i] = slot->memory + offsets[i];
  }
  status = fill_fixed(build, slot->memory, offsets);
  free(offsets);
  return status == CUDA_SUCCESS ? clear(build, slot, instance->stream) : status;
}

static CUfunction own_function(CUfunction handle) {
  CUfunction function = NULL;
  if (cuKernelGetFunction(&function, (CUkernel)handle) == CUDA_SUCCESS) return function;
  return handle;
}

static CUresult find_constants(const Build *build, const Kernel *kernel, Instance *instance) {
  for (uint32_t i = 0; i < build->constants; i++) {
    size_t size = 0;
    CUresult status = own_global(kernel, build->constant_names[i], &instance->own_constants[i],
                                 &instance->constant_bytes[i]);
    if (status != CUDA_SUCCESS) return status;
    status = cuModuleGetGlobal(&instance->constants[i], &size, instance->module,
                               build->constant_names[i]);
    if (status == CUDA_ERROR_NOT_FOUND) instance->constant_bytes[i] = 0;
    else if (status != CUDA_SUCCESS) return status;
    else if (size < instance->constant_bytes[i]) instance->constant_bytes[i] = size;
  }
  return CUDA_SUCCESS;
}

static const CUfunction_attribute CARRIED[] = {
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
};

static CUresult carry_attributes(CUfunction from, CUfunction to) {
  for (size_t i = 0; i < sizeof CARRIED / sizeof *CARRIED; i++) {
    int value = 0, present = 0;
    if (cuFuncGetAttribute(&value, CARRIED[i], from) != CUDA_SUCCESS) continue;
    if (cuFuncGetAttribute(&present, CARRIED[i], to) == CUDA_SUCCESS && present == value) continue;
    const CUresult status = cuFuncSetAttribute(to, CARRIED[i], value);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

static CUresult fill_instance(Build *build, const Kernel *kernel, Instance *instance,
                              CUfunction own, const char **what) {
  *what = "its module cannot be loaded";
  CUresult status = cuModuleLoad(&instance->module, build->cubin);
  if (status == CUDA_SUCCESS)
    status = cuModuleGetFunction(&instance->function, instance->module, build->entry);
  size_t size = 0;
  if (status == CUDA_SUCCESS && !build->takes && build->buffers > 0)
    status = cuModuleGetGlobal(&instance->variable, &size, instance->module, build->variable);
  if (status != CUDA_SUCCESS) return status;
  *what = "its variables are not to be found";
  if ((status = find_constants(build, kernel, instance)) != CUDA_SUCCESS) return status;
  *what = "its attributes cannot be set";
  if ((status = carry_attributes(own, instance->function)) != CUDA_SUCCESS) return status;
  *what = "no memory for its maps";
  for (uint32_t i = 0; i < build->buffers; i++)
    instance->slot_bytes += (build->sizes[i] + 255) & ~(size_t)255;
  if (instance->slot_bytes == 0) instance->slot_bytes = 256;
  status = cuStreamCreate(&instance->stream, CU_STREAM_NON_BLOCKING);
  for (uint32_t i = 0; i < build->slots && status == CUDA_SUCCESS; i++) {
    instance->used = i + 1;
    status = make_slot(build, instance, &instance->slots[i]);
  }
  if (status != CUDA_SUCCESS) return status;
  uint8_t *host = map_slots(build, instance->slot_bytes * instance->used);
  if (host == NULL) return CUDA_ERROR_OPERATING_SYSTEM;
  for (uint32_t i = 0; i < instance->used; i++)
    instance->slots[i].host = host + i * instance->slot_bytes;
  (void)cuMemHostRegister(host, instance->slot_bytes * instance->used, 0);
  return cuStreamSynchronize(instance->stream);
}

/* Loads a build into the context of a launch that wants it, which may not be one that is captured
 * into a graph. Lets go of the lock meanwhile. */
static void load(Build *build, CUcontext context, CUfunction handle) {
  const Kernel kernel = kernels[build->kernel];
  build->loading = true;
  pthread_mutex_unlock(&lock);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)cuThreadExchangeStreamCaptureMode(&mode);
  Instance *instance = calloc(1, sizeof *instance);
  const char *what = "no memory";
  CUresult status = instance == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
  int plain = 0, probed = 0, registers = 0, shared = 0;
  if (status == CUDA_SUCCESS) {
    const int threads =
        (int)(build->shape.block[0] * build->shape.block[1] * build->shape.block[2]);
    const CUfunction own = own_function(handle);
    instance->context = context;
    (void)cuCtxPushCurrent(context);
    status = fill_instance(build, &kernel, instance, own, &what);
    if (status == CUDA_SUCCESS) {
      (void)cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, own);
      (void)cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, own);
      (void)cuOccupancyMaxActiveBlocksPerMultiprocessor(&plain, own, threads,
                                                        build->shape.dynamic_shared);
      (void)cuOccupancyMaxActiveBlocksPerMultiprocessor(&probed, instance->function, threads,
                                                        build->shape.dynamic_shared);
    }
    (void)cuCtxPopCurrent(NULL);
    if (status != CUDA_SUCCESS) release(instance), instance = NULL;
  }
  (void)cuThreadExchangeStreamCaptureMode(&mode);
  pthread_mutex_lock(&lock);
  build->instance = instance;
  build->loading = false;
  if (status != CUDA_SUCCESS) refuse(build, what, status);
  else
    tell("loaded %u %d %d %d %d", build->id, plain, probed, registers, shared);
  pthread_cond_broadcast(&changed);
}

/* ---- a launch of the program */

typedef struct {
  CUfunction *function;
  void ***parameters, ***extra;
  Shape shape;
  CUstream stream;
  CUpti_CallbackId id;
  const void *call;
  bool cooperative, clustered;
  uint32_t cluster[3];
} Launch;

static CUstream real_stream(CUstream stream, bool per_thread) {
  if (stream != NULL) return stream;
  return per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}

static Launch read_launch(CUpti_CallbackId id, const void *call) {
  Launch launch = {.id = id, .call = call};
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      cuLaunchKernelEx_params *q = (void *)(uintptr_t)call;
      const CUlaunchConfig *c = q->config;
      launch.function = &q->f, launch.parameters = &q->kernelParams, launch.extra = &q->extra;
      launch.shape = (Shape){{c->gridDimX, c->gridDimY, c->gridDimZ},
                             {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes};
      launch.stream =
          real_stream(c->hStream, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz);
      for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *one = &c->attrs[i];
        if (one->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
          launch.cooperative = one->value.cooperative != 0;
        if (one->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
          launch.clustered = true;
          launch.cluster[0] = one->value.clusterDim.x;
          launch.cluster[1] = one->value.clusterDim.y;
          launch.cluster[2] = one->value.clusterDim.z;
        }
      }
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz: {
      cuLaunchKernel_params *q = (void *)(uintptr_t)call;
      launch.function = &q->f, launch.parameters = &q->kernelParams, launch.extra = &q->extra;
      launch.shape = (Shape){{q->gridDimX, q->gridDimY, q->gridDimZ},
                             {q->blockDimX, q->blockDimY, q->blockDimZ}, q->sharedMemBytes};
      launch.stream = real_stream(q->hStream, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: {
      cuLaunchCooperativeKernel_params *q = (void *)(uintptr_t)call;
      launch.function = &q->f, launch.parameters = &q->kernelParams;
      launch.shape = (Shape){{q->gridDimX, q->gridDimY, q->gridDimZ},
                             {q->blockDimX, q->blockDimY, q->blockDimZ}, q->sharedMemBytes};
      launch.cooperative = true;
      launch.stream =
          real_stream(q->hStream, id == CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz);
      break;
    }
    default: break;
  }
  return launch;
}

/* Makes the launch as the program asked for it. */
static CUresult launch_own(const Launch *launch, const Slot *slot) {
  const Shape *s = &launch->shape;
  if (launch->id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx ||
      launch->id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz) {
    CUlaunchConfig config = *((const cuLaunchKernelEx_params *)launch->call)->config;
    config.hStream = launch->stream;
    return cuLaunchKernelEx(&config, slot->own, slot->own_parameters, slot->own_extra);
  }
  if (launch->cooperative)
    return cuLaunchCooperativeKernel(slot->own, s->grid[0], s->grid[1], s->grid[2], s->block[0],
                                     s->block[1], s->block[2], s->dynamic_shared, launch->stream,
                                     slot->own_parameters);
  return cuLaunchKernel(slot->own, s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1],
                        s->block[2], s->dynamic_shared, launch->stream, slot->own_parameters,
                        slot->own_extra);
}

/* The kernel behind a handle; what was got in a way that is not seen is asked for by its name. */
static uint32_t kernel_behind(CUfunction handle) {
  const Pair *pair = find(&handles, handle);
  if (pair != NULL) return pair->value;
  const char *name = NULL;
  CUmodule module = NULL;
  CUlibrary library = NULL;
  const void *from = NULL;
  if (cuFuncGetName(&name, handle) == CUDA_SUCCESS && name != NULL) {
    if (cuFuncGetModule(&module, handle) == CUDA_SUCCESS) from = module;
  } else if (cuKernelGetName(&name, (CUkernel)handle) == CUDA_SUCCESS && name != NULL) {
    if (cuKernelGetLibrary(&library, (CUkernel)handle) == CUDA_SUCCESS) from = library;
  }
  if (name == NULL) return 0;
  const Pair *image = find(&images, from);
  const uint32_t number = kernel_of(name, image != NULL ? image->value : 0, true);
  if (number == 0) return 0;
  kernels[number].owner = (void *)(uintptr_t)from;
  kernels[number].library = library != NULL;
  put(&handles, handle, number, from);
  return number;
}

static void wait_changed(uint64_t until) {
  const uint64_t now = now_ns();
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t left = until > now ? until - now : 0;
  const uint64_t step = left < 100000000u ? left : 100000000u;
  t.tv_nsec += (long)step;
  if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
  pthread_cond_timedwait(&changed, &lock, &t);
}

static bool is_watched(uint32_t number) {
  const uint64_t until = now_ns() + WAIT_MS * 1000000ull;
  while (hold && kernels[number].wish == UNDECIDED && !dead && now_ns() < until)
    wait_changed(until);
  return kernels[number].wish == WATCHED && !dead;
}

static Slot *free_slot(Instance *instance) {
  for (uint32_t i = 0; i < instance->used; i++)
    if (instance->slots[i].state == FREE) return &instance->slots[i];
  return NULL;
}

/* Takes a slot for a launch of a watched kernel; NULL while its build is made, unless the program
 * is held, and while no slot is free, unless it waits for one. */
static Slot *take_slot(uint32_t kernel, uint32_t device, const Launch *launch, CUcontext context,
                       Build **chosen) {
  const uint64_t until = now_ns() + WAIT_MS * 1000000ull;
  for (;;) { /* what was found before a wait may be gone after it */
    if (dead || kernels[kernel].wish != WATCHED) return NULL;
    Build *build = build_for(kernel, device, &launch->shape);
    if (build == NULL || build->state == REFUSED) return NULL;
    bool waits = hold;
    if (build->state == READY && build->instance == NULL && !build->loading) {
      load(build, context, *launch->function);
      continue;
    }
    if (build->state == READY && build->instance != NULL) {
      if (build->instance->context != context) return NULL;
      Slot *slot = free_slot(build->instance);
      if (slot != NULL) {
        slot->state = TAKEN;
        *chosen = build;
        return slot;
      }
      waits = wait_for_slots;
    }
    if (!waits || now_ns() >= until) return NULL;
    wait_changed(until);
  }
}

/* Puts the addresses of the maps behind the program's own parameters. */
static bool give_parameters(const Build *build, Slot *slot, const Launch *launch) {
  slot->own = *launch->function;
  slot->own_parameters = *launch->parameters;
  slot->own_extra = launch->extra != NULL ? *launch->extra : NULL;
  if (!build->takes) return true;
  if (slot->own_parameters != NULL || build->parameters == 0) {
    for (uint32_t i = 0; i < build->parameters; i++)
      slot->parameters[i] = slot->own_parameters[i];
    slot->parameters[build->parameters] = slot->pointers;
    *launch->parameters = slot->parameters;
    if (launch->extra != NULL) *launch->extra = NULL;
    return true;
  }
  const void *given = NULL;
  size_t size = 0;
  for (void **one = slot->own_extra; one != NULL && *one != CU_LAUNCH_PARAM_END; one += 2) {
    if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) given = one[1];
    if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(const size_t *)one[1];
  }
  const size_t own = ((size_t)build->block_bytes + 7) / 8 * 8;
  if (given == NULL || size > own) return false;
  memset(slot->block, 0, slot->block_bytes);
  memcpy(slot->block, given, size);
  memcpy(slot->block + own, slot->pointers, build->buffers * sizeof(uint64_t));
  void *extra[5] = {CU_LAUNCH_PARAM_BUFFER_POINTER, slot->block, CU_LAUNCH_PARAM_BUFFER_SIZE,
                    &slot->block_bytes, CU_LAUNCH_PARAM_END};
  memcpy(slot->extra, extra, sizeof extra);
  *launch->extra = slot->extra;
  return true;
}

static bool fill_variables(const Build *build, const Slot *slot, CUstream stream) {
  const Instance *instance = build->instance;
  if (!build->takes && build->buffers > 0 &&
      cuMemcpyHtoDAsync(instance->variable, slot->pointers, build->buffers * 8, stream))
    return false;
  for (uint32_t i = 0; i < build->constants; i++)
    if (instance->constant_bytes[i] > 0 &&
        cuMemcpyDtoDAsync(instance->constants[i], instance->own_constants[i],
                          instance->constant_bytes[i], stream))
      return false;
  return true;
}

static bool is_captured(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* ---- one launch stored with its memory, as gpuwatch/launch/exchange.py reads it */

typedef struct {
  CUdeviceptr at;
  size_t size;
} Range;

/* Adds the allocation that `value` lies in, if it lies in one that is new. */
static void add_range(Range *ranges, uint32_t *count, uint64_t value) {
  for (uint32_t i = 0; i < *count; i++)
    if (value >= ranges[i].at && value <= ranges[i].at + ranges[i].size) return;
  CUdeviceptr at = 0;
  size_t size = 0;
  if (*count < MOST_STORED && value >= 4096 &&
      cuMemGetAddressRange(&at, &size, value) == CUDA_SUCCESS && size > 0)
    ranges[(*count)++] = (Range){at, size};
}

/* Words of a buffer that may be addresses: those that share their upper bits with one that is. */
static void add_ranges_in(Range *ranges, uint32_t *count, const uint64_t *words, size_t size) {
  for (size_t i = 0; i < size; i++) {
    bool near = false;
    for (uint32_t k = 0; k < *count && !near; k++) near = words[i] >> 36 == ranges[k].at >> 36;
    if (near && words[i] >> 36 != 0) add_range(ranges, count, words[i]);
  }
}

static bool append(FILE *file, CUdeviceptr at, size_t size, Range *ranges, uint32_t *count) {
  enum { PIECE = 16 << 20 };
  uint64_t *piece = malloc(PIECE);
  bool good = piece != NULL && file != NULL;
  for (size_t done = 0; good && done < size; done += PIECE) {
    const size_t part = size - done < PIECE ? size - done : PIECE;
    good = cuMemcpyDtoH(piece, at + done, part) == CUDA_SUCCESS &&
           fwrite(piece, 1, part, file) == part;
    if (good) add_ranges_in(ranges, count, piece, part / 8);
  }
  free(piece);
  return good;
}

static FILE *stored(const char *name) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return fopen(path, "wb");
}

/* The block of parameters, from whichever form the launch gives it in. */
static size_t parameter_block(const Launch *launch, uint8_t *block, size_t room) {
  CUfunction function = *launch->function;
  size_t end = 0;
  if (launch->parameters != NULL && *launch->parameters != NULL) {
    size_t offset = 0, size = 0;
    for (size_t i = 0;; i++) {
      CUresult status = cuFuncGetParamInfo(function, i, &offset, &size);
      if (status != CUDA_SUCCESS) status = cuKernelGetParamInfo((CUkernel)function, i, &offset, &size);
      if (status != CUDA_SUCCESS || offset + size > room) return end;
      memcpy(block + offset, (*launch->parameters)[i], size);
      end = offset + size;
    }
  }
  const void *given = NULL;
  for (void **one = launch->extra != NULL ? *launch->extra : NULL;
       one != NULL && *one != CU_LAUNCH_PARAM_END; one += 2) {
    if (*one == CU_LAUNCH_PARAM_BUFFER_SIZE) end = *(const size_t *)one[1];
    if (*one == CU_LAUNCH_PARAM_BUFFER_POINTER) given = one[1];
  }
  if (given == NULL || end > room) return 0;
  memcpy(block, given, end);
  return end;
}

/* Writes the module's variables behind one another, and a line for each. */
static bool append_variables(const Kernel *kernel, FILE *lines, Range *ranges, uint32_t *count) {
  FILE *values = stored("0.variables");
  bool good = values != NULL;
  char *rest = NULL, *names = strdup(kernel->variables == NULL ? "" : kernel->variables);
  for (char *name = names == NULL ? NULL : strtok_r(names, " ", &rest); good && name != NULL;
       name = strtok_r(NULL, " ", &rest)) {
    CUdeviceptr at = 0;
    size_t size = 0;
    if (own_global(kernel, name, &at, &size) != CUDA_SUCCESS) continue;
    good = append(values, at, size, ranges, count);
    fprintf(lines, "variable %llu %zu 1 %s\n", at, size, name);
  }
  free(names);
  return values != NULL && fclose(values) == 0 && good;
}

/* What the parameters lead to, and what that leads to; gives how many buffers, or a problem. */
static const char *append_all(const Kernel *kernel, const Launch *launch, FILE *lines,
                              uint32_t *written) {
  static uint8_t block[8192];
  const size_t size = parameter_block(launch, block, sizeof block);
  Range *ranges = calloc(MOST_STORED, sizeof *ranges);
  FILE *buffers = stored("0.buffers");
  const char *problem = ranges != NULL && buffers != NULL ? NULL : "there is no room for it";
  uint32_t count = 0;
  for (size_t at = 0; problem == NULL && at + 8 <= size; at++) {
    uint64_t word = 0;
    memcpy(&word, block + at, 8);
    add_range(ranges, &count, word);
  }
  if (problem == NULL && !append_variables(kernel, lines, ranges, &count))
    problem = "its variables cannot be read";
  while (problem == NULL && *written < count) {
    const Range one = ranges[(*written)++];
    fprintf(lines, "buffer %llu %zu\n", one.at, one.size);
    if (!append(buffers, one.at, one.size, ranges, &count)) problem = "its memory cannot be read";
  }
  if (buffers != NULL && fclose(buffers) != 0) problem = "there is no room for it";
  free(ranges);
  if (problem == NULL && !write_file("0.parameters", block, size))
    problem = "there is no room for it";
  return problem;
}

/* One launch of a run is stored: the first that was asked for. */
static void store_launch(uint32_t number, const Launch *launch) {
  const Kernel *kernel = &kernels[number];
  const Shape *s = &launch->shape;
  const uint32_t one[3] = {1, 1, 1}, *c = launch->clustered ? launch->cluster : one;
  uint32_t written = 0;
  const char *problem = NULL;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)cuThreadExchangeStreamCaptureMode(&mode);
  FILE *lines = stored("launches");
  if (lines == NULL) problem = "there is no room for it";
  else if (is_captured(launch->stream)) problem = "it is part of a CUDA graph";
  else if (cuStreamSynchronize(launch->stream) != CUDA_SUCCESS) problem = "what ran before it failed";
  else {
    fprintf(lines, "launch 0 %s %u %u %u %u %u %u %u %d %u %u %u cudaSuccess\n", kernel->name,
            s->grid[0], s->grid[1], s->grid[2], s->block[0], s->block[1], s->block[2],
            s->dynamic_shared, launch->cooperative, c[0], c[1], c[2]);
    problem = append_all(kernel, launch, lines, &written);
    fprintf(lines, "kept\n");
  }
  if (lines != NULL && fclose(lines) != 0) problem = "there is no room for it";
  (void)cuThreadExchangeStreamCaptureMode(&mode);
  for (uint32_t i = 1; i < kernel_count; i++) kernels[i].stored = -1;
  tell("stored %u %u %s", number, written, problem == NULL ? "" : problem);
}

/* ---- replacing a launch */

/* Which slot this launch goes with; NULL leaves it as it is. */
static Slot *choose(uint32_t number, uint64_t index, const Launch *launch, CUcontext context,
                    uint32_t device) {
  const Kernel *kernel = &kernels[number];
  if (index < kernel->first || index > kernel->last) return NULL;
  if (plain_every > 0 && index % (plain_every + 1) == plain_every) return NULL;
  if (interval_ns > 0 && now_ns() - last_probed_ns < interval_ns) return NULL;
  Build *build = NULL;
  Slot *slot = take_slot(number, device, launch, context, &build);
  if (slot == NULL) return NULL;
  slot->number = index;
  if (!give_parameters(build, slot, launch) || !fill_variables(build, slot, launch->stream)) {
    *launch->parameters = slot->own_parameters;
    if (launch->extra != NULL) *launch->extra = slot->own_extra;
    slot->state = FREE;
    refuse(build, "its parameters cannot be given", CUDA_ERROR_INVALID_VALUE);
    return NULL;
  }
  last_probed_ns = now_ns();
  *launch->function = build->instance->function;
  return slot;
}

static void enter_launch(const CUpti_CallbackData *data, CUpti_CallbackId id) {
  const Launch launch = read_launch(id, data->functionParams);
  if (launch.function == NULL || *launch.function == NULL) return;
  pthread_mutex_lock(&lock);
  const uint32_t number = kernel_behind(*launch.function);
  const uint32_t device = device_of(data->context);
  Noted *noted = &ring[data->correlationId % RING];
  *noted = (Noted){data->correlationId, number, false, 0};
  const bool watched = number != 0 && is_watched(number);
  const bool captured = (watched || !timed) && is_captured(launch.stream);
  Row *row = number != 0 && (watched || !timed) ? row_of(number, device, &launch.shape) : NULL;
  if (row != NULL && !timed && !captured) row->launches++, head->launches++;
  if (row != NULL && launch.clustered) row->clustered = 1;
  const uint64_t index = number != 0 ? kernels[number].seen++ : 0;
  if (number != 0 && kernels[number].stored == (int64_t)index) store_launch(number, &launch);
  if (row != NULL && watched) row->seen++;
  if (watched && !captured) {
    Slot *slot = choose(number, index, &launch, data->context, device);
    if (slot == NULL && row != NULL) row->skipped++;
    if (slot != NULL) {
      slot->row = row == NULL ? UINT32_MAX : (uint32_t)(row - rows);
      slot->correlation = data->correlationId;
      noted->probed = true;
      taken = slot, taken_by = data->correlationId;
    }
  }
  pthread_mutex_unlock(&lock);
}

static Build *build_of(const Slot *slot) {
  for (uint32_t i = 0; i < build_count; i++) {
    const Instance *instance = builds[i]->instance;
    if (instance != NULL && slot >= instance->slots && slot < instance->slots + SLOTS)
      return builds[i];
  }
  return NULL;
}

static void leave_launch(const CUpti_CallbackData *data, CUpti_CallbackId id) {
  Slot *slot = taken_by == data->correlationId ? taken : NULL;
  taken = NULL;
  if (slot == NULL) return;
  CUresult *status = data->functionReturnValue;
  const Launch launch = read_launch(id, data->functionParams);
  if (*status == CUDA_SUCCESS) {
    const CUresult recorded = cuEventRecord(slot->launched, launch.stream);
    pthread_mutex_lock(&lock);
    slot->state = recorded == CUDA_SUCCESS ? LAUNCHED : FREE;
    if (!timed && slot->row != UINT32_MAX) rows[slot->row].probed++;
    wake();
    pthread_mutex_unlock(&lock);
    return;
  }
  const CUresult refused = *status;
  *status = launch_own(&launch, slot);
  pthread_mutex_lock(&lock);
  ring[data->correlationId % RING].probed = false;
  Build *build = build_of(slot);
  slot->state = FREE;
  if (slot->row != UINT32_MAX) rows[slot->row].refused++;
  if (build != NULL && *status == CUDA_SUCCESS) refuse(build, "it cannot be launched", refused);
  pthread_mutex_unlock(&lock);
}

/* ---- what else the program does */

static void learn_function(const void *handle, const void *from, const char *name, bool library) {
  const Pair *image = find(&images, from);
  const uint32_t number = kernel_of(name, image != NULL ? image->value : 0, true);
  if (number == 0 || handle == NULL) return;
  kernels[number].owner = (void *)(uintptr_t)from;
  kernels[number].library = library;
  put(&handles, handle, number, from);
}

static void after_call(CUpti_CallbackId id, const void *call) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad: {
      const cuModuleLoad_params *q = call;
      put(&images, *q->module, keep_image(NULL, q->fname), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx:
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary: {
      const cuModuleLoadData_params *q = call; /* all three begin like this */
      put(&images, *q->module, keep_image(q->image, NULL), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData: {
      const cuLibraryLoadData_params *q = call;
      put(&images, *q->library, keep_image(q->code, NULL), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLinkAddData_v2: {
      const cuLinkAddData_v2_params *q = call;
      if (q->type == CU_JIT_INPUT_PTX) put(&linked, q->state, keep_image(q->data, NULL), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLinkComplete: {
      const cuLinkComplete_params *q = call;
      const Pair *text = find(&linked, q->state);
      if (text != NULL) put(&linked, *q->cubinOut, text->value, q->state);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile: {
      const cuLibraryLoadFromFile_params *q = call;
      put(&images, *q->library, keep_image(NULL, q->fileName), NULL);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule: {
      const cuLibraryGetModule_params *q = call;
      const Pair *image = find(&images, q->library);
      if (image != NULL) put(&images, *q->pMod, image->value, q->library);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction: {
      const cuModuleGetFunction_params *q = call;
      learn_function(*q->hfunc, q->hmod, q->name, false);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel: {
      const cuLibraryGetKernel_params *q = call;
      learn_function(*q->pKernel, q->library, q->name, true);
      break;
    }
    case CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction: {
      const cuKernelGetFunction_params *q = call;
      const Pair *kernel = find(&handles, q->kernel);
      if (kernel != NULL) put(&handles, *q->pFunc, kernel->value, kernel->owner);
      break;
    }
    default: break;
  }
}

static void before_call(CUpti_CallbackId id, const void *call) {
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleUnload)
    forget(((const cuModuleUnload_params *)call)->hmod);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload)
    forget(((const cuLibraryUnload_params *)call)->library);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLinkDestroy) {
    const void *state = ((const cuLinkDestroy_params *)call)->state;
    for (size_t i = 0; i < linked.size; i++)
      if (linked.pairs[i].key == state || linked.pairs[i].owner == state) linked.pairs[i].value = 0;
  }
}

static bool follow_all(void);

static bool flies_in(CUcontext context) {
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->instance != NULL && builds[i]->instance->context == context &&
        in_use(builds[i]->instance))
      return true;
  return false;
}

/* What lies in a context goes with it, once the records under way are handed over. */
static void drop_context(CUcontext context) {
  const uint64_t until = now_ns() + ENDING_MS * 1000000ull;
  while (flies_in(context) && now_ns() < until) {
    (void)follow_all();
    pthread_mutex_unlock(&lock);
    if (timed && !dead) (void)cuptiActivityFlushAll(0);
    usleep(500);
    pthread_mutex_lock(&lock);
  }
  for (uint32_t i = 0; i < build_count; i++) {
    Instance *instance = builds[i]->instance;
    if (instance == NULL || instance->context != context) continue;
    builds[i]->instance = NULL;
    builds[i]->dropped = true; /* another may not write into the file of this one */
    release(instance);
  }
  for (uint32_t i = 0; i < context_count; i++)
    if (contexts[i].context == context) contexts[i] = contexts[--context_count];
}

static bool is_launch(CUpti_CallbackId id) {
  switch (id) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz: return true;
    default: return false;
  }
}

static void CUPTIAPI on_call(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                             const void *data) {
  (void)unused;
  const bool leaving = domain == CUPTI_CB_DOMAIN_DRIVER_API && is_launch(id) && taken != NULL;
  if (inside || (dead && !leaving && domain != CUPTI_CB_DOMAIN_RESOURCE)) return;
  inside = 1;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    const CUpti_ResourceData *resource = data;
    pthread_mutex_lock(&lock);
    if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) drop_context(resource->context);
    pthread_mutex_unlock(&lock);
  } else {
    const CUpti_CallbackData *call = data;
    const bool enter = call->callbackSite == CUPTI_API_ENTER;
    if (is_launch(id)) {
      if (enter) enter_launch(call, id);
      else leave_launch(call, id);
    } else {
      pthread_mutex_lock(&lock);
      if (enter) before_call(id, call->functionParams);
      else if (*(const CUresult *)call->functionReturnValue == CUDA_SUCCESS) {
        if (call->context != NULL) (void)device_of(call->context);
        after_call(id, call->functionParams);
      }
      pthread_mutex_unlock(&lock);
    }
  }
  inside = 0;
}

/* ---- gpuwatch's commands */

static const CUpti_CallbackId LAUNCHES[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
};

static void see_launches(bool on) {
  if (on == callbacks_on || subscriber == NULL) return;
  callbacks_on = on;
  for (size_t i = 0; i < sizeof LAUNCHES / sizeof *LAUNCHES; i++)
    (void)cuptiEnableCallback(on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, LAUNCHES[i]);
}

static uint64_t number(char **rest) {
  const char *word = strtok_r(NULL, " ", rest);
  return word == NULL ? 0 : strtoull(word, NULL, 10);
}

static Shape shape_from(char **rest) {
  Shape shape = {{0}, {0}, 0};
  for (int i = 0; i < 3; i++) shape.grid[i] = (uint32_t)number(rest);
  for (int i = 0; i < 3; i++) shape.block[i] = (uint32_t)number(rest);
  shape.dynamic_shared = (uint32_t)number(rest);
  return shape;
}

static char *word(char **rest) {
  const char *found = strtok_r(NULL, " ", rest);
  return strdup(found == NULL ? "" : found);
}

/* The build that was asked for and is still wanted. */
static Build *named_build(char **rest) {
  const uint32_t kernel = (uint32_t)number(rest), device = (uint32_t)number(rest);
  const Shape shape = shape_from(rest);
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->kernel == kernel && builds[i]->device == device && !builds[i]->dropped &&
        builds[i]->state == WANTED && same_shape(&builds[i]->shape, &shape))
      return builds[i];
  return NULL;
}

/* build ID KERNEL DEVICE SHAPE cubin entry takes variable parameters bytes slots
 * buffers SIZE... constants NAME... fixed (INDEX FILE)... */
static void take_build(char **rest) {
  const uint32_t id = (uint32_t)number(rest);
  Build *build = named_build(rest);
  if (build == NULL) return;
  build->id = id;
  char *cubin = word(rest);
  snprintf(build->cubin, sizeof build->cubin, "%s", cubin);
  free(cubin);
  build->entry = word(rest);
  build->takes = number(rest) != 0;
  build->variable = word(rest);
  build->parameters = (uint32_t)number(rest);
  build->block_bytes = (uint32_t)number(rest);
  build->slots = (uint32_t)number(rest);
  if (build->slots < 1 || build->slots > SLOTS) build->slots = SLOTS;
  build->buffers = (uint32_t)number(rest);
  build->sizes = calloc(build->buffers + 1, sizeof *build->sizes);
  if (build->sizes == NULL) return;
  for (uint32_t i = 0; i < build->buffers; i++) build->sizes[i] = number(rest);
  build->constants = (uint32_t)number(rest);
  if (build->constants > 16) build->constants = 16;
  for (uint32_t i = 0; i < build->constants; i++) build->constant_names[i] = word(rest);
  build->fixed = (uint32_t)number(rest);
  if (build->fixed > 16) build->fixed = 16;
  for (uint32_t i = 0; i < build->fixed; i++) {
    build->fixed_index[i] = (uint32_t)number(rest);
    build->fixed_file[i] = word(rest);
  }
  build->state = READY;
}

static void drop_builds(uint32_t kernel) {
  for (uint32_t i = 0; i < build_count; i++)
    if (builds[i]->kernel == kernel) builds[i]->dropped = true;
}

static void take_watch(char **rest) {
  const uint32_t kernel = (uint32_t)number(rest);
  const uint64_t first = number(rest), last = number(rest);
  if (kernel == 0 || kernel >= kernel_count) return;
  drop_builds(kernel);
  watched_count += kernels[kernel].wish != WATCHED;
  kernels[kernel].wish = WATCHED;
  kernels[kernel].first = first, kernels[kernel].last = last;
}

static void take_ignore(char **rest) {
  const uint32_t kernel = (uint32_t)number(rest);
  if (kernel == 0 || kernel >= kernel_count) return;
  watched_count -= kernels[kernel].wish == WATCHED;
  kernels[kernel].wish = IGNORED;
  drop_builds(kernel);
}

static void take_locate(char **rest) {
  const uint32_t kernel = (uint32_t)number(rest), device = (uint32_t)number(rest);
  if (kernel == 0 || kernel >= kernel_count) return;
  const CUcontext context = context_on(device);
  if (context != NULL) (void)cuCtxPushCurrent(context);
  for (const char *name = strtok_r(NULL, " ", rest); name; name = strtok_r(NULL, " ", rest)) {
    CUdeviceptr at = 0;
    size_t size = 0;
    const CUresult status = own_global(&kernels[kernel], name, &at, &size);
    tell("at %u %u %s %llu %zu", kernel, device, name, status == CUDA_SUCCESS ? at : 0, size);
  }
  tell("located %u %u", kernel, device);
  if (context != NULL) (void)cuCtxPopCurrent(NULL);
}

static void take_free(char **rest) {
  const uint32_t id = (uint32_t)number(rest), index = (uint32_t)number(rest);
  for (uint32_t i = 0; i < build_count; i++) {
    Instance *instance = builds[i]->instance;
    if (builds[i]->id != id || instance == NULL || index >= instance->used) continue;
    Slot *slot = &instance->slots[index];
    if (slot->state != READ) return;
    (void)cuCtxPushCurrent(instance->context);
    const bool good = clear(builds[i], slot, instance->stream) == CUDA_SUCCESS &&
                      cuEventRecord(slot->copied, instance->stream) == CUDA_SUCCESS;
    (void)cuCtxPopCurrent(NULL);
    if (good) slot->state = CLEARING, wake();
  }
}

static void obey(char *line) {
  char *rest = NULL;
  const char *verb = strtok_r(line, " ", &rest);
  if (verb == NULL) return;
  if (strcmp(verb, "watch") == 0) take_watch(&rest);
  else if (strcmp(verb, "ignore") == 0) take_ignore(&rest);
  else if (strcmp(verb, "build") == 0) take_build(&rest);
  else if (strcmp(verb, "locate") == 0) take_locate(&rest);
  else if (strcmp(verb, "free") == 0) take_free(&rest);
  else if (strcmp(verb, "none") == 0) {
    Build *build = named_build(&rest);
    if (build != NULL) build->state = REFUSED;
  } else if (strcmp(verb, "store") == 0) {
    const uint32_t kernel = (uint32_t)number(&rest);
    const int64_t launch = (int64_t)number(&rest);
    if (kernel == 0 || kernel >= kernel_count) return;
    free(kernels[kernel].variables);
    kernels[kernel].stored = launch;
    kernels[kernel].variables = strdup(rest == NULL ? "" : rest);
  }
  pthread_cond_broadcast(&changed);
}

/* ---- the worker: sends, obeys, and follows the launches under way. It holds the lock. */

/* Tells of records that have been copied, with the time that the launch took: that comes by another
 * way, and later. */
static void hand_over(const Build *build, Slot *slot, uint32_t index) {
  const Noted *noted = &ring[slot->correlation % RING];
  const uint64_t ns = noted->correlation == slot->correlation ? noted->ns : 0;
  if (slot->copied_ns == 0) slot->copied_ns = now_ns();
  if (timed && ns == 0 && now_ns() - slot->copied_ns < TIME_MS * 1000000ull) return;
  slot->state = READ;
  slot->copied_ns = 0;
  tell("records %u %u %llu %u %llu", build->id, index, (unsigned long long)slot->number, slot->row,
       (unsigned long long)ns);
}

static void follow(Build *build, Slot *slot, uint32_t index) {
  Instance *instance = build->instance;
  (void)cuCtxPushCurrent(instance->context);
  if (slot->state == LAUNCHED) {
    const bool good =
        cuStreamWaitEvent(instance->stream, slot->launched, 0) == CUDA_SUCCESS &&
        cuMemcpyDtoHAsync(slot->host, slot->memory, instance->slot_bytes, instance->stream) ==
            CUDA_SUCCESS &&
        cuEventRecord(slot->copied, instance->stream) == CUDA_SUCCESS;
    slot->state = good ? COPYING : READ;
    if (!good) tell("lost %u %u", build->id, index);
  } else {
    const CUresult done = slot->copied_ns != 0 ? CUDA_SUCCESS : cuEventQuery(slot->copied);
    if (done == CUDA_SUCCESS && slot->state == COPYING) {
      hand_over(build, slot, index);
    } else if (done == CUDA_SUCCESS) {
      slot->state = FREE;
      pthread_cond_broadcast(&changed);
    } else if (done != CUDA_ERROR_NOT_READY) {
      if (slot->state == COPYING) tell("lost %u %u", build->id, index);
      slot->state = READ;
    }
  }
  (void)cuCtxPopCurrent(NULL);
}

static bool follow_all(void) {
  bool busy = false;
  for (uint32_t i = 0; i < build_count; i++) {
    Instance *instance = builds[i]->instance;
    for (uint32_t k = 0; instance != NULL && k < instance->used; k++) {
      Slot *slot = &instance->slots[k];
      if (slot->state == LAUNCHED || slot->state == COPYING || slot->state == CLEARING)
        follow(builds[i], slot, k), busy = true;
    }
  }
  return busy;
}

static bool send_all(void) {
  while (outgoing_used > 0) {
    sending = true;
    char *text = outgoing;
    const size_t size = outgoing_used;
    outgoing = NULL, outgoing_used = outgoing_room = 0;
    pthread_mutex_unlock(&lock);
    size_t done = 0;
    while (done < size) {
      const ssize_t sent = send(link_fd, text + done, size - done, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) break;
      done += (size_t)sent;
    }
    free(text);
    pthread_mutex_lock(&lock);
    sending = false;
    if (done < size) return false;
  }
  return true;
}

/* Takes what has arrived; false when gpuwatch is gone. */
static bool take_commands(void) {
  static char *incoming;
  static size_t used, room;
  for (;;) {
    if (room - used < 65536) {
      char *larger = realloc(incoming, room + (1 << 17));
      if (larger == NULL) return false;
      incoming = larger, room += 1 << 17;
    }
    const ssize_t got = recv(link_fd, incoming + used, room - used - 1, MSG_DONTWAIT);
    if (got == 0) return false;
    if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    used += (size_t)got;
    char *start = incoming, *end;
    while ((end = memchr(start, '\n', used - (size_t)(start - incoming))) != NULL) {
      *end = '\0';
      obey(start);
      start = end + 1;
    }
    used -= (size_t)(start - incoming);
    memmove(incoming, start, used);
  }
}

/* gpuwatch is gone: the memory of the maps is the program's again. */
static void give_back(void) {
  for (uint32_t i = 0; i < build_count; i++) builds[i]->dropped = true;
  while (build_count > 0 && !ended) {
    (void)follow_all();
    sweep();
    pthread_mutex_unlock(&lock);
    usleep(FLIGHT_POLL_MS * 1000);
    pthread_mutex_lock(&lock);
  }
}

/* Seeing a launch costs the program most of a microsecond. Where there are very many, they are seen
 * for a part of the time, and stand for the others. Without the lock: CUPTI hands over records. */
static void open_or_close(void) {
  static uint64_t since, before, opened_ns, sampled_ns;
  const uint64_t now = now_ns(), passed = now - since;
  const bool watching = watched_count > 0;
  const uint64_t open_ms = watching ? WATCHED_OPEN_MS : OPEN_MS;
  const uint64_t closed_ms = watching ? WATCHED_CLOSED_MS : CLOSED_MS;
  const uint64_t wanted = closed ? closed_ms : sampling ? open_ms : RATE_MS;
  const bool was_sampling = sampling;
  if (hold || !timed || passed < wanted * 1000000) return;
  if (closed) {
    (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    closed = false;
  } else {
    if (sampling) (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    (void)cuptiActivityFlushAll(0);
    const double rate = (double)(head->records - before) * 1e9 / (double)passed;
    closed = sampling;
    sampling = rate > (sampling ? MANY_A_SECOND / 2 : MANY_A_SECOND);
    if (closed && !sampling) {
      (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      closed = false;
    }
  }
  if (!sampling) opened_ns = sampled_ns = 0;
  else if (was_sampling) sampled_ns += passed, opened_ns += closed ? passed : 0;
  stands_for = opened_ns > 0 ? (double)sampled_ns / (double)opened_ns : 1;
  since = now;
  before = head->records;
}

/* How long the worker may sleep. */
static int nap_ms(bool busy) {
  if (busy) return FLIGHT_POLL_MS;
  if (closed) return WATCHED_CLOSED_MS / 4;
  return sampling ? WATCHED_OPEN_MS / 2 : FLUSH_MS;
}

static void *work(void *unused) {
  (void)unused;
  inside = 1;
  CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)cuThreadExchangeStreamCaptureMode(&relaxed);
  uint64_t flushed = now_ns();
  pthread_mutex_lock(&lock);
  while (!dead) {
    const bool busy = follow_all();
    sweep();
    if (!send_all() || !take_commands()) break;
    see_launches(hold || !timed || (watched_count > 0 && !closed) || launching());
    pthread_mutex_unlock(&lock);
    if (timed && now_ns() - flushed > (busy ? BUSY_FLUSH_MS : FLUSH_MS) * 1000000ull) {
      (void)cuptiActivityFlushAll(0);
      flushed = now_ns();
    }
    open_or_close();
    struct pollfd fds[] = {{link_fd, POLLIN, 0}, {wake_fd, POLLIN, 0}};
    (void)poll(fds, 2, nap_ms(busy));
    uint64_t woken = 0;
    if (read(wake_fd, &woken, sizeof woken) < 0 && errno != EAGAIN) dead = true;
    pthread_mutex_lock(&lock);
  }
  dead = true;
  pthread_cond_broadcast(&changed);
  if (!ended) give_back();
  pthread_mutex_unlock(&lock);
  if (ended) return NULL;
  see_launches(false);
  if (timed) (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return NULL;
}

/* ---- beginning and end */

static void in_child(void) {
  dead = true;
  inside = 1;
  close(link_fd); /* which is to end with the parent */
}

static bool in_flight(void) {
  for (uint32_t i = 0; i < build_count; i++)
    if (in_use(builds[i]->instance)) return true;
  return false;
}

static void finish(void) {
  if (getpid() != owner) return;
  ended = dead;
  if (ended) return;
  inside = 1;
  if (timed) (void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const uint64_t until = now_ns() + ENDING_MS * 1000000ull;
  pthread_mutex_lock(&lock);
  bool said = false;
  while (!dead && now_ns() < until && (in_flight() || outgoing_used > 0 || sending || !said)) {
    if (!in_flight() && !said) tell("bye"), said = true;
    wake();
    pthread_mutex_unlock(&lock);
    usleep(500);
    pthread_mutex_lock(&lock);
  }
  dead = ended = true;
  pthread_mutex_unlock(&lock);
}

static bool join(const char *run) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (snprintf(address.sun_path, sizeof address.sun_path, "%s/control", run) >=
      (int)sizeof address.sun_path)
    return false;
  link_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (link_fd < 0 || connect(link_fd, (struct sockaddr *)&address, sizeof address) != 0)
    return false;
  snprintf(folder, sizeof folder, "%s/%d", run, (int)owner);
  return mkdir(folder, 0700) == 0 || errno == EEXIST;
}

static bool make_table(void) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/table", folder);
  const size_t size = sizeof(Head) + ROWS * sizeof(Row);
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || !make_room(fd, size)) return false;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return false;
  head = memory;
  rows = (Row *)(head + 1);
  *head = (Head){.magic = 0x77757067, .version = PROTOCOL, .row_bytes = sizeof(Row), .capacity = ROWS};
  return true;
}

/* Says hello and waits for what gpuwatch wants. */
static bool greet(const char *problem) {
  char program[PATH_BYTES] = "?";
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
  if (size > 0) program[size] = '\0';
  int driver = 0;
  (void)cuDriverGetVersion(&driver);
  char text[2 * PATH_BYTES];
  const int used = snprintf(text, sizeof text, "hello %d %d %d %d %d %s\n%s%s%s", PROTOCOL,
                            (int)owner, (int)getppid(), timed, driver, program,
                            problem ? "problem " : "", problem ? problem : "", problem ? "\n" : "");
  if (send(link_fd, text, (size_t)used, MSG_NOSIGNAL) != used) return false;
  struct pollfd fd = {link_fd, POLLIN, 0};
  char answer[256] = "";
  size_t got = 0;
  while (got < sizeof answer - 1 && poll(&fd, 1, 5000) > 0) {
    const ssize_t one = recv(link_fd, answer + got, 1, 0);
    if (one <= 0) return false;
    if (answer[got++] == '\n') break;
  }
  unsigned long long interval = 0, every = 0;
  int held = 0, waiting = 0;
  if (sscanf(answer, "options %d %d %llu %llu", &held, &waiting, &interval, &every) != 4)
    return false;
  hold = held, wait_for_slots = waiting, interval_ns = interval * 1000, plain_every = every;
  return true;
}

static const CUpti_CallbackId OTHERS[] = {
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoad,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule,
    CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel,
    CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction,
    CUPTI_DRIVER_TRACE_CBID_cuModuleUnload,
    CUPTI_DRIVER_TRACE_CBID_cuLibraryUnload,
    CUPTI_DRIVER_TRACE_CBID_cuLinkAddData_v2,
    CUPTI_DRIVER_TRACE_CBID_cuLinkComplete,
    CUPTI_DRIVER_TRACE_CBID_cuLinkDestroy,
};

static const char *subscribe(void) {
  const CUptiResult status = cuptiSubscribe(&subscriber, (CUpti_CallbackFunc)on_call, NULL);
  if (status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    subscriber = NULL;
    return "another profiler has subscribed to CUPTI in this process: no kernel of it is seen";
  }
  if (status != CUPTI_SUCCESS) {
    subscriber = NULL;
    return "CUPTI cannot be used in this process: no kernel of it is seen";
  }
  for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
    (void)cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, OTHERS[i]);
  (void)cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                            CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
  timed = cuptiActivityRegisterCallbacks(give_buffer, take_buffer) == CUPTI_SUCCESS &&
          cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
  return timed ? NULL : "CUPTI gives no times of kernels in this process";
}

static bool begin(const char *run) {
  owner = getpid();
  if (!join(run) || !make_table()) return false;
  wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd < 0 || !greet(subscribe())) return false;
  see_launches(hold || !timed);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, NULL, work, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!started) return false;
  pthread_detach(thread);
  pthread_atfork(NULL, NULL, in_child);
  atexit(finish);
  return true;
}

int InitializeInjection(void);
int InitializeInjection(void) {
  const char *run = getenv("GPUWATCH_RUN");
  inside = 1;
  if (run == NULL || !begin(run)) {
    dead = true;
    if (subscriber != NULL) (void)cuptiUnsubscribe(subscriber);
    if (timed) (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    if (link_fd >= 0) close(link_fd);
  }
  inside = 0;
  return 1;
}
