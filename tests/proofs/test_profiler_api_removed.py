"""The names with cuda in them are gone from a profiler's averages; the strings for sort_by are not."""

from __future__ import annotations

import pytest
import torch
from torch.profiler import ProfilerActivity, profile


def work() -> torch.Tensor:
    return torch.ones(4).sum()


def test_the_old_name_raises_and_the_new_one_does_not(shown) -> None:
    with pytest.raises(AttributeError, match="cuda_time_total"):
        shown("profiler-api-removed", "Bad").total(work)
    assert shown("profiler-api-removed", "Good").total(work) == 0


@pytest.mark.parametrize(
    "name", ["cuda_time_total", "self_cuda_time_total", "cuda_memory_usage", "self_cuda_memory_usage"]
)
def test_each_has_a_successor_and_the_string_still_sorts(name: str) -> None:
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as prof:
        work()
    averages = prof.key_averages()
    assert not hasattr(averages[0], name)
    assert hasattr(averages[0], name.replace("cuda", "device"))
    assert "aten::sum" in averages.table(sort_by=name)
