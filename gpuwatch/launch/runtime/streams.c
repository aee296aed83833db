/* Streams and events. Work is done when it is given, or noted while its stream is captured. */
#include "runtime.h"

struct stream {
    unsigned flags;
    int priority;
    unsigned long long id;
    struct graph *captured;
    struct stream *next;
};
struct event { struct graph *captured; };

static struct stream *streams;

/* The legacy and the per-thread default stream are no objects. */
static struct stream *own_stream(cudaStream_t stream)
{
    const int is_default =
        stream == NULL || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
    return is_default ? NULL : (struct stream *)stream;
}

static void copy_now(const struct copy *c)
{
    for (size_t z = 0; z < c->depth; ++z)
        for (size_t y = 0; y < c->height; ++y)
            memmove(c->to + z * c->to_slice + y * c->to_pitch,
                    c->from + z * c->from_slice + y * c->from_pitch, c->width);
}

static void fill_row(char *row, const struct fill *f)
{
    if (f->element == 1) memset(row, (int)f->value, f->width);
    else
        for (size_t x = 0; x < f->width; ++x)
            memcpy(row + x * f->element, &f->value, f->element);
}

static void fill_now(const struct fill *f)
{
    for (size_t z = 0; z < f->depth; ++z)
        for (size_t y = 0; y < f->height; ++y) fill_row(f->to + z * f->slice + y * f->pitch, f);
}

cudaError_t perform(const struct work *work)
{
    switch (work->kind) {
    case COPY_WORK: copy_now(&work->copy); break;
    case FILL_WORK: fill_now(&work->fill); break;
    case HOST_WORK: work->host.function(work->host.data); break;
    case KERNEL_WORK:
        return launch(work->kernel.kernel, &work->kernel.shape, work->kernel.parameters);
    case NO_WORK: break;
    }
    return cudaSuccess;
}

cudaError_t submit(cudaStream_t stream, struct work work)
{
    struct stream *own = own_stream(stream);
    if (own != NULL && own->captured != NULL) {
        append(own->captured, work);
        return cudaSuccess;
    }
    const cudaError_t error = perform(&work);
    if (work.kind == KERNEL_WORK) free(work.kernel.parameters);
    return error;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    static unsigned long long last_id;
    struct stream *s = calloc(1, sizeof *s);
    if (s == NULL) return fail(cudaErrorMemoryAllocation);
    s->flags = flags;
    s->priority = priority;
    pthread_mutex_lock(&runtime_lock);
    s->id = ++last_id;
    s->next = streams;
    streams = s;
    pthread_mutex_unlock(&runtime_lock);
    *stream = (cudaStream_t)s;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    struct stream *own = own_stream(stream);
    pthread_mutex_lock(&runtime_lock);
    for (struct stream **s = &streams; own != NULL && *s != NULL; s = &(*s)->next) {
        if (*s != own) continue;
        *s = own->next;
        break;
    }
    pthread_mutex_unlock(&runtime_lock);
    free(own);
    return cudaSuccess;
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    *flags = own_stream(stream) == NULL ? cudaStreamDefault : own_stream(stream)->flags;
    return cudaSuccess;
}
PER_THREAD(cudaStreamGetFlags, _ptsz);

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    *priority = own_stream(stream) == NULL ? 0 : own_stream(stream)->priority;
    return cudaSuccess;
}
PER_THREAD(cudaStreamGetPriority, _ptsz);

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
    *id = own_stream(stream) == NULL ? 0 : own_stream(stream)->id;
    return cudaSuccess;
}
PER_THREAD(cudaStreamGetId, _ptsz);

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    (void)stream;
    *device = 0;
    return cudaSuccess;
}
PER_THREAD(cudaStreamGetDevice, _ptsz);

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
    struct work work = {.kind = HOST_WORK};
    work.host.function = function;
    work.host.data = data;
    return submit(stream, work);
}
PER_THREAD(cudaLaunchHostFunc, _ptsz);

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data,
                                  unsigned flags)
{
    (void)flags;
    function(stream, cudaSuccess, data);
    return cudaSuccess;
}
PER_THREAD(cudaStreamAddCallback, _ptsz);

/* ---- capture ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    struct stream *own = own_stream(stream);
    if (own == NULL) return fail(cudaErrorStreamCaptureUnsupported);
    if (own->captured != NULL) return fail(cudaErrorIllegalState);
    own->captured = new_graph();
    return cudaSuccess;
}
PER_THREAD(cudaStreamBeginCapture, _ptsz);

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const struct stream *own = own_stream(stream);
    if (own == NULL || own->captured == NULL) return fail(cudaErrorIllegalState);
    struct graph *captured = own->captured;
    *graph = (cudaGraph_t)captured;
    pthread_mutex_lock(&runtime_lock);
    for (struct stream *s = streams; s != NULL; s = s->next)
        if (s->captured == captured) s->captured = NULL;
    pthread_mutex_unlock(&runtime_lock);
    return cudaSuccess;
}
PER_THREAD(cudaStreamEndCapture, _ptsz);

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    const struct stream *own = own_stream(stream);
    *status = own != NULL && own->captured != NULL ? cudaStreamCaptureStatusActive
                                                   : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}
PER_THREAD(cudaStreamIsCapturing, _ptsz);

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(struct event));
    return *event == NULL ? fail(cudaErrorMemoryAllocation) : cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
    (void)flags;
    if (event == NULL) return fail(cudaErrorInvalidResourceHandle);
    const struct stream *own = own_stream(stream);
    ((struct event *)event)->captured = own == NULL ? NULL : own->captured;
    return cudaSuccess;
}
PER_THREAD(cudaEventRecordWithFlags, _ptsz);

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(event, stream, 0);
}
PER_THREAD(cudaEventRecord, _ptsz);

/* A stream that waits for an event of a captured one is captured with it. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    struct stream *own = own_stream(stream);
    if (event == NULL) return fail(cudaErrorInvalidResourceHandle);
    struct graph *captured = ((struct event *)event)->captured;
    if (own != NULL && captured != NULL) own->captured = captured;
    return cudaSuccess;
}
PER_THREAD(cudaStreamWaitEvent, _ptsz);

/* Never zero: programs divide by it. */
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begun, cudaEvent_t ended)
{
    if (begun == NULL || ended == NULL) return fail(cudaErrorInvalidResourceHandle);
    *milliseconds = 1.0f;
    return cudaSuccess;
}
