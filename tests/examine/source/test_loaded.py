"""Which options a loader gets by **: only those that the file spells out in full are known."""

from __future__ import annotations

import pytest

from torchtriage.examine.source.loaded import LoadedDataset, loaded
from torchtriage.examine.source.script import Script

DATASET = """
import torch
from torch.utils.data import DataLoader, Dataset

class Own(Dataset):
    def __getitem__(self, i):
        return i
"""


def reads(code: str) -> list[int | None]:
    found: tuple[LoadedDataset, ...] = tuple(loaded(Script("own.py", (DATASET + code).encode())))
    return [read.workers for each in found for read in each.reads]


@pytest.mark.parametrize(
    ("code", "workers"),
    [
        ("options = dict(num_workers=3, batch_size=2)\nDataLoader(Own(), **options)", [3]),
        ("options = {'num_workers': 3}\nDataLoader(Own(), shuffle=True, **options)", [3]),
        ("DataLoader(Own(), **{'num_workers': 0})", []),
        ("options = {'num_workers': 3, 'worker_init_fn': known}\nDataLoader(Own(), **options)", []),
        ("options = {'num_workers': 3}\noptions['worker_init_fn'] = known\nDataLoader(Own(), **options)", []),
        ("options = {'num_workers': 3}\noptions.update(more)\nDataLoader(Own(), **options)", []),
        ("options = {'num_workers': 3, **more}\nDataLoader(Own(), **options)", []),
        ("DataLoader(Own(), num_workers=3, **more)", []),
    ],
)
def test_options_by_name_count_when_all_of_them_are_seen(code: str, workers: list[int | None]) -> None:
    assert reads(code) == workers
