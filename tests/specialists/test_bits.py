"""The sum of a tensor's bits is the same number wherever the same values are, and another one when one has changed."""

from __future__ import annotations

import pytest
import torch

from torchtriage.specialists.distributed_training_strategies.probes import _bits

KINDS = [
    torch.float32,
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int8,
    torch.bool,
    torch.complex64,
]


def total(tensor: torch.Tensor) -> int:
    """The sum as Python's own whole numbers make it, of a tensor whose memory begins at a multiple of eight bytes."""
    held = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    size = min(tensor.element_size(), 8)
    whole = len(held) // 8 * 8
    parts = [held[at : at + 8] for at in range(0, whole, 8)]
    ends = [held[at : at + size] for at in range(whole, len(held), size)]
    found = sum(int.from_bytes(each, "little", signed=size > 1 or len(each) > 1) for each in (*parts, *ends))
    return (found + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("count", [1, 7, 64, 129])
def test_the_bits_are_added_up_exactly(dtype: torch.dtype, count: int) -> None:
    values = (torch.arange(count) * 7 % 11 - 3).to(dtype)
    assert int(_bits.mark(_bits.flat(values))) == total(values)


def test_one_bit_makes_another_sum_also_among_equal_values() -> None:
    values = torch.ones(64)
    before = int(_bits.mark(_bits.flat(values)))
    values += torch.finfo(torch.float32).eps
    assert int(_bits.mark(_bits.flat(values))) != before


@pytest.mark.parametrize("offset", range(9))
def test_a_view_into_a_larger_piece_is_read_wherever_it_begins(offset: int) -> None:
    piece = torch.arange(64.0)[offset : offset + 33]
    sums = [int(_bits.mark(_bits.flat(piece))) for _ in (1, 2)]
    assert sums[0] == sums[1]
    piece[5] += 1
    assert int(_bits.mark(_bits.flat(piece))) != sums[0]


def test_tensors_without_gaps_are_read_in_place_and_large_ones_with_gaps_are_left_out() -> None:
    image = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    assert _bits.flat(image).data_ptr() == image.data_ptr()
    assert _bits.flat(torch.randn(4, 6)[:, ::2]).numel() == 12
    assert _bits.flat(torch.empty(2, _bits.COPIED)[:, ::2].expand(3, 2, -1)) is None


def test_the_size_of_a_tensor_is_the_sum_of_its_squares() -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        assert float(_bits.size(torch.full((6,), 2.0, dtype=dtype))) == 24.0


def test_what_is_sharded_or_empty_is_not_looked_at() -> None:
    assert _bits.plain(torch.nn.Parameter(torch.randn(2)))
    assert not _bits.plain(torch.empty(0))
    assert not _bits.plain(torch.randn(2, 2).to_sparse())
    parted = torch.nn.Parameter(torch.randn(2))
    vars(parted)["ds_id"] = 3  # DeepSpeed's, whose values are elsewhere
    assert not _bits.plain(parted)
