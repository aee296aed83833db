// C++ in kernels: templates, namespaces, overloads, lambdas, functors, constexpr tables, packs.
#include "corpus.h"

template <class T, int kTimes> __global__ void repeat(const T *in, T *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    T value = in[i];
#pragma unroll
    for (int k = 0; k < kTimes; ++k) value = value * T(3) + T(k);
    out[i] = value;
}

namespace outer::inner {
struct Affine {
    float scale, offset;
    __device__ float operator()(float x) const { return scale * x + offset; }
};

template <class Function> __global__ void apply(Function function, const float *in, float *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = function(in[i]);
}
}  // namespace outer::inner

__global__ void overloaded(int *out) { out[threadIdx.x] = threadIdx.x * 2; }
__global__ void overloaded(float *out) { out[threadIdx.x] = threadIdx.x * 0.5f; }

__global__ void with_lambda(const int *in, int *out)
{
    const int i = threadIdx.x;
    auto twice = [](auto f, int x) { return f(f(x)); };
    const int bias = in[i];
    out[i] = twice([bias](int x) { return x * 3 - bias; }, i);
}

struct Table { int squares[16]; };
constexpr Table squares_of()
{
    Table table{};
    for (int k = 0; k < 16; ++k) table.squares[k] = k * k;
    return table;
}
__constant__ constexpr Table squares = squares_of();

template <int... kWeights> __global__ void weighted(int *out)
{
    const int i = threadIdx.x;
    int sum = 0, at = 0;
    ((sum += kWeights * squares.squares[(i + at++) & 15]), ...);
    out[i] = sum;
}

struct Shape {
    __device__ virtual int area() const = 0;
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int s) : side(s) {}
    __device__ int area() const override { return side * side; }
};
struct Strip : Shape {
    int length;
    __device__ explicit Strip(int n) : length(n) {}
    __device__ int area() const override { return length + 1; }
};

__device__ __noinline__ int area_of(const Shape &shape) { return shape.area(); }

__global__ void virtual_calls(int *out)
{
    const int i = threadIdx.x;
    const Square square(i);
    const Strip strip(i);
    out[i] = area_of(i % 3 ? static_cast<const Shape &>(square) : strip);
}

int main()
{
    repeat<int, 5><<<2, 64>>>(below(1000, 128), zeros<int>(128));
    repeat<float, 2><<<2, 48>>>(sixteenths(96), zeros<float>(96));
    outer::inner::apply<<<2, 64>>>(outer::inner::Affine{2.5f, -1}, sixteenths(128),
                                   zeros<float>(128));
    overloaded<<<1, 32>>>(zeros<int>(32));
    overloaded<<<1, 32>>>(zeros<float>(32));
    with_lambda<<<1, 64>>>(below(9, 64), zeros<int>(64));
    weighted<1, -2, 3, -4><<<1, 40>>>(zeros<int>(40));
    virtual_calls<<<1, 64>>>(zeros<int>(64));
    return finish();
}
