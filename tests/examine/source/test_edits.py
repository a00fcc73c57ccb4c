"""The edit that clip-before-unscale hands out: it mends its finding, and it is held back where it could do harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.catalog import walk
from torchtriage.catalog.page import read

STEP = """import torch
def train(model: torch.nn.Module, loader, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler, other, n):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        scaler.scale(model(x)).backward()
{body}
"""
PLAIN = """
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()"""


def edits(path: Path):
    (finding,) = triage.check([path]).findings
    return [edit for item in finding.evidence for edit in item.edits]


def mended(path: Path) -> bytes:
    data = path.read_bytes()
    for edit in sorted(edits(path), key=lambda edit: -edit.start):
        data = data[: edit.start] + edit.text.encode() + data[edit.end :]
    return data


@pytest.mark.parametrize("change", [("", ""), ("\n", "\r\n"), ("import torch", "größe = 'ä'\nimport torch")])
def test_the_edit_mends_what_it_was_handed_out_for(tmp_path: Path, change: tuple[str, str]) -> None:
    path = tmp_path / "train.py"
    bad = (
        read(walk.pages()["clip-before-unscale"]).snippet("Bad").replace(*change)
        if change[0]
        else STEP.format(body=PLAIN)
    )
    path.write_bytes(bad.encode())
    path.write_bytes(mended(path))
    assert triage.check([path]).findings == ()
    assert path.read_text().count("scaler.unscale_(optimizer)") == 1


def test_the_edit_makes_the_bad_block_of_the_page_the_good_one(tmp_path: Path) -> None:
    page, path = read(walk.pages()["clip-before-unscale"]), tmp_path / "train.py"
    path.write_text(page.snippet("Bad"))
    assert mended(path).decode() == page.snippet("Good")
    assert {edit.remedy for edit in edits(path)} == {page.fault.remedies[0].id}


@pytest.mark.parametrize(
    "body",
    [
        PLAIN.replace("scaler.step(optimizer)", "if i % n == 0:\n            scaler.step(optimizer)"),
        PLAIN.replace("scaler.step(optimizer)", "scaler.unscale_(optimizer)\n        scaler.step(optimizer)"),
        PLAIN.replace("scaler.step(optimizer)", "scaler.step(optimizer)\n        scaler.step(other)"),
        PLAIN.replace("scaler.step(optimizer)", "scaler.step(other[0])"),
        PLAIN.replace("        torch.nn", "        if n: torch.nn"),
    ],
    ids=["accumulated", "unscaled later", "two optimizers", "no name", "on a line with its condition"],
)
def test_no_edit_is_handed_out_where_unscaling_could_be_wrong(tmp_path: Path, body: str) -> None:
    path = tmp_path / "train.py"
    path.write_text(STEP.format(body=body))
    assert edits(path) == []
