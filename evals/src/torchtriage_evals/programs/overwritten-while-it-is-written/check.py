"""Wherever the writing breaks off, the file still has the state before; otherwise it has the new one."""

from pathlib import Path
from typing import Any

import torch

SAVE = torch.save


class Cut(Exception):
    """The machine has gone away."""


def broken(state: Any, target: Any, *given: Any, **named: Any) -> None:
    """Writes half of what torch.save would write."""
    whole = Path("whole.bin")
    SAVE(state, whole)
    half = whole.read_bytes()[: whole.stat().st_size // 2]
    if hasattr(target, "write"):
        target.write(half)
        target.flush()
    else:
        Path(target).write_bytes(half)
    raise Cut


def check(program: Any) -> None:
    folder = Path("kept")
    folder.mkdir()
    path = folder / "last.pt"
    program.save({"weight": torch.ones(64)}, path)
    assert torch.equal(program.load(path)["weight"], torch.ones(64)), "the first state is not there"
    torch.save = broken
    for _ in range(2):
        try:
            program.save({"weight": torch.zeros(64)}, path)
        except Cut:
            pass
        else:
            raise AssertionError("an error in the middle of the writing is not told")
        assert path.exists(), "after a crash no state is left"
        try:
            found = program.load(path)["weight"]
        except Exception as error:
            raise AssertionError(f"after a crash the file cannot be read: {type(error).__name__}") from error
        assert torch.equal(found, torch.ones(64)), "after a crash another state is there"
    torch.save = SAVE
    program.save({"weight": torch.full((64,), 2.0)}, str(path))
    assert torch.equal(program.load(path)["weight"], torch.full((64,), 2.0)), "the new state is not there"
    assert [each.name for each in folder.iterdir()] == ["last.pt"], "files are left beside it"
