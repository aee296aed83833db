// Device functions: not inlined, through pointers, recursive, with structs, arrays, many arguments.
#include "corpus.h"

__device__ __noinline__ int gcd(int a, int b)
{
    while (b) {
        const int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

__global__ void greatest_divisor(const int *in, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = gcd(in[i] * 6, 360 + (i & 7));
}

struct Complex { float re, im; };
__device__ __noinline__ Complex product(Complex a, Complex b)
{
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

__global__ void complex_powers(const Complex *in, Complex *out)
{
    const int i = threadIdx.x;
    Complex power = {1, 0};
    for (int k = 0; k < i % 6; ++k) power = product(power, in[i]);
    out[i] = power;
}

__device__ int add_one(int x) { return x + 1; }
__device__ int negate(int x) { return -x; }
__device__ int triple(int x) { return 3 * x; }
__device__ int (*const operations[])(int) = {add_one, negate, triple};

__global__ void through_pointers(const int *in, int *out)
{
    const int i = threadIdx.x;
    int value = i;
    for (int k = 0; k < 4; ++k) value = operations[(in[i] >> k) % 3](value);
    out[i] = value;
}

__global__ void uniform_pointer(const int *in, int *out, int which)
{
    const int i = threadIdx.x;
    out[i] = operations[which](in[i]);
}

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__global__ void recursive(int *out)
{
    const int i = threadIdx.x;
    out[i] = fibonacci(i % 10);
}

__device__ int odd(int n);
__device__ __noinline__ int even(int n) { return n == 0 ? 1 : odd(n - 1); }
__device__ __noinline__ int odd(int n) { return n == 0 ? 0 : even(n - 1); }

__global__ void mutually_recursive(const int *in, int *out)
{
    const int i = threadIdx.x;
    out[i] = even(in[i] % 20) * 10 + odd(in[i] % 13);
}

__device__ __noinline__ int place_queens(unsigned columns, unsigned left, unsigned right, int rows)
{
    if (rows == 0) return 1;
    int found = 0;
    for (unsigned free = ~(columns | left | right) & 0x3f; free; free &= free - 1) {
        const unsigned bit = free & -free;
        found += place_queens(columns | bit, (left | bit) << 1, (right | bit) >> 1, rows - 1);
    }
    return found;
}

__global__ void queens(int *out)
{
    const unsigned bit = 1u << threadIdx.x;
    out[threadIdx.x] = place_queens(bit, bit << 1, bit >> 1, 5);
}

__device__ __noinline__ void fill(int *array, int n, int seed)
{
    for (int k = 0; k < n; ++k) array[k] = seed * (k + 1) ^ k;
}

__global__ void local_array(const int *in, int *out)
{
    const int i = threadIdx.x;
    int values[24];
    fill(values, 24, in[i]);
    int sum = 0;
    for (int k = 0; k < 8; ++k) sum += values[(in[i] + 5 * k) % 24];
    out[i] = sum;
}

__device__ __noinline__ long long many(char a, short b, int c, long long d, float e, double f,
                                       Complex g, unsigned char h, bool i, const int *j)
{
    return a + b + c + d + static_cast<int>(e) + static_cast<int>(f) + static_cast<int>(g.im) + h
           + i + *j;
}

__global__ void many_arguments(const int *in, long long *out)
{
    const int i = threadIdx.x;
    out[i] = many(i, -i, i * i, 1ll << i % 40, i * 0.5f, i * 0.25, {1, i * 2.0f}, i * 3, i & 1,
                  in + i);
}

int main()
{
    greatest_divisor<<<2, 48>>>(below(5000, 96), zeros<int>(96));
    complex_powers<<<1, 64>>>(filled<Complex>(64, [](int k) {
        return Complex{sixteenth(k), sixteenth(k + 999)};
    }), zeros<Complex>(64));
    through_pointers<<<1, 64>>>(below(5000, 64), zeros<int>(64));
    uniform_pointer<<<1, 64>>>(below(5000, 64), zeros<int>(64), 2);
    recursive<<<1, 40>>>(zeros<int>(40));
    mutually_recursive<<<1, 64>>>(below(5000, 64), zeros<int>(64));
    queens<<<1, 6>>>(zeros<int>(6));
    local_array<<<1, 64>>>(below(5000, 64), zeros<int>(64));
    many_arguments<<<1, 64>>>(below(5000, 64), zeros<long long>(64));
    return finish();
}
