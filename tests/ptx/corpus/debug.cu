// sm_86 -G: unoptimised code with DWARF sections.
struct Sample {
    int key;
    double weight;
};

__device__ double scaled(const Sample& sample, double factor) {
    return sample.weight * factor + sample.key;
}

__global__ void weigh(const Sample* samples, double* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scaled(samples[i], 0.5);
}
