// Loads and stores: volatile, read-only, cache operators, vectors, bytes, generic, local, prefetch.
#include "corpus.h"

__global__ void volatile_loads(volatile int *data, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int first = data[i];
    data[i] = first + 1;
    out[i] = data[i] * 2 + first;
}

__global__ void read_only(const float *__restrict__ in, const int *__restrict__ index,
                          float *__restrict__ out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = __ldg(&in[index[i]]) + in[i];
}

__global__ void cache_operators(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int sum = __ldcg(in + i) + 2 * __ldcs(in + i) + 3 * __ldca(in + i) + 4 * __ldcv(in + i)
                    + 5 * __ldlu(in + i);
    __stwb(out + 4 * i, sum);
    __stcg(out + 4 * i + 1, sum + 1);
    __stcs(out + 4 * i + 2, sum + 2);
    __stwt(out + 4 * i + 3, sum + 3);
}

__global__ void vector_loads(const float4 *in, float2 *out, uchar4 *bytes)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 value = in[i];
    out[i] = make_float2(value.x + value.w, value.y * value.z);
    bytes[i] = make_uchar4(i, i * 2, value.x > 0, 255);
}

struct __attribute__((packed)) Packet { unsigned char tag; unsigned length; unsigned short code; };

__global__ void packed_struct(const Packet *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i].tag + in[i].length * 3 + in[i].code;
}

__global__ void by_bytes(const unsigned char *in, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned word;
    memcpy(&word, in + i * 3 + 1, sizeof word);
    out[i] = word;
}

__global__ void generic_pointer(const int *in, int *out, int n)
{
    __shared__ int box[64];
    int own[4] = {1, 2, 3, static_cast<int>(threadIdx.x)};
    const int i = threadIdx.x;
    box[i] = in[i] * 2;
    __syncthreads();
    const int *from = i % 3 == 0 ? box : i % 3 == 1 ? in : own;
    out[i] = from[i % n];
}

__global__ void local_stack(const int *in, int *out)
{
    int stack[32], top = 0;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned word = in[i] * 2654435761u;
    for (int k = 0; k < 24; ++k, word >>= 1) {
        if ((word & 1) || top < 2) stack[top++] = k + in[i];
        else {
            const int b = stack[--top];
            stack[top - 1] = stack[top - 1] * 3 - b;
        }
    }
    int sum = 0;
    while (top) sum = sum * 5 + stack[--top];
    out[i] = sum;
}

__global__ void copied_blocks(const char *in, char *out)
{
    const int i = threadIdx.x;
    memcpy(out + i * 24, in + i * 24, 24);
    memset(out + i * 24 + 5, i, 7);
}

__global__ void prefetched(const int *in, int *out)
{
    const int i = threadIdx.x;
    asm volatile("prefetch.global.L2 [%0];" ::"l"(in + i + 32));
    int value = -1;
    asm volatile("{ .reg .pred p; .reg .b32 v; setp.lt.s32 p, %2, 40;\n"
                 "@p ld.global.v2.u32 {v, %0}, [%1+8]; }"
                 : "+r"(value) : "l"(in + 2 * i), "r"(i));
    out[i] = value;
}

int main()
{
    const auto byte = [](int k) { return static_cast<unsigned char>(mixed(k)); };
    volatile_loads<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    read_only<<<2, 64>>>(sixteenths(128), below(128, 128), zeros<float>(128));
    cache_operators<<<2, 48>>>(below(1000, 96), zeros<int>(384));
    vector_loads<<<2, 64>>>(filled<float4>(128, [](int k) {
        return make_float4(sixteenth(k), sixteenth(k + 1), sixteenth(k + 2), sixteenth(k + 3));
    }), zeros<float2>(128), zeros<uchar4>(128));
    packed_struct<<<2, 40>>>(filled<Packet>(80, [](int k) {
        return Packet{static_cast<unsigned char>(k), mixed(k), static_cast<unsigned short>(mixed(~k))};
    }), zeros<unsigned>(80));
    by_bytes<<<2, 64>>>(filled<unsigned char>(400, byte), zeros<unsigned>(128));
    generic_pointer<<<1, 64>>>(below(1000, 64), zeros<int>(64), 4);
    local_stack<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    copied_blocks<<<1, 40>>>(filled<char>(960, byte), zeros<char>(960));
    prefetched<<<1, 64>>>(below(1000, 160), zeros<int>(64));
    return finish();
}
