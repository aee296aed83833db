// Lanes of a warp leave the loop at different times.
#include "bench.cuh"

__global__ void mandelbrot(int *counts, int width, int height, int most)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    const int y = blockIdx.y * blockDim.y + threadIdx.y;
    const float cx = -2.0f + 2.5f * x / width, cy = -1.25f + 2.5f * y / height;
    float zx = 0.0f, zy = 0.0f;
    int step = 0;
    while (step < most && zx * zx + zy * zy < 4.0f) {
        const float next = zx * zx - zy * zy + cx;
        zy = 2.0f * zx * zy + cy;
        zx = next;
        ++step;
    }
    counts[y * width + x] = step;
}

int main()
{
    const int width = 1024, height = 1024;
    mandelbrot<<<dim3(width / 32, height / 8), dim3(32, 8)>>>(zeros<int>(width * height), width,
                                                              height, 256);
    return finish();
}
