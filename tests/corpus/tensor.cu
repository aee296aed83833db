// Tensor cores: wmma of half, bfloat16, int8 and double, mma.sync with ldmatrix by inline asm.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include "corpus.h"

namespace wmma = nvcuda::wmma;

__global__ void wmma_half(const __half *a, const __half *b, float *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.5f);
    for (int k = 0; k < 64; k += 16) {
        wmma::load_matrix_sync(left, a + k, 64);
        wmma::load_matrix_sync(right, b + k, 64);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

__global__ void wmma_half_sums(const __half *a, const __half *b, __half *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::fill_fragment(sum, __float2half(0.0f));
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    for (int k = 0; k < sum.num_elements; ++k) sum.x[k] = __hadd(sum.x[k], sum.x[k]);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

__global__ void wmma_bytes(const signed char *a, const signed char *b, int *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 3);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

__global__ void wmma_bfloat(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

__global__ void wmma_doubles(const double *a, const double *b, double *c)
{
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::fill_fragment(sum, 0.0);
    for (int k = 0; k < 16; k += 4) {
        wmma::load_matrix_sync(left, a + k, 16);
        wmma::load_matrix_sync(right, b + k, 16);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}

__global__ void mma_with_ldmatrix(const __half *a, const __half *b, float *c)
{
    __shared__ __align__(16) __half tile_a[16 * 16], tile_b[8 * 16];
    const int lane = threadIdx.x;
    for (int k = lane; k < 256; k += 32) tile_a[k] = a[k];
    for (int k = lane; k < 128; k += 32) tile_b[k] = b[k];
    __syncwarp();
    unsigned ra[4], rb[2];
    float rc[4] = {0, 0, 0, 0};
    const unsigned at_a = static_cast<unsigned>(
        __cvta_generic_to_shared(&tile_a[(lane % 16) * 16 + (lane / 16) * 8]));
    const unsigned at_b = static_cast<unsigned>(
        __cvta_generic_to_shared(&tile_b[(lane % 8) * 16 + (lane / 8 % 2) * 8]));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(at_a));
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(rb[0]), "=r"(rb[1]) : "r"(at_b));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n"
                 "    {%0, %1, %2, %3},\n"
                 "    {%4, %5, %6, %7},\n"
                 "    {%8, %9},\n"
                 "    {%0, %1, %2, %3};"
                 : "+f"(rc[0]), "+f"(rc[1]), "+f"(rc[2]), "+f"(rc[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
    const int row = lane / 4, column = lane % 4 * 2;
    c[row * 8 + column] = rc[0];
    c[row * 8 + column + 1] = rc[1];
    c[(row + 8) * 8 + column] = rc[2];
    c[(row + 8) * 8 + column + 1] = rc[3];
}

__global__ void ldmatrix_transposed(const unsigned short *in, unsigned *out)
{
    __shared__ __align__(16) unsigned short tile[64];
    const int lane = threadIdx.x;
    tile[lane] = in[lane];
    tile[lane + 32] = in[lane + 32];
    __syncwarp();
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&tile[lane % 8 * 8]));
    unsigned value;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(value) : "r"(at));
    out[lane] = value;
}

int main()
{
    const auto half = [](int k) { return __float2half(float(static_cast<int>(mixed(k) % 17u) - 8)); };
    const auto byte = [](int k) { return static_cast<signed char>(mixed(k)); };
    const auto whole = [](int k) { return double(static_cast<int>(mixed(k) % 999u) - 499); };
    wmma_half<<<1, 32>>>(filled<__half>(1024, half), filled<__half>(1024, half), zeros<float>(256));
    wmma_half_sums<<<1, 32>>>(filled<__half>(256, half), filled<__half>(256, half),
                              zeros<__half>(256));
    wmma_bytes<<<1, 32>>>(filled<signed char>(256, byte), filled<signed char>(256, byte),
                          zeros<int>(256));
    const auto bfloat = [](int k) { return __float2bfloat16(sixteenth(k)); };
    wmma_bfloat<<<1, 32>>>(filled<__nv_bfloat16>(256, bfloat), filled<__nv_bfloat16>(256, bfloat),
                           zeros<float>(256));
    wmma_doubles<<<1, 32>>>(filled<double>(128, whole), filled<double>(128, whole),
                            zeros<double>(64));
    mma_with_ldmatrix<<<1, 32>>>(filled<__half>(256, half), filled<__half>(128, half),
                                 zeros<float>(128));
    ldmatrix_transposed<<<1, 32>>>(filled<unsigned short>(64, [](int k) {
        return static_cast<unsigned short>(mixed(k));
    }), zeros<unsigned>(32));
    return finish();
}
