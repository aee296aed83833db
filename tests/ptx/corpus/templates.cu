// sm_80: instances of templates, shuffles and dynamic shared memory.
extern __shared__ unsigned char scratch[];

template <typename T>
__device__ T warp_sum(T value) {
    for (int delta = 16; delta > 0; delta /= 2) value += __shfl_xor_sync(~0u, value, delta);
    return value;
}

template <typename T, int Stride>
__global__ void reduce(const T* in, T* out, int n) {
    T* partial = reinterpret_cast<T*>(scratch);
    T sum = 0;
    for (int i = threadIdx.x; i < n; i += Stride) sum += in[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < Stride / 32 ? partial[threadIdx.x] : T(0));
        if (threadIdx.x == 0) *out = sum;
    }
}

template __global__ void reduce<float, 256>(const float*, float*, int);
template __global__ void reduce<double, 128>(const double*, double*, int);
template __global__ void reduce<unsigned, 64>(const unsigned*, unsigned*, int);
