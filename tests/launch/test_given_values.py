"""Numbers of given launches: expressions over the sizes, elements of buffers and scalars."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.errors import UserError
from gpuwatch.launch.elements import ELEMENTS
from gpuwatch.launch.expressions import evaluate

NUMBERS = st.integers(-1000, 1000)
EXPRESSIONS = st.recursive(
    NUMBERS.map(str) | st.sampled_from(["M", "N"]),
    lambda inner: st.tuples(inner, st.sampled_from("+-*&|^"), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, NUMBERS, NUMBERS)
def test_expressions_are_worth_what_python_says(text: str, m: int, n: int) -> None:
    names = {"M": m, "N": n}
    assert evaluate(text, names) == eval(text, {}, dict(names))


@given(st.text("MN0123456789.+-*/%()<>&|^~ abcdef'[]{},:=@\n", max_size=30))
def test_any_text_is_a_number_or_an_error_of_the_user(text: str) -> None:
    try:
        value = evaluate(text, {"M": 3, "N": 5})
    except UserError as problem:
        assert problem.message
    else:
        assert isinstance(value, int | float)


@pytest.mark.parametrize("name", [name for name in ELEMENTS if name != "bf16"])
@given(value=st.integers(-128, 127))
def test_a_scalar_and_a_buffer_have_the_same_bytes(name: str, value: int) -> None:
    element = ELEMENTS[name]
    assert element.pack(value) == element.encode(np.array([value])).tobytes()


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_is_the_nearest(value: float) -> None:
    bits = int.from_bytes(ELEMENTS["bf16"].pack(value), "little")
    steps = [one for one in (bits - 1, bits, bits + 1) if 0 <= one < 1 << 16]
    with np.errstate(invalid="ignore"):  # a signalling NaN may be next to infinity
        near = np.array([one << 16 for one in steps], np.uint32).view(np.float32).astype(float)
    middle = near[steps.index(bits)]
    gaps = np.abs(near[np.isfinite(near)] - value)
    assert not np.isfinite(middle) or abs(middle - value) == gaps.min()
