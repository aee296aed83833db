// sm_90a: wgmma, tensor copies, mbarriers, clusters, register reallocation.
#include <cstdint>

struct alignas(64) Descriptor {
    unsigned long long words[16];
};

__device__ uint32_t shared_address(const void* pointer) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred arrived;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 arrived, [%0], %1;\n"
        "@arrived bra done;\n"
        "bra again;\n"
        "done:\n"
        "}\n" ::"r"(barrier),
        "r"(parity)
        : "memory");
}

extern __shared__ __align__(128) unsigned char stage[];

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(256, 1)
    multiply(const __grid_constant__ Descriptor left, const __grid_constant__ Descriptor right,
             float* out, int steps) {
    __shared__ uint64_t full;
    uint32_t barrier = shared_address(&full), tile = shared_address(stage);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(1));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        asm volatile("prefetch.tensormap [%0];" ::"l"(&left));
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;");
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        uint32_t chosen;
        asm volatile(
            "{\n.reg .pred one;\nelect.sync _|one, 0xffffffff;\nselp.b32 %0, 1, 0, one;\n}"
            : "=r"(chosen));
        for (int k = 0; chosen && k < steps; ++k) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                         "r"(16384));
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                " [%0], [%1, {%2, %3}], [%4];" ::"r"(tile),
                "l"(&left), "r"(k * 64), "r"(blockIdx.x * 64), "r"(barrier)
                : "memory");
            asm volatile(
                "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
                ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4}], [%5], %6, %7;" ::"r"(
                    tile + 8192),
                "l"(&right), "r"(k * 64), "r"(0), "r"(1), "r"(barrier), "h"((uint16_t)3),
                "l"(0x12F0000000000000ull)
                : "memory");
            wait(barrier, k & 1);
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sum[4] = {};
    uint64_t a = tile >> 4, b = (tile + 8192) >> 4;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %6, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
        "{%0,   %1,   %2,   %3},"
        " %4,"
        " %5,"
        " p,   1,  1,  0,  0;\n"
        "}\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "l"(a), "l"(b), "r"(steps));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(0) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(tile),
                 "r"(__float_as_uint(sum[0])), "r"(__float_as_uint(sum[1])));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out),
                 "r"(tile), "r"(256)
                 : "memory");
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;" ::"l"(
                     out + 64),
                 "r"(tile)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;");
}

__global__ void __launch_bounds__(128, 2, 8) gather(const int* in, int* out) {
    __shared__ int box[128];
    uint32_t rank, remote;
    asm volatile("griddepcontrol.wait;");
    box[threadIdx.x] = in[threadIdx.x];
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(remote)
        : "r"(shared_address(box)), "r"(rank ^ 1));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(remote), "r"(box[threadIdx.x]));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(box)), "l"(in),
                 "r"(4));
    asm volatile("cp.async.commit_group;\n\tcp.async.wait_all;");
    asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(remote));
    asm volatile("griddepcontrol.launch_dependents;");
    out[threadIdx.x] = box[0];
}
