/* The same work as some of the kernels, on one thread of the host: reference NAME [SIZE].
 * Prints the best seconds of three runs, and one result. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

static float *floats(size_t count)
{
    float *values = malloc(count * sizeof *values);
    for (size_t k = 0; k < count; ++k) {
        values[k] = (float)(k * 2654435761u % 1000) / 1000.0f;
    }
    return values;
}

/* As each thread of the naive kernel does it: one dot product after another. */
static void gemm(const float *a, const float *b, float *c, int n)
{
    for (int row = 0; row < n; ++row) {
        for (int col = 0; col < n; ++col) {
            float sum = 0.0f;
            for (int k = 0; k < n; ++k) {
                sum += a[row * n + k] * b[k * n + col];
            }
            c[row * n + col] = sum;
        }
    }
}

/* Tiles of 32, the inner loop along memory, so that the compiler can use vectors. */
static void gemm_tiled(const float *a, const float *b, float *c, int n)
{
    memset(c, 0, sizeof *c * n * n);
    for (int row0 = 0; row0 < n; row0 += 32) {
        for (int k0 = 0; k0 < n; k0 += 32) {
            for (int col0 = 0; col0 < n; col0 += 32) {
                for (int row = row0; row < row0 + 32; ++row) {
                    for (int k = k0; k < k0 + 32; ++k) {
                        for (int col = col0; col < col0 + 32; ++col) {
                            c[row * n + col] += a[row * n + k] * b[k * n + col];
                        }
                    }
                }
            }
        }
    }
}

static void vector_add(const float *restrict a, const float *restrict b, float *restrict c, int n)
{
    for (int k = 0; k < n; ++k) {
        c[k] = a[k] + b[k];
    }
}

static void nbody(const float *bodies, const float *unused, float *forces, int n)
{
    (void)unused;
    for (int i = 0; i < n; ++i) {
        const float *own = &bodies[4 * i];
        float fx = 0.0f, fy = 0.0f, fz = 0.0f;
        for (int k = 0; k < n; ++k) {
            const float *other = &bodies[4 * k];
            const float dx = other[0] - own[0], dy = other[1] - own[1], dz = other[2] - own[2];
            const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
            const float pull = other[3] * inverse * inverse * inverse;
            fx += dx * pull;
            fy += dy * pull;
            fz += dz * pull;
        }
        forces[4 * i] = fx, forces[4 * i + 1] = fy, forces[4 * i + 2] = fz;
    }
}

static void mandelbrot(const float *unused, const float *unused2, float *counts, int n)
{
    (void)unused, (void)unused2;
    for (int y = 0; y < n; ++y) {
        for (int x = 0; x < n; ++x) {
            const float cx = -2.0f + 2.5f * x / n, cy = -1.25f + 2.5f * y / n;
            float zx = 0.0f, zy = 0.0f;
            int step = 0;
            while (step < 256 && zx * zx + zy * zy < 4.0f) {
                const float next = zx * zx - zy * zy + cx;
                zy = 2.0f * zx * zy + cy;
                zx = next;
                ++step;
            }
            counts[y * n + x] = (float)step;
        }
    }
}

static const struct {
    const char *name;
    void (*run)(const float *, const float *, float *, int);
    int squared; /* whether the arrays have n * n elements */
} WORK[] = {
    {"gemm", gemm, 1},         {"gemm_tiled", gemm_tiled, 1}, {"vector_add", vector_add, 0},
    {"nbody", nbody, 0},       {"mandelbrot", mandelbrot, 1},
};

int main(int argc, char **argv)
{
    const int n = argc == 3 ? atoi(argv[2]) : 0;
    for (size_t k = 0; n > 0 && k < sizeof WORK / sizeof *WORK; ++k) {
        if (strcmp(argv[1], WORK[k].name) != 0) {
            continue;
        }
        const size_t count = WORK[k].squared ? (size_t)n * n : 4 * (size_t)n;
        float *a = floats(count), *b = floats(count), *c = floats(count);
        double best = 1e30;
        for (int run = 0; run < 3; ++run) {
            const double begun = now();
            WORK[k].run(a, b, c, n);
            const double took = now() - begun;
            best = took < best ? took : best;
        }
        printf("%.6f %g\n", best, (double)c[count / 2]);
        free(a), free(b), free(c);
        return 0;
    }
    fprintf(stderr, "usage: reference gemm|gemm_tiled|vector_add|nbody|mandelbrot SIZE\n");
    return 2;
}
