// sm_90: half precision and tensor cores.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

__global__ void axpy(__half2 a, const __half2* x, __half2* y, __nv_bfloat16* z) {
    int i = threadIdx.x;
    y[i] = __hfma2(a, x[i], y[i]);
    z[i] = __float2bfloat16(__half2float(__low2half(y[i])) * 2.0f);
}

__global__ void fragments(const __half* a, const __half* b, float* c) {
    using namespace nvcuda::wmma;
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, col_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    load_matrix_sync(left, a, 16);
    load_matrix_sync(right, b, 16);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(c, sum, 16, mem_row_major);
}
