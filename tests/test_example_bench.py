"""bench/example.py: the processes that it starts end with it, and its table says what was found how often."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import example
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children() -> set[int]:
    return {int(each) for task in Path("/proc/self/task").iterdir() for each in (task / "children").read_text().split()}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_the_busy_processes_end_with_the_block_also_when_it_fails() -> None:
    before = children()
    started: set[int] = set()
    with pytest.raises(ZeroDivisionError), example.busy(2):  # noqa: PT012 - the block is what is looked at
        started |= children() - before
        raise ZeroDivisionError
    assert len(started) == 2
    assert not any(map(is_running, started))


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_a_busy_process_ends_when_the_command_was_killed() -> None:
    parent = (
        "import os, subprocess, sys, time\n"
        f"each = subprocess.Popen([sys.executable, '-c', {example.COMPUTING!r}, str(os.getpid())])\n"
        "print(each.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout is not None
        end = os.pidfd_open(int(command.stdout.readline()))
        command.kill()
    assert select.select([end], [], [], 120)[0] == [end]
    os.close(end)


def test_the_table_has_each_expected_fault_its_interval_and_what_was_not_planted() -> None:
    ends = defaultdict(list, {"input-bound": [0.41, 0.52]})
    said = Counter({"input-bound": 2, "graph-retained": 1, "sync-bound": 1})
    rows = [" ".join(row.split()) for row in example.told(said, ends, 2)]
    assert rows[0].startswith("input-bound 2/2 100.0 %")
    assert rows[0].endswith("near end 0.41 to 0.52")
    assert rows[1].startswith("clip-before-unscale 0/2")
    assert rows[-1].startswith("sync-bound 1/2")
    assert rows[-1].endswith("(not planted)")


def test_it_runs_what_the_readme_shows() -> None:
    assert f"torchtriage run -- examples/{example.EXAMPLE.name}" in README
    assert example.EXAMPLE.is_file()
