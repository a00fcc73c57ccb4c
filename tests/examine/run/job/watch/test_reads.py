from __future__ import annotations

import pytest
import torch

from torchtriage.examine.run.job.watch.reads import Late
from torchtriage.examine.run.job.watch.reads import _Read as Read


class Copy:
    """A copy under way: its event and its host tensor in one."""

    def __init__(self, value: float) -> None:
        self.value, self.arrived = value, False

    def query(self) -> bool:
        return self.arrived

    def dim(self) -> int:
        return 0

    def tolist(self) -> float:
        assert self.arrived, "read before it had arrived"
        return self.value


def test_a_number_on_the_cpu_is_read_at_once() -> None:
    read: list[float] = []
    Late().read(torch.tensor(2.5), read.append)

    assert read == [2.5]


def test_a_row_of_numbers_is_read_whole() -> None:
    read: list[list[float]] = []
    Late().read_all(torch.tensor([1.0, 2.5]), read.append)
    Late().read_all(torch.ones(2, 2), read.append)

    assert read == [[1.0, 2.5]]


@pytest.mark.parametrize(
    "tensor",
    [torch.ones(2), torch.nn.Parameter(torch.tensor(1.0)), torch.tensor(1.0, device="meta"), "no tensor"],
    ids=["a vector", "a subclass", "without a value", "no tensor"],
)
def test_what_is_no_plain_number_is_left_out(tensor: object) -> None:
    read: list[float] = []
    Late().read(tensor, read.append)

    assert read == []


def test_numbers_on_a_device_are_handed_out_when_they_have_arrived_and_in_order() -> None:
    late, read = Late(), []
    first, second = Copy(1.0), Copy(2.0)
    late._waiting = [Read(torch.zeros(()), each, each, read.append) for each in (first, second)]
    second.arrived = True
    late.settle()
    assert read == []

    first.arrived = True
    late.settle()
    assert read == [1.0, 2.0]


def test_a_copy_is_of_the_same_numbers_until_somebody_changes_them() -> None:
    loss = torch.tensor([1.0, 2.0])
    read = Read(loss.detach(), Copy(1.0), None, print)
    assert read.is_of(loss.detach())
    assert not read.is_of(loss[1:])
    assert not read.is_of(loss.clone())
    loss.add_(1)
    assert not read.is_of(loss.detach())
