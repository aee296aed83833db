// sm_80: inline PTX with scopes, its own registers, guards, labels and cache operators.
__global__ void timed(const int* in, long long* out) {
    long long begin, end;
    int value, other;
    unsigned lane;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(begin));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    asm volatile("ld.global.cg.s32 %0, [%1+4];" : "=r"(value) : "l"(in) : "memory");
    asm volatile(
        "{\n\t"
        ".reg .pred positive;\n\t"
        ".reg .b32 low, high;\n\t"
        "setp.gt.s32 positive, %1, 0;\n\t"
        "@positive add.s32 %0, %1, 0x10;\n\t"
        "@!positive mov.b32 %0, -1; // the other way\n\t"
        "mov.b64 {low, high}, %2;\n\t"
        "{ xor.b32 low, low, high; }\n\t"
        "add.s32 %0, %0, low;\n\t"
        "}"
        : "=r"(other) : "r"(value), "l"(begin));
    asm volatile("cp.async.wait_all;" ::: "memory");
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(end));
    out[lane] = end - begin + other;
}
