// Forces of all pairs, positions by way of shared memory: arithmetic and square roots.
#include "bench.cuh"

__global__ void nbody(const float4 *bodies, float4 *forces, int count)
{
    __shared__ float4 tile[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 own = bodies[i];
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int start = 0; start < count; start += blockDim.x) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < blockDim.x; ++k) {
            const float dx = tile[k].x - own.x, dy = tile[k].y - own.y, dz = tile[k].z - own.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float pull = tile[k].w * inverse * inverse * inverse;
            fx += dx * pull;
            fy += dy * pull;
            fz += dz * pull;
        }
        __syncthreads();
    }
    forces[i] = make_float4(fx, fy, fz, 0.0f);
}

int main()
{
    const int count = 16384;
    const float *bodies = upload(random_floats(4 * count, 1));
    nbody<<<count / 128, 128>>>(reinterpret_cast<const float4 *>(bodies), zeros<float4>(count),
                                count);
    return finish();
}
