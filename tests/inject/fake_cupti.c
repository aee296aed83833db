/* The CUPTI of fake.h: callbacks before and after calls of the driver, and times of kernels. */
#include "fake.h"

#include <stdatomic.h>
#include <unistd.h>

enum { CALLBACKS = 1024, RECORDS = 1 << 16, PLAIN_NS = 5000, PROBED_NS = 6000 };

static _Atomic(CUpti_CallbackFunc) subscribed;
static atomic_bool enabled[CUPTI_CB_DOMAIN_SIZE][CALLBACKS];
static char handle;
static const CUpti_SubscriberHandle SUBSCRIBER = (CUpti_SubscriberHandle)&handle;
static atomic_uint correlations;
static atomic_bool active;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_ActivityKernel10 *records;
static size_t record_count;
static uint64_t clock_ns = 1000;
static pthread_rwlock_t calling = PTHREAD_RWLOCK_INITIALIZER; /* what is enabled waits for calls */

/* ---- callbacks */

static void call_back(Traced *call, CUpti_ApiCallbackSite site) {
  const CUpti_CallbackFunc callback = subscribed;
  if (callback == NULL || !enabled[CUPTI_CB_DOMAIN_DRIVER_API][call->id]) return;
  const CUpti_CallbackData data = {
      .callbackSite = site,
      .functionName = call->name,
      .functionParams = call->parameters,
      .functionReturnValue = site == CUPTI_API_EXIT ? &call->status : NULL,
      .context = (CUcontext)fake_current(),
      .correlationData = &call->data,
      .correlationId = call->correlation,
  };
  pthread_rwlock_rdlock(&calling);
  callback(NULL, CUPTI_CB_DOMAIN_DRIVER_API, call->id, &data);
  pthread_rwlock_unlock(&calling);
}

void fake_enter(Traced *call) {
  call->correlation = ++correlations;
  call->data = 0x5A5A5A5A5A5A5A5A; /* nothing says what it is at first */
  call_back(call, CUPTI_API_ENTER);
}

CUresult fake_leave(Traced *call) {
  call_back(call, CUPTI_API_EXIT);
  return call->status;
}

void fake_ending(CUcontext context) {
  const CUpti_CallbackId id = CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
  const CUpti_ResourceData data = {.context = context};
  if (subscribed != NULL && enabled[CUPTI_CB_DOMAIN_RESOURCE][id])
    subscribed(NULL, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc callback,
                                    void *data) {
  (void)data;
  if (fake_fails("FAKE_SECOND_SUBSCRIBER")) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscribed = callback;
  *subscriber = SUBSCRIBER;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  if (subscriber != SUBSCRIBER) return CUPTI_ERROR_INVALID_PARAMETER;
  subscribed = NULL;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (subscriber != SUBSCRIBER || id >= CALLBACKS)
    return CUPTI_ERROR_INVALID_PARAMETER;
  pthread_rwlock_wrlock(&calling);
  enabled[domain][id] = enable != 0;
  pthread_rwlock_unlock(&calling);
  return CUPTI_SUCCESS;
}

/* ---- times: they go through the buffers of the subscriber, when it asks for them */

void fake_record(const Call *call, uint32_t correlation, uint32_t graph) {
  if (!active) return;
  const bool probed = call->function->module->probed;
  pthread_mutex_lock(&fake_lock);
  if (records == NULL) records = calloc(RECORDS, sizeof *records);
  if (record_count < RECORDS) {
    const uint64_t start = clock_ns, end = start + (probed ? PROBED_NS : PLAIN_NS);
    clock_ns = end + 1000;
    records[record_count++] = (CUpti_ActivityKernel10){
        .kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
        .registersPerThread = probed ? 30 : 20,
        .start = start,
        .end = end,
        .gridX = (int32_t)call->grid[0],
        .gridY = (int32_t)call->grid[1],
        .gridZ = (int32_t)call->grid[2],
        .blockX = (int32_t)call->block[0],
        .blockY = (int32_t)call->block[1],
        .blockZ = (int32_t)call->block[2],
        .staticSharedMemory = 64,
        .dynamicSharedMemory = (int32_t)call->shared,
        .correlationId = correlation,
        .graphId = graph,
        .name = call->function->known->name,
    };
  }
  pthread_mutex_unlock(&fake_lock);
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                    CUpti_BuffersCallbackCompleteFunc completed) {
  request = requested, complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (fake_fails("FAKE_NO_ACTIVITY")) return CUPTI_ERROR_NOT_COMPATIBLE;
  active = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  active = active && kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flags) {
  const char *slow = getenv("FAKE_SLOW_FLUSH");
  fake_alive();
  pthread_mutex_lock(&fake_lock);
  CUpti_ActivityKernel10 *taken = records;
  const size_t count = record_count;
  records = NULL, record_count = 0;
  pthread_mutex_unlock(&fake_lock);
  if (slow != NULL && flags != CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) usleep((useconds_t)atoi(slow));
  fake_alive();
  for (size_t done = 0; done < count;) {
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0;
    request(&buffer, &size, &most);
    size_t part = size / sizeof *taken;
    if (part > count - done) part = count - done;
    memcpy(buffer, taken + done, part * sizeof *taken);
    complete(NULL, 0, buffer, size, part * sizeof *taken);
    done += part;
  }
  free(taken);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                                CUpti_Activity **record) {
  uint8_t *next = *record == NULL ? buffer : (uint8_t *)*record + sizeof *records;
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = (CUpti_Activity *)(void *)next;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                       size_t *dropped) {
  (void)context, (void)stream;
  *dropped = 0;
  return CUPTI_SUCCESS;
}
