// Asynchronous copies into shared memory: pipelines, groups, zero fill, barriers in memory.
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline.h>

#include "corpus.h"

__global__ void staged(const float *in, float *out)
{
    __shared__ float stage[2][64];
    const int i = threadIdx.x;
    __pipeline_memcpy_async(&stage[0][i], &in[i], sizeof(float));
    __pipeline_commit();
    float sum = 0;
    for (int k = 0; k < 4; ++k) {
        if (k < 3)
            __pipeline_memcpy_async(&stage[(k + 1) & 1][i], &in[(k + 1) * 64 + i], sizeof(float));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += stage[k & 1][63 - i];
        __syncthreads();
    }
    out[i] = sum;
}

__global__ void by_sixteen(const int4 *in, int *out)
{
    __shared__ int4 box[64];
    const int i = threadIdx.x;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&box[i]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(in + i));
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    const int4 other = box[i ^ 5];
    out[i] = other.x + other.y * 2 + other.z * 3 + other.w * 4;
}

__global__ void zero_filled(const int *in, int *out, int n)
{
    __shared__ int box[128];
    const int i = threadIdx.x;
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&box[i]));
    box[i] = 99;
    const int bytes = i < n ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(in + (i < n ? i : 0)),
                 "r"(bytes));
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    out[i] = box[127 - i];
}

__global__ void memory_barrier(const int *in, int *out)
{
    __shared__ __mbarrier_t barrier;
    __shared__ int box[64];
    const int i = threadIdx.x;
    if (i == 0) __mbarrier_init(&barrier, blockDim.x);
    __syncthreads();
    for (int k = 0; k < 3; ++k) {
        box[i] = in[k * 64 + i];
        __mbarrier_token_t token = __mbarrier_arrive(&barrier);
        while (!__mbarrier_test_wait(&barrier, token)) {}
        out[k * 64 + i] = box[(i + 9) & 63];
        token = __mbarrier_arrive(&barrier);
        while (!__mbarrier_test_wait(&barrier, token)) {}
    }
}

__global__ void named_barriers(const int *in, int *out)
{
    __shared__ int box[128];
    const int i = threadIdx.x;
    if (i < 64) {
        box[i] = in[i];
        asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 128;" ::: "memory");
        box[i] = box[i - 64] * 2;
    }
    __syncthreads();
    out[i] = box[127 - i] + __syncthreads_count(in[i] & 1) + __syncthreads_or(in[i] == 3)
             + __syncthreads_and(in[i] < 1000);
}

int main()
{
    staged<<<1, 64>>>(sixteenths(256), zeros<float>(64));
    by_sixteen<<<1, 64>>>(filled<int4>(64, [](int k) {
        return make_int4(k, static_cast<int>(mixed(k)), -k, 7);
    }), zeros<int>(64));
    zero_filled<<<1, 128>>>(below(1000, 100), zeros<int>(128), 100);
    memory_barrier<<<1, 64>>>(below(1000, 192), zeros<int>(192));
    named_barriers<<<1, 128>>>(below(1000, 128), zeros<int>(128));
    return finish();
}
