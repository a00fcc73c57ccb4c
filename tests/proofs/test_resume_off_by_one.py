"""A resume runs the finished epoch again, or loses the scheduler's step; the mended one does neither."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn


@pytest.mark.parametrize(("section", "epochs"), [("Bad", [0, 1, 1, 2, 3]), ("Good", [0, 1, 2, 3])])
def test_the_epochs_of_a_stopped_and_resumed_training(shown, section: str, epochs: list[int], tmp_path: Path) -> None:
    train, path = shown("resume-off-by-one", section).train, str(tmp_path / "last.pt")
    loader = [(torch.ones(2, 3), torch.ones(2, 1))]
    assert train(nn.Linear(3, 1), loader, 2, path) + train(nn.Linear(3, 1), loader, 4, path) == epochs


def rates(save_first: bool, stop_after: int | None) -> list[float]:
    def make():
        optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.1)

    optimizer, scheduler = make()
    seen = []
    for epoch in range(6):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        saved = (optimizer.state_dict(), scheduler.state_dict()) if save_first else None
        saved = torch.load(_written(saved)) if saved else None
        scheduler.step()
        saved = saved or (optimizer.state_dict(), scheduler.state_dict())
        if epoch == stop_after:
            optimizer, scheduler = make()
            optimizer.load_state_dict(saved[0])
            scheduler.load_state_dict(saved[1])
    return seen


def _written(state):
    from io import BytesIO

    buffer = BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return buffer


def test_a_scheduler_that_is_saved_before_its_step_stays_behind() -> None:
    assert rates(save_first=False, stop_after=0) == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
    assert rates(save_first=True, stop_after=0) == pytest.approx([1, 1, 1, 0.1, 0.1, 0.01])
