"""1e-8 is 0 in float16, and so is the default eps of normalize and cosine_similarity."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F


def test_a_row_of_zeros_becomes_nan_in_float16(shown) -> None:
    assert shown("eps-vanishes", "Bad").unit(torch.zeros(1, 4)).isnan().all()
    assert shown("eps-vanishes", "Good").unit(torch.zeros(1, 4)).eq(0).all()


@pytest.mark.parametrize(
    "guarded",
    [
        lambda x: x / (x.norm(dim=-1, keepdim=True) + 1e-8),
        lambda x: x / x.norm(dim=-1, keepdim=True).clamp(min=1e-8),
        lambda x: F.normalize(x, dim=-1),
        lambda x: F.cosine_similarity(x, x),
    ],
    ids=["added", "clamped", "normalize", "cosine_similarity"],
)
def test_the_guards_hold_in_float32_and_bfloat16_and_not_in_float16(guarded) -> None:
    zeros = torch.zeros(1, 4)
    assert guarded(zeros.half()).isnan().all()
    assert guarded(zeros).isfinite().all()
    assert guarded(zeros.bfloat16()).isfinite().all()


def test_where_float16_ends() -> None:
    assert torch.tensor([2.0**-25, 2.0**-24, 1e-6]).half().gt(0).tolist() == [False, True, True]


def test_layer_norm_computes_in_float32_inside() -> None:
    assert F.layer_norm(torch.zeros(1, 4).half(), (4,), eps=1e-12).eq(0).all()
