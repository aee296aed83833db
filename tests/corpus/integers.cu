// Integers: division, wide products, bit counts and fields, permutes, saturation, carry, SIMD words.
#include "corpus.h"

__global__ void division(const unsigned *x, int *out, long long *wide)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int a = static_cast<int>(x[i]), b = static_cast<int>(x[i] >> 20) - 2000;
    const int divisor = b ? b : 1;
    out[i] = a / divisor + a % divisor + a / 7 - a % 10;
    const long long c = static_cast<long long>(x[i]) * a + i;
    wide[i] = c / divisor + c % (divisor * 3ll) + static_cast<unsigned long long>(c) / 1000000007ull;
}

__global__ void products(const unsigned *x, unsigned long long *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned long long a = x[i] * 0x9e3779b97f4a7c15ull, b = x[i] + (a >> 7);
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + 12345;
    out[i] = __umul64hi(a, b) ^ __mul64hi(a, -b) ^ __umulhi(x[i], x[i] + 9) ^ __mulhi(-i, x[i])
             ^ static_cast<unsigned long long>(product >> 33) ^ __umul24(x[i], i) ^ __mul24(-5, i);
}

__global__ void bit_counts(const unsigned *x, int *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned value = x[i] >> (i % 32);
    const unsigned long long wide = static_cast<unsigned long long>(x[i]) << (i % 40);
    out[i] = __popc(value) + __clz(value) * 3 + __ffs(value) * 5 + __popcll(wide) * 7
             + __clzll(wide) * 11 + __ffsll(wide) * 13 + static_cast<int>(__brev(value))
             + static_cast<int>(__brevll(wide) >> 32);
}

__global__ void fields_and_permutes(const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned taken, put;
    int taken_signed;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(taken) : "r"(x[i]), "r"(i % 35), "r"(i % 33));
    asm("bfe.s32 %0, %1, %2, %3;" : "=r"(taken_signed) : "r"(x[i]), "r"(i % 31), "r"(i % 37));
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(put)
        : "r"(x[i] >> 3), "r"(x[i]), "r"(i % 32), "r"(i % 12));
    out[i] = taken ^ taken_signed ^ put ^ __byte_perm(x[i], ~x[i], 0x3175 + i)
             ^ __funnelshift_l(x[i], i, i % 40) ^ __funnelshift_r(x[i], i, i % 32)
             ^ __funnelshift_lc(x[i], i, i % 40);
}

__global__ void saturation_and_carry(const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int clipped, sum;
    unsigned low, high, rest, borrow, top;
    asm("add.sat.s32 %0, %1, %2;" : "=r"(clipped) : "r"(x[i]), "r"(x[i] / 2));
    asm("sub.sat.s32 %0, %1, %2;" : "=r"(sum) : "r"(x[i]), "r"(i * 100000000));
    asm("{ add.cc.u32 %0, %2, %3; addc.u32 %1, %4, 0; }" : "=r"(low), "=r"(high)
        : "r"(x[i]), "r"(0xc0000000u), "r"(i));
    asm("{ sub.cc.u32 %0, %2, %3; subc.u32 %1, %4, 1; }" : "=r"(rest), "=r"(borrow)
        : "r"(x[i]), "r"(0x70000000u), "r"(i));
    asm("{ .reg .u32 t; mad.lo.cc.u32 t, %1, %2, %3; madc.hi.u32 %0, %1, %2, t; }" : "=r"(top)
        : "r"(x[i]), "r"(x[i] + 77), "r"(i));
    out[i] = clipped ^ sum ^ low ^ (high << 3) ^ rest ^ (borrow << 5) ^ top;
}

__global__ void packed_bytes(const unsigned *x, unsigned *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned y = x[i] * 2654435761u;
    out[i] = __vadd4(x[i], y) ^ __vabsdiffu4(x[i], y) ^ __vmaxs2(x[i], y) ^ __vcmpgtu4(x[i], y)
             ^ __vavgu4(x[i], y) ^ __sad(x[i], y, i) ^ __usad(x[i], y, 3u)
             ^ __dp4a(static_cast<int>(x[i]), static_cast<int>(y), i)
             ^ __dp2a_lo(static_cast<int>(x[i]), static_cast<int>(y), 5);
}

__global__ void narrow_types(const unsigned char *x, const short *y, unsigned short *out, char *sign)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned char byte = x[i] * 3 + 1;
    const short word = y[i] * 5 - byte;
    out[i] = (byte << 4) ^ word;
    sign[i] = word < 0 ? -1 : byte > 128;
}

__global__ void shifts(const unsigned *x, long long *out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x, by = x[i] & 31;
    const int value = static_cast<int>(x[i]);
    unsigned clamped;
    asm("shl.b32 %0, %1, %2;" : "=r"(clamped) : "r"(value), "r"(x[i] & 63));
    out[i] = (value >> by) + (x[i] >> by) + (static_cast<long long>(value) << by)
             + ((static_cast<long long>(value) * 77777) >> (x[i] & 63)) + clamped;
}

__global__ void crc32(const unsigned char *bytes, unsigned *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned crc = ~0u;
    for (int k = 0; k < n; ++k) {
        crc ^= bytes[i * n + k];
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320u & -(crc & 1));
    }
    out[i] = ~crc;
}

int main()
{
    const auto byte = [](int k) { return static_cast<unsigned char>(mixed(k)); };
    division<<<2, 64>>>(patterns(128), zeros<int>(128), zeros<long long>(128));
    products<<<2, 64>>>(patterns(128), zeros<unsigned long long>(128));
    bit_counts<<<2, 64>>>(patterns(128), zeros<int>(128));
    fields_and_permutes<<<2, 64>>>(patterns(128), zeros<unsigned>(128));
    saturation_and_carry<<<2, 64>>>(patterns(128), zeros<unsigned>(128));
    packed_bytes<<<2, 64>>>(patterns(128), zeros<unsigned>(128));
    narrow_types<<<2, 64>>>(filled<unsigned char>(128, byte), filled<short>(128, [](int k) {
        return static_cast<short>(mixed(k) >> 16);
    }), zeros<unsigned short>(128), zeros<char>(128));
    shifts<<<2, 64>>>(patterns(128), zeros<long long>(128));
    crc32<<<2, 32>>>(filled<unsigned char>(64 * 16, byte), zeros<unsigned>(64), 16);
    return finish();
}
