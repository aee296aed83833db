// sm_75: textures, surfaces and local arrays.
__global__ void sample(cudaTextureObject_t image, cudaSurfaceObject_t target, const int* order) {
    float local[8];
    for (int i = 0; i < 8; ++i) local[order[i] & 7] = tex2D<float>(image, i + 0.5f, threadIdx.x);
    float4 layered = tex3D<float4>(image, 0.1f, 0.2f, threadIdx.x);
    float value = local[order[8] & 7] + layered.x + layered.w;
    surf2Dwrite(value, target, threadIdx.x * 4, 0);
}
