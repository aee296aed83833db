// Parameters: none, 8- and 16-bit scalars, vectors, structs small, large and nested, many.
#include "corpus.h"

__device__ unsigned counter_of_runs[64];

__global__ void no_parameters()
{
    counter_of_runs[threadIdx.x] = counter_of_runs[threadIdx.x] + threadIdx.x + 1;
}

__global__ void narrow_scalars(signed char a, unsigned char b, short c, unsigned short d, bool e,
                               char f, long long *out)
{
    const int i = threadIdx.x;
    out[i] = a * i + b * 3 + c - d + (e ? 1000000 : 0) + f * i;
}

__global__ void vectors(float4 a, short4 b, uchar3 c, double2 d, int3 e, float *out)
{
    const int i = threadIdx.x;
    const float all[] = {a.x, a.y, a.z, a.w, float(b.x), float(b.w), float(c.z), float(d.y),
                         float(e.z)};
    out[i] = all[0] * i + all[1] - all[2] * all[3] + all[4] + all[5] + all[6] + all[7] + all[8];
}

struct Tiny { signed char tag; short weight; };

__global__ void tiny_struct(Tiny tiny, int *out)
{
    out[threadIdx.x] = tiny.tag * 256 + tiny.weight + threadIdx.x;
}

struct Inner { char flag; double scale; unsigned short codes[5]; };
struct Outer { Inner first; int middle; Inner second[2]; float *target; unsigned char last; };

__global__ void nested_struct(Outer outer)
{
    const int i = threadIdx.x;
    const Inner &one = outer.second[i & 1];
    outer.target[i] = static_cast<float>(one.scale * one.codes[i % 5] + outer.first.flag
                                         + outer.middle + outer.last);
}

struct Wide { int values[300]; };

__global__ void wide_struct(const __grid_constant__ Wide wide, int *out)
{
    out[threadIdx.x] = wide.values[threadIdx.x * 7 % 300] - wide.values[299];
}

__global__ void many(int a, const int *in, double b, char c, int *out, long long d, float e,
                     short f, unsigned g, const int *more, unsigned char h, int i, double j)
{
    const int t = threadIdx.x;
    out[t] = a + in[t] + int(b) * c + int(d >> 3) - int(e) + f + int(g % 7) + more[t] * h + i
             + int(j);
}

int main()
{
    no_parameters<<<1, 64>>>();
    narrow_scalars<<<1, 40>>>(-3, 250, -31000, 65000, true, 'q', zeros<long long>(40));
    vectors<<<1, 64>>>(make_float4(1.5f, -2, 4, 0.25f), make_short4(1, 2, 3, -4),
                       make_uchar3(5, 6, 255), make_double2(0.5, -8.5), make_int3(7, 8, -9),
                       zeros<float>(64));
    tiny_struct<<<1, 33>>>(Tiny{-5, 1234}, zeros<int>(33));
    Outer outer = {{'a', 0.5, {1, 2, 3, 4, 5}}, -77, {{'b', 2.0, {6, 7, 8, 9, 10}},
                   {'c', -4.0, {11, 12, 13, 14, 65535}}}, zeros<float>(50), 200};
    nested_struct<<<1, 50>>>(outer);
    Wide wide;
    for (int k = 0; k < 300; ++k) wide.values[k] = static_cast<int>(mixed(k));
    wide_struct<<<1, 96>>>(wide, zeros<int>(96));
    many<<<1, 32>>>(1, below(100, 32), 2.75, -3, zeros<int>(32), 1ll << 36, -6.5f, -300, 4000000000u,
                    below(50, 32), 201, -9, 1e6);
    return finish();
}
