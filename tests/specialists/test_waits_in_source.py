"""What `check` says of a loop that waits for the device."""

from __future__ import annotations

from pathlib import Path

import pytest

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


def said(tmp_path: Path, *lines: str, fault: str = "sync-bound") -> list[tuple[str, float | None]]:
    file = tmp_path / "train.py"
    file.write_text(LOOP.format(lines="\n".join(f"        {line}" for line in lines)))
    findings = (each for each in triage.check([file]).findings if each.fault.slug == fault)
    return [(item.fact, item.value) for finding in findings for item in finding.evidence]


def test_the_lines_are_named_at_which_a_batch_waits(tmp_path: Path) -> None:
    once = [("every batch waits for the device in line 14", None)]
    assert said(tmp_path, "copies.append(targets.cuda().cpu())") == once
    twice = ["print(loss.item())", "total += targets.cuda().sum().item()"]
    assert said(tmp_path, *twice) == [("every batch waits for the device in lines 14 and 15", None)]
    both = ['print(f"{loss.item()} {targets.cuda().sum().item()}")']
    assert said(tmp_path, *both) == once


@pytest.mark.parametrize(
    ("copy", "waits"),
    [
        ('.to("cpu")', True),
        ('.to(device="cpu")', True),
        ('.to("cpu", non_blocking=False)', True),
        ('.to("cpu", non_blocking=True)', False),
        ('.to("cpu", torch.float64, True)', False),
    ],
)
def test_a_copy_to_the_host_waits_unless_it_asks_not_to(tmp_path: Path, copy: str, waits: bool) -> None:
    assert bool(said(tmp_path, f"copies.append(targets.cuda(){copy})")) == waits


def test_one_number_that_the_program_goes_on_with_is_not_reported(tmp_path: Path) -> None:
    assert said(tmp_path, "total += loss.item()") == []
    assert said(tmp_path, "total += loss.item()", fault="printed-every-step") == []


@pytest.mark.parametrize(
    ("lines", "quoted"),
    [
        (["print(loss.item())"], "`loss.item()`"),
        (["print(float(loss))"], "`float(loss)`"),
        (["print(loss)"], "`print(loss)`"),
        (['print(f"loss {loss:.3f}")'], "`print(f'loss {loss:.3f}')`"),
        (['bar.set_postfix({"loss": loss.item()})'], "`loss.item()`"),
        (['logger.info("loss %.4f", loss.item())'], "`loss.item()`"),
        (["total += loss.item()", "print(loss.detach().cpu().numpy())"], "`loss.detach().cpu()`"),
        (["total += loss.item()", "bar.set_postfix(loss=float(loss))"], "`float(loss)`"),
    ],
)
def test_one_number_that_is_only_shown_is_advice(lines: list[str], quoted: str, tmp_path: Path) -> None:
    assert said(tmp_path, *lines) == []
    fact = f"{quoted} makes every batch wait for the device once"
    assert said(tmp_path, *lines, fault="printed-every-step") == [(fact, None)]


@pytest.mark.parametrize(
    "lines",
    [
        ["print(loss, loss * 2)"],
        ['print(f"{loss.item()} {loss.exp().item()}")'],
        ["print(loss.item())", "loss = loss * 2", "print(loss.item())"],
        ["print(targets.cuda().cpu())"],
        ["print(loss.item())", "torch.cuda.synchronize()"],
        ["torch.cuda.synchronize()"],
    ],
)
def test_several_waits_and_a_wait_for_everything_are_told_to_everybody(lines: list[str], tmp_path: Path) -> None:
    assert len(said(tmp_path, *lines)) == 1
    assert said(tmp_path, *lines, fault="printed-every-step") == []


def test_a_synchronize_is_named_and_meant_beside_a_clock(tmp_path: Path) -> None:
    fact = "`torch.cuda.synchronize()` makes every batch wait for the device, and no clock is read"
    assert said(tmp_path, "torch.cuda.synchronize()") == [(fact, None)]
    assert said(tmp_path, "torch.cuda.synchronize()", "times.append(time.perf_counter())") == []
    assert said(tmp_path, "if total > 9: torch.cuda.synchronize()") == []
