"""Kills, power cuts, errors of the disk and flipped bits: smaller campaigns of bench/crash.py."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import crash
import pytest
import torch
from forked import Server

from torchtriage.toolkit.state import disk


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("torch", "torch._dynamo", "torch.distributed.tensor")
    yield server
    server.close()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


SCRIPT = """
import os, signal, sys
sys.path[:0] = {path!r}
import crash, torch
from pathlib import Path
torch.set_num_threads(1)
crash.warmed(Path("warm"))
for half in (False, True):
    for at in range(100):
        root = Path(f"{{half}}{{at}}")
        code = crash.forked(lambda: crash._killed(root, {options!r}, at, half))
        if code == 0:
            break
        assert code == -signal.SIGKILL, code
        print(crash.loaded(root))
    else:
        raise AssertionError("no save came to its end")
"""


@pytest.mark.parametrize("options", [{}, {"keep": 1, "async_": True}], ids=str)
def test_a_process_killed_at_any_change_of_its_save_leaves_the_old_step_or_the_new(
    tmp_path: Path, options: dict[str, object], server: Server
) -> None:
    script = SCRIPT.format(path=[str(Path(crash.__file__).parent)], options=options)
    done = server.run("-c", script, place=tmp_path)
    assert done.returncode == 0, done.stderr
    said = done.stdout.split()
    assert set(said) == {"1", "2"}
    assert len(said) > 20


def test_a_power_cut_at_any_moment_leaves_the_old_step_or_the_new_and_the_new_one_once_save_has_returned(
    tmp_path: Path,
) -> None:
    found = crash.power(tmp_path)
    assert sum(found.values()) > 200
    assert set(found) == {"step 1", "step 2"}


def test_the_model_of_a_power_cut_sees_a_save_that_does_not_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "synced", lambda file, path: contextlib.nullcontext())
    with pytest.raises(AssertionError, match="loaded"):
        crash.power(tmp_path)


def test_the_model_of_a_power_cut_sees_a_rename_that_is_not_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "settle", lambda folder: None)
    with pytest.raises(AssertionError, match="loaded"):
        crash.power(tmp_path)


def test_an_error_of_the_disk_at_any_change_is_told_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crash, "ERRORS", crash.ERRORS[:2])
    assert set(crash.errors(tmp_path)) == {"step 1", "step 2"}


def test_every_flipped_bit_zeroed_page_cut_end_and_swapped_file_is_found_and_named(tmp_path: Path) -> None:
    found = crash.flips(tmp_path, 300)
    assert sum(found.values()) > 300
    assert any("of another save" in each for each in found)


AUDITED = """
import sys
sys.path[:0] = {path!r}
import crash, os, torch
from pathlib import Path
from torchtriage.toolkit.state import disk
made = crash.Small(Path("steps"), keep=1)
made.save(1)
changed, asked = [], []
CHANGING = {{"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree", "shutil.move"}}
def listen(event, given):
    if event in CHANGING or (event == "open" and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
        if given[0] != os.devnull:
            changed.append((event, str(given[0])))
sys.addaudithook(listen)
disk.before = lambda change: asked.append(change) if change.kind not in ("write", "fsync", "settle") else None
made.save(2)
made.state.close()
names = {{"open": "create", "os.rename": "rename", "os.remove": "unlink", "os.mkdir": "mkdir", "os.rmdir": "rmdir"}}
assert [(names[event], Path(path).name) for event, path in changed] == [(each.kind, Path(each.path).name) for each in asked], (changed, asked)
assert len(asked) >= 10
"""


def test_no_change_of_the_disk_goes_around_the_module_that_makes_them(tmp_path: Path, server: Server) -> None:
    script = AUDITED.format(path=[str(Path(crash.__file__).parent)])
    done = server.run("-c", script, place=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_kill_ends_the_process_before_the_change(tmp_path: Path) -> None:
    def work() -> None:
        disk.before = crash.killed_at(0)
        disk.mkdir(tmp_path / "never")

    assert crash.forked(work) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []
