"""Which forward passes may be repeated in a healthy job: those whose code reaches nothing that outlives the call."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import nn

from torchtriage.examine.run.job.origin.containment import is_contained

SIZES = (4, 4)
CALLS = 0
SEEN: list[Any] = []
NOISE = torch.Generator()
COUNTER = itertools.count()


def activated(x: torch.Tensor) -> torch.Tensor:
    return nn.functional.gelu(x) * math.sqrt(2)


def remembered(x: torch.Tensor) -> torch.Tensor:
    SEEN.append(x.shape)
    return x


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        SEEN.append(self)
        self.layer = nn.Linear(*SIZES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [activated(self.layer(part)) for part in x.split(SIZES[0])]
        return torch.cat(parts).to(torch.float32)


class Counting(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        global CALLS  # noqa: PLW0603 - what the test is about
        CALLS += 1
        return super().forward(x)


class Drawing(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + torch.randn(x.shape, generator=NOISE))


class Advancing(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * next(COUNTER)


class Remembering(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return remembered(super().forward(x))


class Printing(Plain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print(x.shape)  # noqa: T201 - what the test is about
        return super().forward(x)


def enclosing() -> type[Plain]:
    drawn = itertools.count()

    class Enclosed(Plain):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * sum(value for value, _ in zip(drawn, range(2), strict=False))

    return Enclosed


@pytest.mark.parametrize(
    ("module", "contained"),
    [
        (nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 4)), True),
        (nn.Sequential(Plain(), Plain()), True),
        (Counting(), False),
        (Drawing(), False),
        (Advancing(), False),
        (nn.Sequential(nn.Linear(4, 4), Remembering()), False),
        (Printing(), False),
        (enclosing()(), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_a_forward_pass_is_repeated_when_its_code_reaches_nothing_that_lasts(
    module: nn.Module, contained: bool
) -> None:
    assert is_contained(module) == contained
