// Module variables: constant memory and globals set by the host, initial values, pointers, managed.
#include "corpus.h"

__constant__ float coefficients[8];
__constant__ struct { int base; short step[3]; } rule;
__device__ int offsets[16];
__device__ int primes[10] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
__device__ const int *borrowed;
__device__ int *const chain[2] = {offsets, primes};
__managed__ int shared_with_host[8];

__global__ void polynomial(const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = 0;
    for (int k = 7; k >= 0; --k) value = value * in[i] + coefficients[k];
    out[i] = value;
}

__global__ void constant_struct(int *out)
{
    const int i = threadIdx.x;
    out[i] = rule.base + rule.step[i % 3] * i;
}

__global__ void global_table(const int *in, int *out)
{
    const int i = threadIdx.x;
    out[i] = offsets[in[i] % 16] + primes[i % 10];
}

__global__ void pointer_variable(int *out)
{
    const int i = threadIdx.x;
    out[i] = borrowed[63 - i];
}

__global__ void table_of_pointers(int *out)
{
    const int i = threadIdx.x;
    out[i] = chain[i & 1][i % 10];
}

__global__ void managed(int *out)
{
    const int i = threadIdx.x;
    out[i] = shared_with_host[i % 8] * i;
}

__global__ void writes_a_global(int *out)
{
    const int i = threadIdx.x;
    offsets[i] += i;
    out[i] = offsets[i];
}

int main()
{
    float values[8];
    for (int k = 0; k < 8; ++k) values[k] = sixteenth(k);
    require(cudaMemcpyToSymbol(coefficients, values, sizeof values));
    struct { int base; short step[3]; } given = {-100, {7, -8, 9}};
    require(cudaMemcpyToSymbol(rule, &given, sizeof given));
    int table[16];
    for (int k = 0; k < 16; ++k) table[k] = static_cast<int>(mixed(k) % 1000);
    require(cudaMemcpyToSymbol(offsets, table, sizeof table / 2, sizeof table / 2));
    int *lent = below(500, 64);
    require(cudaMemcpyToSymbol(borrowed, &lent, sizeof lent));
    for (int k = 0; k < 8; ++k) shared_with_host[k] = k * k - 3;
    polynomial<<<2, 64>>>(sixteenths(128), zeros<float>(128));
    constant_struct<<<1, 48>>>(zeros<int>(48));
    global_table<<<1, 64>>>(below(1600, 64), zeros<int>(64));
    pointer_variable<<<1, 64>>>(zeros<int>(64));
    table_of_pointers<<<1, 32>>>(zeros<int>(32));
    managed<<<1, 32>>>(zeros<int>(32));
    writes_a_global<<<1, 16>>>(zeros<int>(16));
    return finish();
}
