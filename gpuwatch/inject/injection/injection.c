/* The library that the CUDA driver loads into a program started by `gpuwatch run`
 * (CUDA_INJECTION64_PATH). It sees the program's kernels through CUPTI, launches probed kernels in
 * place of the program's own as gpuwatch says, and hands their records over. ../README.md describes the
 * folder, the socket and the shared table; ../protocol.py is the other side. One C file: its parts
 * are included in the order in which they need each other.
 *
 * Whatever goes wrong here is told, and the program's own kernel runs.
 */
#include "state.h"
#include "telling.h"
#include "kernels.h"
#include "times.h"
#include "images.h"
#include "devices.h"
#include "builds.h"
#include "launches.h"
#include "storing.h"
#include "replacing.h"
#include "calls.h"
#include "commands.h"

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
  if (slot->state == LAUNCHED && !instance->pinned &&
      cuEventQuery(slot->launched) == CUDA_ERROR_NOT_READY) {
    /* a copy would wait for the kernel, and launches for the lock */
  } else if (slot->state == LAUNCHED) {
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

/* Sends what goes without waiting: gpuwatch may itself wait for us to read. */
static bool send_all(void) {
  static char *text;
  static size_t size, done;
  for (;;) {
    if (text == NULL && outgoing_used > 0) {
      text = outgoing, size = outgoing_used, done = 0;
      outgoing = NULL, outgoing_used = outgoing_room = 0;
    }
    sending = text != NULL;
    if (!sending) return true;
    pthread_mutex_unlock(&lock);
    const ssize_t sent = send(link_fd, text + done, size - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int problem = sent < 0 ? errno : 0;
    pthread_mutex_lock(&lock);
    if (problem == EAGAIN || problem == EWOULDBLOCK) return true;
    if (problem != 0 && problem != EINTR) return false;
    if (sent > 0) done += (size_t)sent;
    if (done == size) free(text), text = NULL;
  }
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
 * for a part of the time, and stand for the others, as long as no kernel is watched. Without the
 * lock: CUPTI hands over records. */
static void open_or_close(void) {
  static uint64_t since, before, opened_ns, sampled_ns;
  const bool watching = hold || !timed || watched_count > 0;
  const uint64_t now = now_ns(), passed = now - since;
  const uint64_t wanted = closed ? CLOSED_MS : sampling ? OPEN_MS : RATE_MS;
  if (watching ? !sampling : passed < wanted * 1000000) return;
  const bool was_sampling = sampling;
  if (closed) {
    (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    closed = false;
  } else if (!watching) {
    if (sampling) (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    (void)cuptiActivityFlushAll(0);
    pthread_mutex_lock(&lock);
    take_records();
    pthread_mutex_unlock(&lock);
    const double rate = (double)(head->records - before) * 1e9 / (double)passed;
    closed = sampling;
    sampling = rate > (sampling ? MANY_A_SECOND / 2 : MANY_A_SECOND);
    if (closed && !sampling) {
      (void)cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      closed = false;
    }
  }
  if (watching) sampling = false;
  if (!sampling) opened_ns = sampled_ns = 0;
  else if (was_sampling) sampled_ns += passed, opened_ns += closed ? passed : 0;
  stands_for = opened_ns > 0 ? (double)sampled_ns / (double)opened_ns : 1;
  since = now;
  before = head->records;
}

/* How long the worker may sleep. */
static int nap_ms(bool busy) {
  if (busy) return FLIGHT_POLL_MS;
  return sampling && !closed ? OPEN_MS / 2 : FLUSH_MS;
}

static void do_work(void) {
  inside = 1;
  CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  (void)cuThreadExchangeStreamCaptureMode(&relaxed);
  uint64_t flushed = now_ns();
  pthread_mutex_lock(&lock);
  while (!dead) {
    take_records();
    const bool busy = follow_all();
    sweep();
    load_asked();
    if (!send_all() || !take_commands()) break;
    const bool seeing = hold || !timed || watched_count > 0 || launching();
    if (!seeing) callbacks_on = false;
    pthread_mutex_unlock(&lock);
    see_launches(seeing);
    if (timed && now_ns() - flushed > (busy ? BUSY_FLUSH_MS : FLUSH_MS) * 1000000ull) {
      (void)cuptiActivityFlushAll(0);
      flushed = now_ns();
    }
    open_or_close();
    const short wanted = sending ? POLLIN | POLLOUT : POLLIN;
    struct pollfd fds[] = {{link_fd, wanted, 0}, {wake_fd, POLLIN, 0}};
    (void)poll(fds, 2, nap_ms(busy));
    uint64_t woken = 0;
    if (read(wake_fd, &woken, sizeof woken) < 0 && errno != EAGAIN) dead = true;
    pthread_mutex_lock(&lock);
  }
  dead = true;
  pthread_cond_broadcast(&changed);
  if (!ended) give_back();
  pthread_mutex_unlock(&lock);
  if (ended) return;
  see_launches(false);
  if (timed) (void)cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

static void *work(void *unused) {
  (void)unused;
  do_work();
  working = false;
  return NULL;
}

/* ---- beginning and end */

static void in_child(void) {
  dead = true;
  inside = 1;
  if (link_fd >= 0) close(link_fd); /* which is to end with the parent */
  link_fd = -1; /* in a child of the child the number is another file's */
  pthread_mutex_init(&lock, NULL); /* another thread may have held it */
}

static bool in_flight(void) {
  for (uint32_t i = 0; i < build_count; i++)
    if (in_use(builds[i]->instance)) return true;
  return false;
}

static void finish(void) {
  if (getpid() != owner) return;
  if (inside) dead = true; /* exit() in a handler of a signal: this thread may hold the lock */
  ended = dead;
  if (ended) return;
  inside = 1;
  if (timed) (void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  const uint64_t until = now_ns() + ENDING_MS * 1000000ull;
  pthread_mutex_lock(&lock);
  take_records();
  bool said = false;
  while (!dead && now_ns() < until && (in_flight() || outgoing_used > 0 || sending || !said)) {
    if (!in_flight() && !said) tell("bye"), said = true;
    wake();
    pthread_mutex_unlock(&lock);
    usleep(500);
    pthread_mutex_lock(&lock);
  }
  dead = ended = true;
  wake();
  while (working && now_ns() < until) { /* the driver goes next */
    pthread_mutex_unlock(&lock);
    usleep(100);
    pthread_mutex_lock(&lock);
  }
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
  (void)unlink(path); /* what this process was before exec: gpuwatch may look at it still */
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
  working = true;
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
