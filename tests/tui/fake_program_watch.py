"""A ProgramWatch with made-up but plausible data: a training step with the kernels of PyTorch."""

from __future__ import annotations

from dataclasses import replace

from fake_watch import H200, FakeWatch, make_frame

from gpuwatch.engine.frame import Attached, KernelChoice
from gpuwatch.engine.program_kernels import ProgramKernel, ProgramProcess, ProgramState
from gpuwatch.errors import UserError

PID = 41_207
NO_PTX = "machine code only"
_NO_PTX_WHY = "its module holds machine code only, and no PTX that a probe could be woven into"
_TORCH = "in the program"
_TRITON = "Triton's cache"


def kernel(
    key: str,
    name: str,
    launches: int,
    mean_us: float | None,
    *,
    origin: str = _TORCH,
    grid: tuple[int, int, int] = (1_024, 1, 1),
    block: tuple[int, int, int] = (128, 1, 1),
    registers: int = 32,
    static_shared: int = 0,
    dynamic_shared: int = 0,
    shapes: int = 1,
    occupancy: float = 1.0,
    in_graphs: int = 0,
    why: str = "",
    process: int = PID,
) -> ProgramKernel:
    """One kernel; that it has machine code only says itself why no probe can attach."""
    mean = None if mean_us is None else mean_us * 1e-6
    return ProgramKernel(
        key=key,
        name=name,
        mangled=f"_Z{len(key)}{key}v",
        process=process,
        device=0,
        launches=launches,
        grid=grid,
        block=block,
        dynamic_shared=dynamic_shared,
        shapes=shapes,
        total_seconds=None if mean is None else mean * launches,
        mean_seconds=mean,
        registers=registers,
        static_shared=static_shared,
        occupancy=occupancy,
        origin=origin,
        why=why or (_NO_PTX_WHY if origin == NO_PTX else ""),
        in_graphs=in_graphs,
    )


_GEMM = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_"
    "segment_k_off_kernel__5x_cublas"
)
_FLASH = (
    "flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t,"
    " Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t>>, false, true, false, false, true,"
    " true, false>(Flash_fwd_params)"
)
_MUL = (
    "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>"
)
_OF_MUL = (
    f"at::native::gpu_kernel_impl_nocast<{_MUL}>(at::TensorIteratorBase &, const {_MUL} &)"
    "::{lambda(int)#1}"
)
_FILL = "at::native::FillFunctor<float>, std::array<char *, 1ul>"
_SUM = (
    "at::native::ReduceOp<float, at::native::func_wrapper_t<float, at::native::sum_functor<float,"
    " float, float>::operator()(at::TensorIterator &)::{lambda(float, float)#1}>, unsigned int,"
    " float, 4>"
)
_NORM = "at::native::vectorized_layer_norm_kernel<c10::BFloat16, float>"
_COPY = "at::native::CatArrayBatchedCopy<at::native::OpaqueType<4u>, unsigned int, 4, 64, 64>"

KERNELS = (
    kernel("fill", f"at::native::vectorized_elementwise_kernel<4, {_FILL}>(int, {_FILL})", 9_411,
           1.9, grid=(4_096, 1, 1), shapes=12),
    kernel("gemm", _GEMM, 12_288, 211.0, origin=NO_PTX, grid=(32, 24, 1), block=(384, 1, 1),
           registers=168, dynamic_shared=213_504, shapes=5, occupancy=0.1875),
    kernel("flash", _FLASH, 3_072, 148.0, grid=(16, 1, 96), registers=241,
           dynamic_shared=49_152, occupancy=0.125),
    kernel("triton_norm", "triton_per_fused_add_native_layer_norm_3", 6_144, 12.4,
           origin=_TRITON, grid=(8_192, 1, 1), block=(64, 1, 1), registers=24,
           static_shared=16),
    kernel("triton_gelu", "triton_poi_fused_gelu_mul_7", 3_072, 41.7, origin=_TRITON,
           grid=(49_152, 1, 1), block=(256, 1, 1), registers=30),
    kernel("mul", f"at::native::elementwise_kernel<128, 2, {_OF_MUL}>(int, {_OF_MUL})", 4_608,
           9.8, grid=(12_288, 1, 1), shapes=4, registers=26),
    kernel("sum", f"at::native::reduce_kernel<512, 1, {_SUM}>({_SUM})", 1_536, 17.2,
           grid=(768, 1, 1), block=(32, 16, 1), static_shared=16, dynamic_shared=2_048, shapes=3),
    kernel("norm", f"{_NORM}(int, float, const c10::BFloat16 *)", 24, 30.1,
           grid=(8_192, 1, 1), block=(32, 4, 1), registers=40, dynamic_shared=24, in_graphs=7),
    kernel("cat", f"{_COPY}(at::native::OpaqueType<4u> *)", 96, 6.6, grid=(264, 2, 1),
           block=(512, 1, 1), registers=38, shapes=2),
    kernel("gemm_tiled", "gemm_tiled(const float *, const float *, float *, int, int, int)", 640,
           512.0, grid=(32, 32, 1), block=(32, 32, 1), registers=36, static_shared=8_192),
)  # fmt: skip


class FakeProgram(FakeWatch):
    """Answers at once. Selecting attaches; `grow` lets the program launch on."""

    def __init__(self, kernels: tuple[ProgramKernel, ...] = KERNELS) -> None:
        super().__init__(H200, ready=False)
        self.source_list = [""]
        self.listed = list(kernels)
        self.attached: str | None = None
        self.state = ProgramState(
            "running",
            ("python", "train.py", "--model", "gpt2", "--batch", "64"),
            PID,
            "gpuwatch-run.log",
            launches=sum(one.launches for one in kernels),
        )
        self.process_list = [ProgramProcess(PID, "python train.py --model gpt2 --batch 64")]

    def program(self) -> ProgramState:
        return self.state

    def program_kernels(self) -> list[ProgramKernel]:
        return list(self.listed)

    def processes(self) -> list[ProgramProcess]:
        return list(self.process_list)

    def watched(self) -> str | None:
        return self.attached

    def detach(self) -> None:
        self.calls.append("detach")
        self.attached = None

    def kernels(self) -> list[KernelChoice]:
        return [
            KernelChoice(one.key, one.name, (), one.grid, one.block, one.launches)
            for one in self.listed
            if one.probeable
        ]

    def deliver(self, kernel: str | None = None, probe: str | None = None) -> None:
        """The first frame of a new selection."""
        old = self.frame
        key = kernel or self.attached
        one = next(one for one in self.listed if one.key == key)
        self.attached = key
        named = probe or (old.probe if old else "block_sched")
        self.frame = replace(
            make_frame(self.info, (old.serial if old else 0) + 1, named),
            mangled=one.key,
            kernel=one.name,
            grid=one.grid,
            block=one.block,
            outputs_identical=None,
            attached=Attached(one.process, 56_789, 1_234, 55_555),
        )

    def grow(self, key: str, launches: int) -> None:
        """More launches of one kernel."""
        for at, one in enumerate(self.listed):
            if one.key == key:
                count = one.launches + launches
                total = None if one.mean_seconds is None else one.mean_seconds * count
                self.listed[at] = replace(one, launches=count, total_seconds=total)
        self.state = replace(self.state, launches=self.state.launches + launches)

    def end(self, status: int | None = 0, error: UserError | None = None) -> None:
        """The program is over, and so is the watch."""
        self.state = replace(self.state, state="ended", status=status)
        self.now = replace(self.now, state="stopped", detail="the program has ended", error=error)
