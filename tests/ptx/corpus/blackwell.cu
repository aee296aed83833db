// sm_100a: tensor memory, its matrix product, packed f32, wide loads.
#include <cstdint>

__global__ void __launch_bounds__(128) tensor(float* out, const float4* in, uint64_t a, uint64_t b) {
    __shared__ uint32_t base;
    __shared__ uint64_t ready;
    uint32_t slot = static_cast<uint32_t>(__cvta_generic_to_shared(&base));
    uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&ready));
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" ::"r"(slot));
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    __syncthreads();
    uint32_t place = base, got[4];
    asm volatile(
        "{\n\t.reg .pred p;\n\t"
        "setp.ne.b32 p, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}" ::"r"(place),
        "l"(a), "l"(b), "r"(0), "r"(threadIdx.x));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
        barrier));
    asm volatile("tcgen05.fence::after_thread_sync;");
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(got[0]), "=r"(got[1]), "=r"(got[2]), "=r"(got[3])
                 : "r"(place));
    asm volatile("tcgen05.wait::ld.sync.aligned;");
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(place), "r"(got[0]));
    asm volatile("tcgen05.wait::st.sync.aligned;");
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" ::"r"(place));
    float wide[8];
    asm volatile("ld.global.v8.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
                 : "=f"(wide[0]), "=f"(wide[1]), "=f"(wide[2]), "=f"(wide[3]), "=f"(wide[4]),
                   "=f"(wide[5]), "=f"(wide[6]), "=f"(wide[7])
                 : "l"(in));
    uint64_t pair = a;
    asm("fma.rn.f32x2 %0, %1, %1, %1;" : "=l"(pair) : "l"(pair));
    out[threadIdx.x] = wide[0] + wide[7] + __uint_as_float(got[1] ^ uint32_t(pair));
}
