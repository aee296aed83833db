"""Which edits of a source can change how its kernels are launched."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.engine.host_part import host_part

TEXT = """\
// a comment with __global__ void fake() { in it
#define TILE 16
__device__ float helper(float x) { return x * 2; }
__device__ float table[2] = {1, 2};
__device__ constexpr int number{3};
__host__ __device__ int both(int x) { return x + 1; }
template <typename T>
__global__ void __launch_bounds__(256) kernel(T *out, int n)
{
    __shared__ T tile[TILE];
    const char *brace = "}";
    if (n > '}') { out[0] = helper(1); } // }
}
int main() { kernel<<<4, 256>>>(0, both(3)); return 0; }
"""


def _part(tmp_path: Path, text: str) -> str | None:
    file = tmp_path / "a.cu"
    file.write_text(text)
    return host_part([file])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("helper(1)", "helper(2) + 3"),
        ("return x * 2;", "if (x) { return 1; }\n return x;"),
        ("// a comment", "// another comment"),
        ('"}"', '"}}{"'),
        ("    __shared__ T tile[TILE];\n", ""),
    ],
)
def test_bodies_of_device_code_and_comments_do_not_count(
    tmp_path: Path, old: str, new: str
) -> None:
    assert old in TEXT
    assert _part(tmp_path, TEXT.replace(old, new)) == _part(tmp_path, TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("TILE 16", "TILE 32"),
        ("x + 1", "x + 2"),
        ("<<<4, 256>>>", "<<<8, 256>>>"),
        ("int n)", "long n)"),
        ("{1, 2}", "{1, 3}"),
        ("number{3}", "number{4}"),
        ("(256)", "(128)"),
        ("    __shared__", "#define INSIDE 1\n    __shared__"),
        ("float helper(float x) {", "__host__ float helper(float x) { ;"),
    ],
)
def test_everything_else_counts(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    assert _part(tmp_path, TEXT.replace(old, new)) != _part(tmp_path, TEXT)


def test_a_file_that_is_gone_is_not_understood(tmp_path: Path) -> None:
    assert host_part([tmp_path / "gone.cu"]) is None


def test_a_raw_string_is_not_understood(tmp_path: Path) -> None:
    assert _part(tmp_path, TEXT + 'const char *s = R"(})";\n') is None
