"""What `check` says of a loop that waits for the device."""

from __future__ import annotations

from pathlib import Path

from torchtriage import triage

LOOP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(model: nn.Module, dataset, optimizer: torch.optim.Optimizer):
    model.to("cuda")
    total = 0.0
    for inputs, targets in DataLoader(dataset, batch_size=4, num_workers=2):
        loss = nn.functional.mse_loss(model(inputs.to("cuda")), targets.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{lines}
"""


def said(tmp_path: Path, *lines: str) -> list[tuple[str, float | None]]:
    file = tmp_path / "train.py"
    file.write_text(LOOP.format(lines="\n".join(f"        {line}" for line in lines)))
    findings = (each for each in triage.check([file]).findings if each.fault.slug == "sync-bound")
    return [(item.fact, item.value) for finding in findings for item in finding.evidence]


def test_the_waits_are_counted_by_their_lines_and_by_nothing_else(tmp_path: Path) -> None:
    assert said(tmp_path, "print(loss.item())") == [("every batch waits for the device once (line 14)", None)]
    twice = ["print(loss.item())", "total += loss.item()"]
    assert said(tmp_path, *twice) == [("every batch waits for the device 2 times (lines 14, 15)", None)]


def test_one_number_that_the_program_goes_on_with_is_not_reported(tmp_path: Path) -> None:
    assert said(tmp_path, "total += loss.item()") == []
