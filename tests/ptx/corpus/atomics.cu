// sm_75: atomics in every memory, votes and matches.
__device__ unsigned long long total;

__global__ void histogram(const unsigned char* in, unsigned* bins, float* mass, int n) {
    __shared__ unsigned local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        atomicAdd(&local[in[i]], 1u);
        unsigned same = __match_any_sync(__activemask(), in[i]);
        if (__popc(__ballot_sync(same, i & 1)) > 3) atomicMax(&bins[256], same);
        atomicCAS(&bins[257], 0u, same);
        atomicAdd(mass, 0.25f);
        atomicExch(&bins[258], in[i]);
    }
    __syncthreads();
    if (__any_sync(~0u, local[threadIdx.x] > 0)) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
    if (threadIdx.x == 0) atomicAdd(&total, 1ull);
    __threadfence();
}
