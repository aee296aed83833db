/* Launches through the driver's own call, arguments one by one or packed into a buffer: programs
 * reach it with a handle from cudaGetFuncBySymbol. */
#include "runtime.h"

#include <cuda.h>

/* The buffer that `extra` names, NULL for none. Its end is marked CU_LAUNCH_PARAM_END. */
static char *packed_buffer(void **extra)
{
    for (; extra != NULL && extra[0] != CU_LAUNCH_PARAM_END; extra += 2)
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) return extra[1];
    return NULL;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                        void **arguments, void **extra)
{
    const struct kernel *k = kernel_of(function);
    if (k == NULL) return CUDA_ERROR_INVALID_HANDLE;
    char *buffer = packed_buffer(extra);
    if (k->parameter_count > 0 && (arguments == NULL) == (buffer == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    void **pointers = calloc((size_t)k->parameter_count + 1, sizeof *pointers);
    if (pointers == NULL) die("out of memory");
    for (int i = 0; i < k->parameter_count; ++i)
        pointers[i] = buffer != NULL ? buffer + k->parameters[i].offset : arguments[i];
    const cudaError_t error = cudaLaunchKernel((const void *)function, (dim3){gx, gy, gz},
                                               (dim3){bx, by, bz}, pointers, shared, stream);
    free(pointers);
    return (CUresult)error; /* the runtime numbers its errors as the driver does */
}
