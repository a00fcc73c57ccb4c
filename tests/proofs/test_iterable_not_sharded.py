"""Every worker runs through the whole stream, unless each is given its part."""

from __future__ import annotations

from collections import Counter

import pytest
import torch


@pytest.mark.parametrize(("section", "times"), [("Bad", 2), ("Good", 1)])
def test_two_workers_give_each_sample_so_often(shown, section: str, times: int) -> None:
    loader = shown("iterable-not-sharded", section).loader(10)
    counted = Counter(torch.cat(list(loader)).tolist())
    assert counted == dict.fromkeys(range(10), times)
