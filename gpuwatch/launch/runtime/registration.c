/* What a program's start-up code tells the runtime: its modules and kernels. */
#include "runtime.h"

void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp);

static struct { const void *host; char *name; } *strangers;
static int stranger_count;

const char *name_of_stranger(const void *host)
{
    for (int i = 0; i < stranger_count; ++i)
        if (strangers[i].host == host) return strangers[i].name;
    return "?";
}

void **__cudaRegisterFatBinary(void *binary)
{
    void **handle = malloc(sizeof *handle);
    if (handle == NULL) die("out of memory");
    *handle = binary;
    return handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
void __cudaUnregisterFatBinary(void **handle) { free(handle); }
char __cudaInitModule(void **handle) { (void)handle; return 1; }

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int limit, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid, int *warp)
{
    (void)handle, (void)device, (void)limit, (void)tid, (void)bid;
    (void)block, (void)grid, (void)warp;
    for (int i = 0; i < kernel_count; ++i) {
        if (strcmp(kernels[i].name, name) != 0) continue;
        kernels[i].host = host;
        return;
    }
    strangers = grown(strangers, stranger_count, sizeof *strangers);
    strangers[stranger_count].host = host;
    strangers[stranger_count++].name = strdup(name);
}
