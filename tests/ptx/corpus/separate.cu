// sm_86, -rdc=true: what several translation units share, small parameters, weak code.
struct Small {
    char tag;
    short rank;
    bool flag;
};
struct Box {
    double weight;
    unsigned char bytes[5];
};

extern __device__ float scale(float value, Small kind);
extern __device__ int counter;
extern __constant__ float table[16];
__device__ __managed__ int shared_with_host = 3;
__device__ int plain[4] = {1, 2, 3};
static __device__ int hidden;
__constant__ signed char letters[3] = {'a', 'b', -1};

template <class T>
__device__ __noinline__ T twice(T value) {
    return value + value;
}

__device__ __noinline__ Box pack(Box box, Small small, char c) {
    box.bytes[small.rank & 3] = c;
    box.weight *= twice(box.weight);
    return box;
}

typedef int (*Step)(int);
__device__ __noinline__ int more(int x) { return x + hidden; }
__device__ __noinline__ int less(int x) { return x - plain[1]; }
__device__ Step steps[2] = {more, less};

__global__ void use(float* out, char c, unsigned char u, short s, bool flag, Small small, Box box) {
    Box packed = pack(box, small, c);
    int value = steps[flag](u + s);
    out[threadIdx.x] = scale(table[threadIdx.x & 15], small) + packed.bytes[2] + packed.weight +
                       twice<float>(value) + letters[flag];
    atomicAdd(&counter, shared_with_host);
    hidden = value;
}

template <int N>
__global__ void fill(int* out) {
    out[threadIdx.x] = N;
}
template __global__ void fill<3>(int*);
