"""Readable names of kernels."""

from __future__ import annotations

import pytest

from gpuwatch.toolchain import demangle


@pytest.mark.parametrize(
    ("mangled", "readable"),
    [
        ("saxpy", "saxpy"),
        (
            "_Z8gemm_gpuPKfS0_Pfiii",
            "gemm_gpu(const float *, const float *, float *, int, int, int)",
        ),
        ("_Z4tmplILi3EEvPi", "tmpl<3>(int *)"),
        ("_ZN35_GLOBAL__N__aeb1a5af_7_anon_cu_main6hiddenEPi", "hidden(int *)"),
        ("_ZN34_INTERNAL_130ab8e7_8_other_cu_step3ownEi", "own(int)"),
        ("__nv_static_25__6908a4f5_4_b_cu_866a2395__Z6secretPi", "secret(int *)"),
    ],
)
def test_names_read_as_in_the_source(mangled: str, readable: str) -> None:
    assert demangle([mangled]) == {mangled: readable}
