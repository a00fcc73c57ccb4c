"""The allocator: blocks, segments, peaks, fragmentation, and the end of memory."""

from __future__ import annotations

import gc
import re

import pytest
import torch

from torchtriage import simulation
from torchtriage.simulation import Costs, Simulator

KIB, MIB, GIB = 2**10, 2**20, 2**30

ROUNDED = [
    (1, 512, 2 * MIB),
    (512, 512, 2 * MIB),
    (513, 1024, 2 * MIB),
    (MIB, MIB, 2 * MIB),
    (MIB + 1, MIB + 512, 20 * MIB),
    (10 * MIB - 512, 10 * MIB - 512, 20 * MIB),
    (10 * MIB, 10 * MIB, 10 * MIB),
    (11 * MIB, 12 * MIB, 12 * MIB),
    (19 * MIB + 1, 20 * MIB, 20 * MIB),
]
"""Bytes that are asked for, allocated, and reserved by the first block of its size."""


def block(size: int, device: str = "sim") -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device=device)


def stat(name: str) -> int:
    return torch.sim.memory_stats()[f"{name}.all.current"]


@pytest.fixture
def empty(simulator: Simulator) -> Simulator:
    """Nothing on the devices, and nothing cached."""
    gc.collect()
    simulator.reset()
    assert torch.sim.memory_allocated() == torch.sim.memory_reserved() == 0
    return simulator


@pytest.mark.parametrize(("asked", "allocated", "reserved"), ROUNDED)
def test_sizes_are_rounded_as_torch_rounds_them(empty: Simulator, asked: int, allocated: int, reserved: int) -> None:
    kept = block(asked)
    assert torch.sim.memory_reserved() == reserved
    assert (torch.sim.memory_allocated(), kept.nbytes) == (allocated, asked)
    assert stat("requested_bytes") == asked


def test_memory_that_is_freed_stays_cached_and_is_taken_again(empty: Simulator) -> None:
    first = block(3 * MIB)
    address = first.data_ptr()
    del first
    assert (torch.sim.memory_allocated(), torch.sim.memory_reserved()) == (0, 20 * MIB)
    assert block(3 * MIB).data_ptr() == address
    torch.accelerator.empty_cache()
    assert torch.sim.memory_reserved() == 0
    assert [each.action for each in empty.ledger.allocations] == [
        "segment_alloc", "alloc", "free", "alloc", "free", "segment_free",
    ]  # fmt: skip


def test_the_peak_is_the_most_that_was_in_use_at_once(empty: Simulator) -> None:
    kept = block(4 * MIB)
    gone = block(4 * MIB)
    del gone
    kept = [kept, block(2 * MIB)]
    assert torch.accelerator.memory_allocated() == 6 * MIB
    assert torch.accelerator.max_memory_allocated() == torch.sim.max_memory_allocated() == 8 * MIB
    torch.accelerator.reset_peak_memory_stats()
    assert torch.accelerator.max_memory_allocated() == 6 * MIB
    assert max(each.allocated for each in empty.ledger.allocations) == 8 * MIB


def test_blocks_between_others_are_split_and_inactive(empty: Simulator) -> None:
    kept = [block(4 * MIB) for _ in range(5)]
    assert (torch.sim.memory_reserved(), stat("inactive_split_bytes")) == (20 * MIB, 0)
    del kept[1], kept[2]
    assert (stat("inactive_split"), stat("inactive_split_bytes")) == (2, 8 * MIB)
    block(6 * MIB)
    assert torch.sim.memory_reserved() == 40 * MIB
    del kept[1]
    assert (stat("inactive_split"), stat("inactive_split_bytes")) == (1, 12 * MIB)
    kept.clear()
    assert (stat("inactive_split"), stat("inactive_split_bytes"), stat("active")) == (0, 0, 0)


def test_each_stream_has_blocks_of_its_own(empty: Simulator) -> None:
    address = block(1).data_ptr()
    with torch.Stream("sim"):
        assert block(1).data_ptr() != address
    assert block(1).data_ptr() == address


def test_a_block_that_another_stream_uses_is_freed_when_that_is_done(empty: Simulator) -> None:
    empty.costs = Costs.free(kernel=1_000)
    side = torch.sim.Stream()
    x = block(1)
    with torch.sim.stream(side):
        x.add_(1)
    x.record_stream(side)
    address = x.data_ptr()
    del x
    assert (torch.sim.memory_allocated(), stat("active")) == (0, 1)
    assert block(1).data_ptr() != address
    side.synchronize()
    taken = [block(1) for _ in range(2)]
    assert address in {each.data_ptr() for each in taken}


def test_the_end_of_memory_is_told_in_the_words_of_cuda(empty: Simulator) -> None:
    kept = [block(7 * GIB), block(7 * GIB)]
    kept.pop()
    other = block(3 * GIB)
    text = (
        "sim out of memory. Tried to allocate 8.00 GiB. sim 0 has a total capacity of 16.00 GiB of which 2.00 GiB is free. "
        "Of the allocated memory 10.00 GiB is allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but unallocated."
    )
    with pytest.raises(torch.OutOfMemoryError, match=re.escape(text)):
        block(8 * GIB)
    assert empty.ledger.allocations[-1].action == "oom"
    assert torch.sim.memory_stats()["num_ooms"] == 1
    assert other.nbytes == 3 * GIB


def test_others_take_from_what_is_free(empty: Simulator) -> None:
    empty.occupy(10 * GIB)
    kept = block(2 * GIB)
    assert torch.sim.mem_get_info() == (4 * GIB, 16 * GIB)
    text = (
        "16.00 GiB of which 4.00 GiB is free. Including non-PyTorch memory, this process has 2.00 GiB memory in use. Of"
    )
    with pytest.raises(torch.OutOfMemoryError, match=re.escape(text)):
        block(5 * GIB)
    empty.occupy(0)
    assert block(5 * GIB).nbytes == 5 * GIB
    assert kept.nbytes == 2 * GIB


def test_cached_memory_is_given_back_before_memory_ends(empty: Simulator) -> None:
    empty.costs = Costs.free(kernel=1_000_000, segment=100)
    x = block(1).add_(1)
    big = block(9 * GIB)
    del big
    block(10 * GIB)
    assert torch.sim.memory_stats()["num_alloc_retries"] == 1
    assert [each.call for each in empty.ledger.synchronisations] == ["free of cached memory"]
    assert empty.now >= 1_000_000
    assert x.item() is not None


def test_memory_that_is_cut_up_ends_before_it_is_full(simulator: Simulator) -> None:
    gc.collect()
    simulation.start(devices=2, memory=40 * MIB, costs=Costs.free())
    kept = [block(4 * MIB) for _ in range(10)]
    del kept[::2]
    assert torch.sim.memory_allocated() == 20 * MIB
    with pytest.raises(torch.OutOfMemoryError, match=r"20.00 MiB is reserved by PyTorch but unallocated"):
        block(6 * MIB)


def test_devices_have_memory_of_their_own(empty: Simulator) -> None:
    kept = [block(MIB, "sim:0"), block(3 * MIB, "sim:1")]
    assert [torch.sim.memory_allocated(device) for device in (0, "sim:1")] == [MIB, 3 * MIB]
    assert torch.sim.mem_get_info(1) == (16 * GIB - 20 * MIB, 16 * GIB)
    assert torch.accelerator.get_memory_info(0) == (16 * GIB - 2 * MIB, 16 * GIB)
    assert len(kept) == 2


def test_a_history_names_lines_where_it_is_asked_to(simulator: Simulator) -> None:
    simulation.start(devices=2, costs=Costs.free(), frames=8)
    kept = block(100)
    (entry,) = [each for each in simulator.ledger.allocations if each.action == "alloc"]
    assert (entry.address, entry.bytes, entry.allocated) == (kept.data_ptr(), 512, entry.allocated)
    assert any("test_memory.py" in frame and frame.endswith(" block") for frame in entry.frames)


def test_a_snapshot_has_the_form_of_torch_cuda(empty: Simulator) -> None:
    kept = [block(1000), block(MIB)]
    (segment,) = torch.sim.memory_snapshot()
    assert (segment["total_size"], segment["segment_type"], segment["allocated_size"]) == (2 * MIB, "small", MIB + 1024)
    assert [(each["state"], each["size"]) for each in segment["blocks"]] == [
        ("active_allocated", 1024),
        ("active_allocated", MIB),
        ("inactive", MIB - 1024),
    ]
    assert len(kept) == 2


def test_what_an_operator_needs_is_what_it_returns(empty: Simulator) -> None:
    x = torch.zeros(MIB, device="sim")
    y = x.exp()
    y.add_(x)
    assert torch.sim.max_memory_allocated() == 8 * MIB
    assert y.sum().isfinite()


def test_a_storage_is_resized_in_memory_of_its_device(empty: Simulator) -> None:
    x = torch.arange(256.0, device="sim")
    x.untyped_storage().resize_(0)
    assert torch.sim.memory_allocated() == 0
    x.untyped_storage().resize_(1024)
    assert torch.sim.memory_allocated() == 1024
    out = torch.empty(0, device="sim")
    assert torch.add(torch.ones(3, device="sim"), 1, out=out).tolist() == out.tolist() == [2.0, 2.0, 2.0]
    assert out.resize_(5).shape == (5,)
