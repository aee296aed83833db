// Control flow: nested divergent loops, switches and jump tables, state machines, breaks, goto.
#include "corpus.h"

__global__ void nested_loops(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int a = 0; a < in[i] % 7; ++a)
        for (int b = a; b < in[i] % 11; ++b) {
            if ((a + b) % 3 == 0) continue;
            int c = b;
            while (c > 0) {
                sum += c;
                c -= 1 + (in[i] & 1);
                if (sum > 5000) break;
            }
        }
    out[i] = sum;
}

__global__ void switched(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = in[i];
    switch (value % 9) {
    case 0: value += 3; break;
    case 1: value *= 7;
    case 2: value ^= 0x55; break;
    case 3:
        for (int k = 0; k < 5; ++k) value = value * 3 + k;
        break;
    case 4: value = -value; break;
    case 5: value = __popc(value); break;
    case 6: value /= 3; break;
    case 7: out[i] = value; return;
    default: value = 0;
    }
    out[i] = value + 1;
}

__global__ void jump_table(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int result;
    asm volatile("{ ways: .branchtargets first, second, third, fourth;\n"
                 "brx.idx %1, ways;\n"
                 "first: mov.s32 %0, 11; bra joined;\n"
                 "second: mov.s32 %0, -22; bra joined;\n"
                 "third: mov.s32 %0, 33;\n"
                 "fourth: add.s32 %0, %1, 40;\n"
                 "joined: }" : "=r"(result) : "r"(in[i] % 4));
    out[i] = result;
}

__global__ void state_machine(const unsigned char *text, int *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int words = 0, digits = 0, at = i;
outside:
    if (at >= n) goto done;
    if (text[at] >= 'a' && text[at] <= 'z') {
        ++words;
        goto inside;
    }
    ++at;
    goto outside;
inside:
    if (at >= n) goto done;
    if (text[at] == ' ') goto outside;
    digits += text[at] >= '0' && text[at] <= '9';
    ++at;
    goto inside;
done:
    out[i] = words * 100 + digits;
}

__global__ void collatz(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long n = in[i] + 1;
    int steps = 0;
    do {
        n = n & 1 ? 3 * n + 1 : n / 2;
        ++steps;
    } while (n > 1 && steps < 300);
    out[i] = steps;
}

__global__ void interpreter(const unsigned char *code, int *out, int n)
{
    int stack[8] = {}, top = 0;
    const int i = threadIdx.x;
    for (int at = 0, budget = 60; budget > 0; --budget, at = (at + 1) % n) {
        const int word = code[(at + i) % n];
        switch (word % 6) {
        case 0: stack[top++ & 7] = word; break;
        case 1: stack[(top + 7) & 7] += i; break;
        case 2: stack[(top + 7) & 7] ^= stack[(top + 6) & 7]; break;
        case 3: if (stack[(top + 7) & 7] & 1) at += 2; break;
        case 4: --top; break;
        default: if (word > 230) budget = 0;
        }
    }
    int sum = 0;
    for (int k = 0; k < 8; ++k) sum = sum * 31 + stack[k];
    out[i] = sum;
}

__global__ void producer_consumer(int *out)
{
    __shared__ volatile int ready;
    __shared__ volatile int value;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    if (threadIdx.x == 32) {
        value = 4711;
        __threadfence_block();
        ready = 1;
    }
    if (threadIdx.x < 32) {
        while (ready == 0) {}
        out[threadIdx.x] = value + threadIdx.x;
    }
}

int main()
{
    const auto letter = [](int k) {
        return static_cast<unsigned char>("abc xyz 0189 "[mixed(k) % 13u]);
    };
    nested_loops<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    switched<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    jump_table<<<2, 64>>>(below(1000, 128), zeros<int>(128));
    state_machine<<<2, 64>>>(filled<unsigned char>(200, letter), zeros<int>(128), 200);
    collatz<<<2, 64>>>(below(10000, 128), zeros<int>(128));
    interpreter<<<1, 64>>>(filled<unsigned char>(96, [](int k) {
        return static_cast<unsigned char>(mixed(k));
    }), zeros<int>(64), 96);
    producer_consumer<<<1, 64>>>(zeros<int>(32));
    return finish();
}
