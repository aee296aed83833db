/* Copies and fills, as boxes of rows given to a stream. */
#include "runtime.h"

static cudaError_t copy_box(cudaStream_t stream, struct copy copy)
{
    if ((copy.to == NULL || copy.from == NULL) && copy.width > 0)
        return fail(cudaErrorInvalidValue);
    return submit(stream, (struct work){COPY_WORK, .copy = copy});
}

static cudaError_t fill_box(cudaStream_t stream, struct fill fill)
{
    if (fill.to == NULL && fill.width > 0) return fail(cudaErrorInvalidValue);
    return submit(stream, (struct work){FILL_WORK, .fill = fill});
}

static cudaError_t copy_row(cudaStream_t stream, void *to, const void *from, size_t n)
{
    return copy_box(stream, (struct copy){.to = to, .from = from, .width = n, .height = 1,
                                          .depth = 1});
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind)
{
    (void)kind;
    return copy_row(NULL, to, from, n);
}
PER_THREAD(cudaMemcpy, _ptds);

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    (void)kind;
    return copy_row(stream, to, from, n);
}
PER_THREAD(cudaMemcpyAsync, _ptsz);

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t n)
{
    (void)to_device, (void)from_device;
    return copy_row(NULL, to, from, n);
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t n, cudaStream_t stream)
{
    (void)to_device, (void)from_device;
    return copy_row(stream, to, from, n);
}

static cudaError_t copy_rows(cudaStream_t stream, void *to, size_t to_pitch, const void *from,
                             size_t from_pitch, size_t width, size_t height)
{
    if (width > to_pitch || width > from_pitch) return fail(cudaErrorInvalidPitchValue);
    return copy_box(stream, (struct copy){.to = to, .from = from, .to_pitch = to_pitch,
                                          .from_pitch = from_pitch, .width = width,
                                          .height = height, .depth = 1});
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    (void)kind;
    return copy_rows(NULL, to, to_pitch, from, from_pitch, width, height);
}
PER_THREAD(cudaMemcpy2D, _ptds);

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    (void)kind;
    return copy_rows(stream, to, to_pitch, from, from_pitch, width, height);
}
PER_THREAD(cudaMemcpy2DAsync, _ptsz);

static char *corner(struct cudaPitchedPtr p, struct cudaPos at)
{
    return (char *)p.ptr + (at.z * p.ysize + at.y) * p.pitch + at.x;
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
    if (p->srcArray != NULL || p->dstArray != NULL) {
        note_refused_call("cudaMemcpy3D with an array");
        return fail(cudaErrorNotSupported);
    }
    return copy_box(stream, (struct copy){
        .to = corner(p->dstPtr, p->dstPos), .from = corner(p->srcPtr, p->srcPos),
        .to_pitch = p->dstPtr.pitch, .from_pitch = p->srcPtr.pitch,
        .to_slice = p->dstPtr.pitch * p->dstPtr.ysize,
        .from_slice = p->srcPtr.pitch * p->srcPtr.ysize,
        .width = p->extent.width, .height = p->extent.height, .depth = p->extent.depth});
}
PER_THREAD(cudaMemcpy3DAsync, _ptsz);

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p) { return cudaMemcpy3DAsync(p, NULL); }
PER_THREAD(cudaMemcpy3D, _ptds);

cudaError_t cudaMemsetAsync(void *to, int value, size_t n, cudaStream_t stream)
{
    return fill_box(stream, (struct fill){.to = to, .value = (unsigned char)value, .element = 1,
                                          .width = n, .height = 1, .depth = 1});
}
PER_THREAD(cudaMemsetAsync, _ptsz);

cudaError_t cudaMemset(void *to, int value, size_t n) { return cudaMemsetAsync(to, value, n, NULL); }
PER_THREAD(cudaMemset, _ptds);

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream)
{
    return fill_box(stream, (struct fill){.to = to, .value = (unsigned char)value, .element = 1,
                                          .pitch = pitch, .width = width, .height = height,
                                          .depth = 1});
}
PER_THREAD(cudaMemset2DAsync, _ptsz);

cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height)
{
    return cudaMemset2DAsync(to, pitch, value, width, height, NULL);
}
PER_THREAD(cudaMemset2D, _ptds);

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                              cudaStream_t stream)
{
    return fill_box(stream, (struct fill){
        .to = to.ptr, .value = (unsigned char)value, .element = 1, .pitch = to.pitch,
        .slice = to.pitch * to.ysize, .width = extent.width, .height = extent.height,
        .depth = extent.depth});
}
PER_THREAD(cudaMemset3DAsync, _ptsz);

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    return cudaMemset3DAsync(to, value, extent, NULL);
}
PER_THREAD(cudaMemset3D, _ptds);
