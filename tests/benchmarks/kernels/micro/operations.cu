// Latency and throughput of single instructions, one line "name value unit" each.
//
// Latency: one warp runs a chain in which x and y are each other's operand. Throughput: 1024
// threads of one block run four such chains each, as lanes per cycle of one SM.
#include <string>

#include "micro.cuh"

constexpr int PAIRS = 32, ROUNDS = 16;

template <typename Op, typename T> __global__ void latency(long long *cycles, T *sink, T x, T y)
{
    long long begin = 0;
    for (int round = -1; round < ROUNDS; ++round) {
        if (round == 0) {  // the first round fills the instruction cache
            begin = clock64();
        }
#pragma unroll
        for (int k = 0; k < PAIRS; ++k) {
            Op::run(x, y);
            Op::run(y, x);
        }
    }
    cycles[threadIdx.x / 32] = clock64() - begin;
    sink[threadIdx.x] = x + y;
}

template <typename Op, typename T> __global__ void throughput(long long *cycles, T *sink, T x, T y)
{
    T a[4], b[4];
    for (int k = 0; k < 4; ++k) {
        a[k] = x + T(k), b[k] = y + T(k);
    }
    __shared__ long long first, last;
    if (threadIdx.x == 0) {
        first = 1ll << 62, last = 0;
    }
    long long begin = 0;
    for (int round = -1; round < ROUNDS; ++round) {
        if (round == 0) {
            __syncthreads();
            begin = clock64();
        }
#pragma unroll
        for (int k = 0; k < PAIRS / 4; ++k) {
#pragma unroll
            for (int chain = 0; chain < 4; ++chain) {
                Op::run(a[chain], b[chain]);
            }
#pragma unroll
            for (int chain = 0; chain < 4; ++chain) {
                Op::run(b[chain], a[chain]);
            }
        }
    }
    const long long end = clock64();
    atomicMin(&first, begin);
    atomicMax(&last, end);
    __syncthreads();
    cycles[0] = last - first;
    T sum = 0;
    for (int k = 0; k < 4; ++k) {
        sum += a[k] + b[k];
    }
    sink[threadIdx.x] = sum;
}

#define OPERATION(name, type, constraint, text)                                      \
    struct name {                                                                    \
        using T = type;                                                              \
        static __device__ void run(T &x, const T &y)                                 \
        {                                                                            \
            asm volatile(text : "+" constraint(x) : constraint(y));                  \
        }                                                                            \
    };

OPERATION(alu_add, int, "r", "add.s32 %0, %0, %1;")
OPERATION(alu_min, int, "r", "min.s32 %0, %1, %0;")
OPERATION(alu_lop3, int, "r", "lop3.b32 %0, %0, %1, 0x5a5a, 0x6a;")
OPERATION(alu_shift, int, "r", "shf.l.wrap.b32 %0, %0, %1, 7;")
OPERATION(alu_shl, int, "r", "{ .reg .b32 t; and.b32 t, %1, 7; shl.b32 %0, %0, t; }")
OPERATION(alu_select, int, "r", "{ .reg .pred p; setp.lt.s32 p, %0, %1; selp.b32 %0, %1, %0, p; }")
OPERATION(alu_add64, long long, "l", "add.s64 %0, %0, %1;")
OPERATION(alu_prmt, int, "r", "prmt.b32 %0, %0, %1, 0x3514;")
OPERATION(alu_bfe, int, "r", "bfe.u32 %0, %1, 3, 20;")
OPERATION(alu_bfi, int, "r", "bfi.b32 %0, %1, %0, 3, 20;")
OPERATION(multiply_mad, int, "r", "mad.lo.s32 %0, %0, %1, 12345;")
OPERATION(multiply_wide, long long, "l",
          "{ .reg .b32 a, b; mov.b64 {a, b}, %1; mul.wide.s32 %0, a, b; }")
OPERATION(multiply_hi, int, "r", "mul.hi.s32 %0, %0, %1;")
OPERATION(multiply_64, long long, "l", "mul.lo.s64 %0, %0, %1;")
OPERATION(fp32_fma, float, "f", "fma.rn.f32 %0, %0, %1, %0;")
OPERATION(fp32_add, float, "f", "add.rn.f32 %0, %0, %1;")
OPERATION(fp32_min, float, "f", "min.f32 %0, %1, %0;")
OPERATION(fp32_select, float, "f",
          "{ .reg .pred p; setp.lt.f32 p, %0, %1; selp.f32 %0, %1, %0, p; }")
OPERATION(fp16_fma2, int, "r", "fma.rn.f16x2 %0, %0, %1, %0;")
OPERATION(fp64_fma, double, "d", "fma.rn.f64 %0, %0, %1, %0;")
OPERATION(fp64_add, double, "d", "add.rn.f64 %0, %0, %1;")
OPERATION(fp64_select, double, "d",
          "{ .reg .pred p; setp.lt.f64 p, %0, %1; selp.f64 %0, %1, %0, p; }")
OPERATION(mufu_ex2, float, "f", "ex2.approx.ftz.f32 %0, %1;")
OPERATION(mufu_lg2, float, "f", "lg2.approx.ftz.f32 %0, %1;")
OPERATION(mufu_rcp, float, "f", "rcp.approx.ftz.f32 %0, %1;")
OPERATION(mufu_rsqrt, float, "f", "rsqrt.approx.ftz.f32 %0, %1;")
OPERATION(mufu_sin, float, "f", "sin.approx.ftz.f32 %0, %1;")
OPERATION(mufu_rsqrt_denormal, float, "f", "rsqrt.approx.f32 %0, %1;")
OPERATION(software_div_f32, float, "f", "div.rn.f32 %0, %0, %1;")
OPERATION(software_div_approx_f32, float, "f", "div.approx.f32 %0, %0, %1;")
OPERATION(software_div_full_f32, float, "f", "div.full.f32 %0, %0, %1;")
OPERATION(software_rcp_f32, float, "f", "rcp.rn.f32 %0, %1;")
OPERATION(software_sqrt_f32, float, "f", "sqrt.rn.f32 %0, %1;")
OPERATION(software_div_f64, double, "d", "div.rn.f64 %0, %0, %1;")
OPERATION(software_sqrt_f64, double, "d", "sqrt.rn.f64 %0, %1;")
OPERATION(software_div_s32, int, "r", "div.s32 %0, %0, %1;")
OPERATION(software_div_u32, unsigned, "r", "div.u32 %0, %0, %1;")
OPERATION(software_rem_u32, unsigned, "r", "rem.u32 %0, %0, %1;")
OPERATION(software_div_u64, unsigned long long, "l", "div.u64 %0, %0, %1;")
OPERATION(software_rem_u64, unsigned long long, "l", "rem.u64 %0, %0, %1;")
OPERATION(bits_popc, int, "r", "popc.b32 %0, %1;")
OPERATION(bits_clz, int, "r", "clz.b32 %0, %1;")
OPERATION(bits_brev, int, "r", "brev.b32 %0, %1;")
OPERATION(bits_bfind, int, "r", "bfind.u32 %0, %1;")
OPERATION(convert_f32_s32, int, "r",
          "{ .reg .f32 t; cvt.rn.f32.s32 t, %1; cvt.rzi.s32.f32 %0, t; }")
OPERATION(convert_f16_f32, float, "f", "{ .reg .b16 t; cvt.rn.f16.f32 t, %1; cvt.f32.f16 %0, t; }")
OPERATION(convert_f64_s32, int, "r",
          "{ .reg .f64 t; cvt.rn.f64.s32 t, %1; cvt.rzi.s32.f64 %0, t; }")
OPERATION(convert_f64_f32, float, "f", "{ .reg .f64 t; cvt.f64.f32 t, %1; cvt.rn.f32.f64 %0, t; }")
OPERATION(special_smid, int, "r", "{ .reg .b32 t; mov.u32 t, %%smid; add.s32 %0, %1, t; }")
OPERATION(special_clock, int, "r", "{ .reg .b32 t; mov.u32 t, %%clock; add.s32 %0, %1, t; }")
OPERATION(special_globaltimer, int, "r",
          "{ .reg .b32 t; mov.u32 t, %%globaltimer_lo; add.s32 %0, %1, t; }")
OPERATION(shuffle_bfly, int, "r", "shfl.sync.bfly.b32 %0, %1, 5, 31, -1;")
OPERATION(shuffle_idx, int, "r", "shfl.sync.idx.b32 %0, %1, %0, 31, -1;")
OPERATION(vote_ballot, int, "r",
          "{ .reg .pred p; setp.gt.s32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1; }")
OPERATION(vote_match_any, int, "r", "match.any.sync.b32 %0, %1, -1;")
OPERATION(vote_redux_add, int, "r", "redux.sync.add.s32 %0, %1, -1;")
OPERATION(vote_activemask, int, "r", "{ .reg .b32 t; activemask.b32 t; add.s32 %0, %1, t; }")
OPERATION(warp_barrier, int, "r", "bar.warp.sync -1; add.s32 %0, %0, %1;")
OPERATION(block_barrier, int, "r", "bar.sync 0; add.s32 %0, %0, %1;")
OPERATION(fence_gpu, int, "r", "membar.gl; add.s32 %0, %0, %1;")
OPERATION(fence_block, int, "r", "membar.cta; add.s32 %0, %0, %1;")
OPERATION(matrix_m16n8k16, float, "f",
          "{ .reg .f32 a, b, c; .reg .b32 z; mov.b32 z, %1;"
          " mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, a, b, c}, {z, z, z, z},"
          " {z, z}, {%0, %0, %0, %0}; }")
OPERATION(matrix_tf32_m16n8k8, float, "f",
          "{ .reg .f32 a, b, c; .reg .b32 z; mov.b32 z, %1;"
          " mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, a, b, c}, {z, z, z, z},"
          " {z, z}, {%0, %0, %0, %0}; }")

template <typename Op> void measure(const char *name)
{
    using T = typename Op::T;
    long long *cycles;
    T *sink;
    CHECK(cudaMalloc(&cycles, 32 * sizeof(long long)));
    CHECK(cudaMalloc(&sink, 1024 * sizeof(T)));
    const T x = T(3), y = T(7);
    const double steps = 2.0 * PAIRS * ROUNDS;
    latency<Op, T><<<1, 32>>>(cycles, sink, x, y);
    say((std::string("latency.") + name).c_str(), fetch(cycles) / steps, "cycles");
    throughput<Op, T><<<1, 1024>>>(cycles, sink, x, y);
    say((std::string("throughput.") + name).c_str(), 1024.0 * steps / fetch(cycles), "lanes/cycle");
    CHECK(cudaFree(cycles));
    CHECK(cudaFree(sink));
}

template <int WARPS> void measure_barrier()
{
    long long *cycles;
    int *sink;
    CHECK(cudaMalloc(&cycles, 32 * sizeof(long long)));
    CHECK(cudaMalloc(&sink, 1024 * sizeof(int)));
    latency<block_barrier, int><<<1, 32 * WARPS>>>(cycles, sink, 3, 7);
    const std::string name = "latency.block_barrier_" + std::to_string(WARPS);
    say(name.c_str(), fetch(cycles) / (2.0 * PAIRS * ROUNDS), "cycles");
    CHECK(cudaFree(cycles));
    CHECK(cudaFree(sink));
}

#define MEASURE(name) measure<name>(#name);

int main()
{
    MEASURE(alu_add) MEASURE(alu_min) MEASURE(alu_lop3) MEASURE(alu_shift) MEASURE(alu_shl)
    MEASURE(alu_select) MEASURE(alu_add64) MEASURE(alu_prmt) MEASURE(alu_bfe) MEASURE(alu_bfi)
    MEASURE(multiply_mad) MEASURE(multiply_wide) MEASURE(multiply_hi) MEASURE(multiply_64)
    MEASURE(fp32_fma) MEASURE(fp32_add) MEASURE(fp32_min) MEASURE(fp32_select) MEASURE(fp16_fma2)
    MEASURE(fp64_fma) MEASURE(fp64_add) MEASURE(fp64_select) MEASURE(mufu_ex2) MEASURE(mufu_lg2)
    MEASURE(mufu_rcp) MEASURE(mufu_rsqrt) MEASURE(mufu_sin) MEASURE(mufu_rsqrt_denormal)
    MEASURE(software_div_f32) MEASURE(software_div_approx_f32) MEASURE(software_div_full_f32)
    MEASURE(software_rcp_f32) MEASURE(software_sqrt_f32) MEASURE(software_div_f64)
    MEASURE(software_sqrt_f64) MEASURE(software_div_s32) MEASURE(software_div_u32)
    MEASURE(software_rem_u32) MEASURE(software_div_u64) MEASURE(software_rem_u64)
    MEASURE(bits_popc) MEASURE(bits_clz) MEASURE(bits_brev) MEASURE(bits_bfind)
    MEASURE(convert_f32_s32) MEASURE(convert_f16_f32) MEASURE(convert_f64_s32)
    MEASURE(convert_f64_f32) MEASURE(special_smid) MEASURE(special_clock)
    MEASURE(special_globaltimer) MEASURE(shuffle_bfly) MEASURE(shuffle_idx) MEASURE(vote_ballot)
    MEASURE(vote_match_any) MEASURE(vote_redux_add) MEASURE(vote_activemask) MEASURE(warp_barrier)
    MEASURE(fence_gpu) MEASURE(fence_block) MEASURE(matrix_m16n8k16) MEASURE(matrix_tf32_m16n8k8)
    measure_barrier<1>();
    measure_barrier<4>();
    measure_barrier<8>();
    measure_barrier<16>();
    measure_barrier<32>();
    return 0;
}
