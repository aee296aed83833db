// Output and checks of the device: printf with every kind of argument, assert that holds.
#include <cassert>

#include "corpus.h"

__global__ void says(const int *in, int *out)
{
    const int i = threadIdx.x;
    out[i] = in[i] + 1;
    if (i == 5) printf("%d %u %lld %c %s %5.2f %e %x %p%%\n", -i, 7u, 1ll << 40, 'z', "text",
                       in[i] * 0.5, 1e-9, 255, static_cast<void *>(nullptr));
}

__global__ void quiet_print(const int *in, int *out)
{
    const int i = threadIdx.x;
    out[i] = in[i] * 2;
    if (in[i] < 0) printf("never\n");
}

__global__ void asserts(const int *in, int *out)
{
    const int i = threadIdx.x;
    assert(in[i] >= 0 && in[i] < 100);
    out[i] = 100 - in[i];
}

__global__ void trap_not_taken(const int *in, int *out)
{
    const int i = threadIdx.x;
    if (in[i] > 1000) __trap();
    out[i] = in[i] ^ 21;
}

int main()
{
    says<<<1, 32>>>(below(100, 32), zeros<int>(32));
    quiet_print<<<1, 64>>>(below(100, 64), zeros<int>(64));
    asserts<<<2, 32>>>(below(100, 32), zeros<int>(32));
    trap_not_taken<<<1, 48>>>(below(100, 48), zeros<int>(48));
    return finish();
}
