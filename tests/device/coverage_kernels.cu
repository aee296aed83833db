// Uses the device functions of CUDA's headers that translate to instructions of their own.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <mma.h>

namespace cg = cooperative_groups;
using namespace nvcuda;
#define KERNEL extern "C" __global__ void

KERNEL halves(__half* a, __half2* b, float* f, int* n) {
  int i = threadIdx.x;
  __half x = a[i], y = a[i + 32], z = a[i + 64];
  __half2 u = b[i], v = b[i + 32], w = b[i + 64];
  a[i] = __hadd(x, y) + __hsub_sat(x, y) * __hmul_rn(x, z) + __hfma(x, y, z) + __hfma_sat(x, y, z);
  a[i] += hexp2(x) + hlog(x) + hsqrt(x) + hrsqrt(y) + hsin(x) + hrcp(x) + __habs(x) + __hneg(y);
  a[i] += __hmax(x, y) + htrunc(x) + hfloor(y) + hrint(z) + hceil(x) + x / y + htanh(x);
  b[i] = __hadd2(u, v) + __hmul2_sat(u, v) * __hfma2(u, v, w) + h2exp2(u) + __habs2(u);
  b[i] += __hneg2(v) + __hmax2(u, v) + __hcmadd(u, v, w) + __heq2(u, v) + __hgtu2(u, w);
  n[i] = __heq(x, y) + __hlt(x, z) + __hisnan(x) + __hbeq2(u, v) + __hbltu2(u, v) + __hequ(x, y);
  n[i] += __hgt2_mask(u, v) + __half2int_rd(x) + __half2uint_ru(x) + __half2short_rn(y);
  n[i] += __half2ll_rz(z) + __half2ull_rn(x) + __half2uchar_rz(x) + __half_as_short(y);
  f[i] = __half2float(x) + __low2float(u) + __half22float2(v).x + (double)y;
  a[i + 96] = __float2half_rd(f[i]) + __float2half_rz(f[i]) + __double2half(f[i] * 2.0);
  a[i + 97] = __int2half_rn(i) + __uint2half_rz(i) + __ll2half_rn(i) + __ull2half_ru(i);
  b[i + 96] = __floats2half2_rn(f[i], f[i + 1]) + __shfl_xor_sync(~0u, u, 1);
  atomicAdd(&a[3], x);
  atomicAdd(&b[7], u);
#if __CUDA_ARCH__ >= 800
  a[i + 98] = __hfma_relu(x, y, z) + __hmin_nan(x, z) + htanh_approx(y);
  b[i + 97] = __hfma2_relu(u, v, w) + __hmin2_nan(u, w) + h2tanh_approx(u);
#endif
}

#if __CUDA_ARCH__ >= 800
KERNEL brains(__nv_bfloat16* a, __nv_bfloat162* b, float* f, int* n) {
  int i = threadIdx.x;
  __nv_bfloat16 x = a[i], y = a[i + 32], z = a[i + 64];
  __nv_bfloat162 u = b[i], v = b[i + 32], w = b[i + 64];
  a[i] = __hadd(x, y) + __hsub_sat(x, y) * __hmul(x, z) + __hfma(x, y, z) + __hfma_relu(x, y, z);
  a[i] += hexp2(x) + hlog(x) + hsqrt(x) + hsin(x) + hrcp(x) + __habs(x) + __hneg(y) + x / y;
  a[i] += __hmax(x, y) + __hmin_nan(x, z) + htrunc(x) + hrint(z) + htanh_approx(y);
  b[i] = __hadd2(u, v) + __hmul2_sat(u, v) * __hfma2(u, v, w) + __hfma2_relu(u, v, w) + h2exp2(u);
  b[i] += __habs2(u) + __hneg2(v) + __hmax2(u, v) + __hmin2_nan(u, w) + __heq2(u, v);
  n[i] = __heq(x, y) + __hlt(x, z) + __hisnan(x) + __hbeq2(u, v) + __hgt2_mask(u, v);
  n[i] += __bfloat162int_rd(x) + __bfloat162uint_ru(x) + __bfloat162short_rn(y);
  f[i] = __bfloat162float(x) + __low2float(u);
  a[i + 96] = __float2bfloat16_rd(f[i]) + __float2bfloat16_rz(f[i]) + __double2bfloat16(f[i] * 2.0);
  a[i + 97] = __int2bfloat16_rn(i) + __ll2bfloat16_rn(i) + __short2bfloat16_rd(i);
  b[i + 96] = __floats2bfloat162_rn(f[i], f[i + 1]) + __shfl_xor_sync(~0u, u, 1);
  atomicAdd(&a[3], x);
  atomicAdd(&b[7], u);
}
#endif

KERNEL eighths(__nv_fp8_e4m3* a, __nv_fp8_e5m2* b, float* f, float2* g, __half2* h) {
  int i = threadIdx.x;
  a[i] = __nv_fp8_e4m3(f[i]);
  b[i] = __nv_fp8_e5m2(f[i + 1]);
  f[i] = float(a[i + 1]) + float(b[i + 2]);
  g[i] = float2(__nv_fp8x2_e4m3(g[i]));
  h[i] = __half2(__nv_fp8x2_e5m2(h[i]));
}

KERNEL floats(float* f, double* d) {
  int i = threadIdx.x;
  float x = f[i], y = f[i + 32], z = f[i + 64];
  double p = d[i], q = d[i + 32], r = d[i + 64];
  f[i] = __fadd_rd(x, y) + __fsub_rz(x, z) + __fmul_ru(x, y) + __fmaf_rz(x, y, z) + __fdiv_rd(x, y);
  f[i] += __fsqrt_ru(x) + __frcp_rz(x) + __fdividef(x, y) + __expf(x) + __logf(y) + __sinf(z);
  f[i] += __tanf(x) + __powf(x, y) + __saturatef(x) + __frsqrt_rn(x) + sinf(x) + expf(y) + logf(z);
  f[i] += powf(x, y) + tanhf(x) + erff(y) + rsqrtf(z) + cbrtf(x) + fmodf(x, y) + rintf(y);
  f[i] += copysignf(x, y) + fdimf(x, y) + ldexpf(x, i) + fminf(x, y) + fmaxf(y, z);
  d[i] = __dadd_rd(p, q) + __dmul_rz(p, r) + __fma_ru(p, q, r) + __ddiv_rd(p, q) + __dsqrt_ru(p);
  d[i] += __drcp_rz(p) + exp(q) + log(r) + rsqrt(q) + fmod(p, q) + rint(q) + floor(r);
  d[i + 1] = __ll2double_rd((long long)p) + __double2float_rd(p) + __double2float_rz(q);
}

KERNEL integers(int* n, unsigned* u, long long* l, unsigned long long* w, float* f) {
  int i = threadIdx.x;
  n[i] = __float2int_rd(f[i]) + __mul24(i, n[i]) + __mulhi(i, n[i]) + __sad(i, n[i], u[i]);
  n[i] += __popc(i) + __clz(n[i]) + __ffs(n[i]) + __brev(i) + __byte_perm(i, n[i], u[i]);
  n[i] += __funnelshift_l(i, n[i], u[i]) + __dp4a(i, n[i], 3) + __dp2a_lo(i, n[i], 3);
  n[i] += __dp2a_hi(u[i], u[i + 1], 3u) + __rhadd(i, n[i]) + __fns(u[i], 3, 2);
  u[i] = __vadd4(u[i], u[i + 1]) + __vabsdiffu4(u[i], u[i + 2]) + __vsadu4(u[i], u[i + 3]);
  u[i] += __vmaxs4(u[i], u[i + 4]) + __vcmpeq4(u[i], u[i + 5]) + __vavgu4(u[i], u[i + 6]);
  u[i] += __vadd2(u[i], u[i + 7]) + __vminu2(u[i], u[i + 8]) + __vsetgts2(u[i], u[i + 9]);
  u[i] += __viaddmax_s32(n[i], n[i + 1], 4) + __vimin_s32_relu(n[i], n[i + 1]);
  u[i] += __viaddmin_u16x2(u[i], u[i + 1], u[i + 2]) + __vimax3_s16x2(u[i], u[i + 1], u[i + 2]);
  l[i] = l[i] / l[i + 1] + l[i + 2] % l[i + 3] + __mul64hi(l[i], l[i + 1]) + __popcll(l[i]);
  __int128 wide = (__int128)l[i] * l[i + 1] + l[i + 2];
  l[i + 4] = (wide >> 64) + __clzll(l[i]) + __brevll(l[i]);
  w[i] = __umul64hi(w[i], w[i + 1]) + atomicMax(&w[8], w[i]) + atomicAnd(&w[9], 3ull);
  w[i] += atomicCAS(&w[2], 3ull, 4ull) + atomicExch(&w[3], 5ull) + atomicMin(&l[8], l[i]);
  u[5] = atomicDec(&u[4], 9) + atomicInc(&u[3], 7);
  atomicAdd_block(&n[3], 4);
  atomicAdd_system(&n[4], 5);
  unsigned short half = u[i];
  atomicCAS((unsigned short*)&n[9], half, (unsigned short)3);
  f[i] = __ldg(&f[7]) + __ldcg(&f[8]) + __ldcs(&f[9]) + __ldlu(&f[10]) + __ldcv(&f[11]);
  __stcg(&f[3], f[i]);
  __stcs(&f[4], f[i]);
  __stwt(&f[5], f[i]);
}

KERNEL warps(int* n, unsigned* u, float* f) {
  int i = threadIdx.x;
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  n[i] = cg::reduce(warp, n[i], cg::plus<int>()) + cg::reduce(tile, n[i], cg::greater<int>());
  n[i] += cg::inclusive_scan(warp, n[i]) + warp.shfl_down(n[i], 3) + warp.match_any(n[i]);
  f[i] = cg::reduce(warp, f[i], cg::plus<float>());
  auto some = cg::coalesced_threads();
  if (i % 3) {
    auto fewer = cg::coalesced_threads();
    atomicAdd(&n[5], fewer.shfl(i, 0) + some.size());
  }
  auto labelled = cg::labeled_partition(warp, i % 4);
  n[i + 3] = labelled.size() + cg::reduce(labelled, i, cg::plus<int>());
  u[i] = __match_any_sync(~0u, u[i]) + __activemask() + __ballot_sync(~0u, i & 1);
#if __CUDA_ARCH__ >= 800
  u[i] += __reduce_add_sync(~0u, u[i]) + __reduce_max_sync(~0u, n[i]) + __reduce_xor_sync(~0u, u[i]);
#endif
  int all;
  u[i + 4] = __match_all_sync(~0u, n[i], &all) + all;
  __nanosleep(20);
  __threadfence_system();
  if (__syncthreads_or(i)) u[3] = __syncthreads_count(i & 1) + __syncthreads_and(i);
  u[i + 1] = clock() + (unsigned)clock64() + __isGlobal(u) + __isShared(u) + __isLocal(u);
  __shared__ int copied[64];
  cg::memcpy_async(block, copied, n, 64 * 4);
  cg::wait(block);
  n[i + 9] = copied[i];
}

KERNEL pipeline(float4* g, float* out) {
  __shared__ float4 s[64];
  int i = threadIdx.x;
  __pipeline_memcpy_async(&s[i], &g[i], 16);
  __pipeline_memcpy_async((float2*)&s[i + 32], (float2*)&g[i], 8, 4);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[i] = s[i].x;
}

template <class T, class A, int M, int N, int K>
__device__ void product(const T* a, const T* b, A* c) {
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::row_major> rows;
  wmma::fragment<wmma::matrix_a, M, N, K, T, wmma::col_major> turned;
  wmma::fragment<wmma::matrix_b, M, N, K, T, wmma::col_major> columns;
  wmma::fragment<wmma::accumulator, M, N, K, A> sum;
  wmma::load_matrix_sync(rows, a, K);
  wmma::load_matrix_sync(turned, a, M);
  wmma::load_matrix_sync(columns, b, K);
  wmma::load_matrix_sync(sum, c, M, wmma::mem_col_major);
  wmma::mma_sync(sum, rows, columns, sum);
  wmma::mma_sync(sum, turned, columns, sum);
  wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
}

KERNEL matrices(half* h, float* f, signed char* c, unsigned char* uc, int* n, half* o) {
  product<half, float, 16, 16, 16>(h, h + 256, f);
  product<half, half, 32, 8, 16>(h, h + 512, o);
  product<half, float, 8, 32, 16>(h, h + 512, f);
  product<signed char, int, 16, 16, 16>(c, c + 256, n);
  product<unsigned char, int, 32, 8, 16>(uc, uc + 256, n);
}

#if __CUDA_ARCH__ >= 800
KERNEL more_matrices(__nv_bfloat16* h, float* f, double* d) {
  product<__nv_bfloat16, float, 16, 16, 16>(h, h + 256, f);
  product<double, double, 8, 8, 4>(d, d + 32, d + 64);
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> c;
  wmma::fill_fragment(c, 0.f);
  wmma::load_matrix_sync(a, f, 8);
  wmma::load_matrix_sync(b, f + 128, 8);
  for (float& x : a.x) x = wmma::__float_to_tf32(x);
  wmma::mma_sync(c, a, b, c);
  wmma::store_matrix_sync(f + 256, c, 16, wmma::mem_row_major);
}
#endif
