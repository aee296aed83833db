"""Long demangled names, cut to a width."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.tui.kernel_names import cut_within, fitted_name, plain_name, shorten_signature

MUL = (
    "at::native::BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>"
)
ELEMENTWISE = (
    f"at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<{MUL}>"
    f"(at::TensorIteratorBase &, const {MUL} &)::{{lambda(int)#1}}>(int)"
)
FILL = (
    "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>,"
    " std::array<char *, 1ul> >(int, at::native::FillFunctor<float>)"
)
CUTLASS = "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_tn_align4>(Params)"


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("gemm_tiled(const float *, int)", "gemm_tiled"),
        ("_Z3fooPf", "_Z3fooPf"),
        (FILL, "vectorized_elementwise_kernel<4, FillFunctor<float>, array<char *, 1ul>>"),
        ("saxpy<(int)128, (bool)1>(float *)", "saxpy<128, 1>"),
        (CUTLASS, "Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x4_tn_align4>"),
    ],
)
def test_parameters_and_namespaces_go(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("name", "width", "text"),
    [
        ("gemm_tiled(const float *, int)", 40, "gemm_tiled"),
        (FILL, 60, "vectorized_elementwise_kernel<4, FillFunctor<…>, array<…>>"),
        (FILL, 44, "vectorized_elementwise_kernel<…FillFunctor…>"),
        (FILL, 30, "vectorized…rnel<…FillFunctor…>"),
        (FILL, 20, "vectorized_el…kernel"),
        (ELEMENTWISE, 40, "elementwise_kernel<…MulFunctor…>"),
        (CUTLASS, 40, "Kernel2<cutlass_80_tensorop_…_tn_align4>"),
        ("copy<OpaqueType<4u>, unsigned int, 4, 64, 64>(int)", 30, "copy<OpaqueType<…>, …>"),
        ("split_k<32, 16, int, float, false, true>(float *)", 24, "split_k<32, 16, int, …>"),
        ("ampere_sgemm_128x64_nn", 16, "ampere_sge…64_nn"),
    ],
)
def test_what_tells_kernels_apart_stays(name: str, width: int, text: str) -> None:
    assert fitted_name(name, width, "…") == text


@given(st.text("ab_1<>(){}:,& *#", max_size=60), st.integers(0, 70))
def test_any_text_fits(name: str, width: int) -> None:
    assert len(fitted_name(name, width, "…")) <= width
    assert len(cut_within(name, width, "…")) <= width
    assert name.startswith(shorten_signature(name))
