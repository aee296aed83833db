// Ways out: early returns, `exit;` with and without guards, in loops, branches and functions.
#include "corpus.h"

__global__ void early_return(const unsigned *in, unsigned *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (in[i] & 1) {
        out[i] = in[i] >> 1;
        return;
    }
    out[i] = 3 * in[i] + 1;
}

__global__ void exit_at_end(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = ~in[i];
    asm volatile("exit;");
}

__global__ void guarded_exit(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned value = in[i];
    asm volatile("{ .reg .pred odd; .reg .b32 bit; and.b32 bit, %0, 1;\n"
                 "setp.ne.u32 odd, bit, 0; @odd exit; }" ::"r"(value));
    out[i] = value;
}

__global__ void lanes_leave_one_by_one(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = in[i] % 64;
    for (unsigned step = 0;; ++step) {
        out[i] = step;
        if (step == value) asm volatile("exit;");
    }
}

__global__ void never_meet(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] & 4) {
        out[i] = in[i] * 5;
        asm volatile("exit;");
    } else if (in[i] & 2) {
        for (unsigned k = 0; k < in[i] % 16; ++k) out[i] += k;
        asm volatile("exit;");
    } else {
        out[i] = 7;
        return;
    }
}

__device__ __noinline__ void leave_if(bool leave)
{
    if (leave) asm volatile("exit;");
}

__global__ void exit_in_function(const unsigned *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 1;
    leave_if(in[i] % 3 == 0);
    out[i] = in[i];
}

__global__ void barrier_after_return(const unsigned *in, unsigned *out)
{
    __shared__ unsigned box[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x >= 70) return;
    box[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = box[69 - threadIdx.x];
}

int main()
{
    early_return<<<5, 96>>>(patterns(480), zeros<unsigned>(480), 401);
    exit_at_end<<<4, 64>>>(patterns(256), zeros<unsigned>(256));
    guarded_exit<<<4, 80>>>(patterns(320), zeros<unsigned>(320));
    lanes_leave_one_by_one<<<3, 64>>>(patterns(192), zeros<unsigned>(192));
    never_meet<<<4, 96>>>(patterns(384), zeros<unsigned>(384));
    exit_in_function<<<3, 64>>>(patterns(192), zeros<unsigned>(192));
    barrier_after_return<<<4, 128>>>(patterns(512), zeros<unsigned>(512));
    return finish();
}
