// sm_86: an interpreter of a small stack machine.
__global__ void interpret(const int* code, int* out) {
    int stack[16];
    int top = 0;
    for (int at = threadIdx.x;; ++at) {
        switch (code[at]) {
            case 0: stack[top++ & 15] = code[++at]; break;
            case 1: --top; stack[(top - 1) & 15] += stack[top & 15]; break;
            case 2: --top; stack[(top - 1) & 15] *= stack[top & 15]; break;
            case 3: at += stack[--top & 15]; break;
            case 4: out[stack[--top & 15]] = at; break;
            case 5: atomicAdd(out, stack[top & 15]); break;
            case 6: __syncthreads(); break;
            case 7: __nanosleep(100); break;
            case 8: top = 0; break;
            case 9: out[threadIdx.x] = stack[(top - 1) & 15]; return;
            case 10: __threadfence(); break;
            case 11: stack[top & 15] = clock(); break;
            default: __trap();
        }
    }
}

// nvcc compares its way through a switch, so this jump table is written out.
__global__ void jump(const unsigned* which, int* out) {
    int result;
    asm volatile(
        "{\n\t"
        "targets: .branchtargets zero, one, two;\n\t"
        "brx.idx %1, targets;\n\t"
        "zero: mov.s32 %0, 10;\n\t"
        "bra.uni done;\n\t"
        "one: mov.s32 %0, -11;\n\t"
        "bra.uni done;\n\t"
        "two: mov.s32 %0, 0x12;\n\t"
        "done:\n\t"
        "}"
        : "=r"(result) : "r"(which[threadIdx.x] % 3));
    out[threadIdx.x] = result;
}
