from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.core.plain import quick, row

TEXT = st.text(st.characters(codec="utf-8")) | st.text() | st.sampled_from(["<script>", "\u2028", "\udcff", "a\x1bb"])
FINITE = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT
)
VALUE = st.recursive(FINITE, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=8)


@given(VALUE)
def test_a_quick_row_is_the_row(value: Any) -> None:
    assert quick(value) == row(value)


@pytest.mark.parametrize("text", ["\ud83d", "what \udcff now"])
def test_what_is_no_text_is_told_quickly_all_the_same(text: str) -> None:
    assert quick({"text": text}) == row({"text": text})
    assert "\ufffd" in quick([text]) or "\\ufffd" in quick([text])
