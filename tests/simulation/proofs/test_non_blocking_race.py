"""What the host reads of a non-blocking copy before it has waited is read before the copy has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from devices import Device, SimulatedDevice
from torch import nn
from torch.utils.data import TensorDataset

STEPS = 6
DATA = TensorDataset(torch.randn(4 * STEPS, 64), torch.randn(4 * STEPS, 64))

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")


class History(list[Any]):
    """Calls NOTE whenever a figure comes."""

    def __init__(self, note: Callable[[], None]) -> None:
        super().__init__()
        self.note = note

    def append(self, figure: Any) -> None:
        self.note()
        super().append(figure)


def train(device: Device, section: str, layers: list[nn.Module], history: list[Any]) -> list[torch.Tensor]:
    """The outputs of each step, on the device."""
    outputs: list[torch.Tensor] = []
    model = nn.Sequential(*layers).to(device.name)
    model.register_forward_hook(lambda _model, _inputs, output: outputs.append(output.detach().clone()))
    device.shown("non-blocking-race", section).train(model, DATA, torch.optim.SGD(model.parameters(), 1e-6), history)
    return outputs


@pytest.mark.parametrize(("section", "early"), [("Bad", STEPS), ("Good", 0)])
def test_numbers_are_read_before_they_have_come_unless_their_event_is_waited_for(
    simulated: SimulatedDevice, section: str, early: int
) -> None:
    simulated.cost(kernel=1_000_000)
    read: list[float] = []
    train(simulated, section, [nn.Linear(64, 64)], History(lambda: read.append(simulated.simulator.now)))
    copies = [each for each in simulated.simulator.ledger.copies if each.kind == "device-to-host" and each.non_blocking]
    assert len(copies) == len(read) == STEPS
    assert sum(at < copy.end for at, copy in zip(read, copies, strict=True)) == early


def test_figures_are_those_of_the_outputs_where_their_event_is_waited_for(device: Device) -> None:
    """On a real device, and only there, some are others where it is not."""
    wide = [nn.Linear(64, 8192), *(nn.Linear(8192, 8192) for _ in range(8)), nn.Linear(8192, 64)]
    for section in ("Bad", "Good"):
        figures: list[Any] = []
        outputs = train(device, section, [nn.Linear(64, 64)] if device.name == "sim" else wide, figures)
        are_right = np.allclose(figures, [each.mean().item() for each in outputs], rtol=1e-4, atol=1e-6)
        assert are_right == (section == "Good" or device.name == "sim")
