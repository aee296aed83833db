// sm_80: printf, assert, alloca, loops that stay, virtual calls, recursion.
#include <cassert>
#include <cstdio>

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Disc : Shape {
    float radius;
    __device__ explicit Disc(float r) : radius(r) {}
    __device__ float area() const override { return 3.14159265f * radius * radius; }
};

__device__ int depth(int n) { return n <= 1 ? 1 : n * depth(n - 1) + depth(n - 2); }

__global__ void report(float* out, int count) {
    assert(count > 0 && "count is positive; {braces} and \"quotes\"");
    Square square(count);
    Disc disc(count);
    const Shape* shape = threadIdx.x & 1 ? static_cast<const Shape*>(&square) : &disc;
    float sum = 0;
#pragma unroll 1
    for (int i = 0; i < count; ++i) sum += shape->area();
    printf("thread %d: %f // not a comment }\n", threadIdx.x, sum);
    char* room = static_cast<char*>(alloca(count));
    room[threadIdx.x % count] = 1;
    out[threadIdx.x] = sum + depth(count) + room[0];
}
