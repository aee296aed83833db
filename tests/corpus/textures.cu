// Textures and surfaces, which a simulated GPU may refuse by name.
#include "corpus.h"

__global__ void fetched(cudaTextureObject_t texture, float *out)
{
    out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}

__global__ void surface_written(cudaSurfaceObject_t surface)
{
    surf1Dwrite(static_cast<int>(threadIdx.x), surface, threadIdx.x * 4);
}

int main()
{
    fetched<<<1, 32>>>(0, zeros<float>(32));
    surface_written<<<1, 32>>>(0);
    return finish();
}
