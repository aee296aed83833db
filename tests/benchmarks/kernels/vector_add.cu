// One element per thread, more bytes than the L2 of any profile but the H200's holds.
#include "bench.cuh"

__global__ void vector_add(const float *a, const float *b, float *c, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        c[i] = a[i] + b[i];
    }
}

int main()
{
    const int count = 1 << 23;
    const float *a = upload(random_floats(count, 1)), *b = upload(random_floats(count, 2));
    vector_add<<<count / 256, 256>>>(a, b, zeros<float>(count), count);
    return finish();
}
