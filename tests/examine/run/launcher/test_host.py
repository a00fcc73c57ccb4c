"""What a host tells of processes that it killed for memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchtriage.examine.run.launcher import host
from torchtriage.examine.run.launcher.host import killed_for_memory, oom_kills

V2 = {"proc/self/cgroup": "0::/jobs/seven\n", "sys/fs/cgroup/jobs/seven/memory.events": "low 0\noom 2\noom_kill 3\n"}
MOUNTED = {"proc/self/cgroup": "0::/jobs/seven\n", "sys/fs/cgroup/memory.events": "oom_kill 4\n"}
V1 = {
    "proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/docker/b\n",
    "sys/fs/cgroup/memory/docker/b/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
}
VMSTAT = {"proc/vmstat": "pgfault 9\noom_kill 7\n"}


def laid(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "kills"),
    [(V2, {"cgroup": 3}), (MOUNTED, {"cgroup": 4}), (V1, {"cgroup": 5}), (VMSTAT, {"host": 7}), ({}, {}),
     ({**V2, **VMSTAT}, {"host": 7, "cgroup": 3}), ({"proc/self/cgroup": "0::/gone\n"}, {})],
)  # fmt: skip
def test_the_counters_of_every_kind_of_host_are_read(
    files: dict[str, str], kills: dict[str, int], tmp_path: Path
) -> None:
    assert oom_kills(laid(tmp_path, files)) == kills


LINE = "6,900,1234,-;Memory cgroup out of memory: Killed process 4711 (python3) total-vm:900kB, anon-rss:2048kB, file-rss:0kB\n"


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        ({"cgroup": 1, "host": 4}, {"cgroup": 2, "host": 5}, "cgroup"),
        ({"cgroup": 1, "host": 4}, {"cgroup": 1, "host": 5}, "host"),
        ({"host": 4}, {"host": 4}, None),
        ({}, {"host": 4}, None),
        ({}, {}, None),
    ],
)
def test_a_counter_that_moved_tells_of_a_kill_in_the_kernels_words(
    before: dict[str, int], after: dict[str, int], by: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "kmsg"
    log.write_text("6,1,1,-;eth0: link up\n" + LINE)
    monkeypatch.setattr(host, "oom_kills", lambda: after)
    told = killed_for_memory(before, log)
    assert (told or {}).get("by") == by
    if told is not None:
        assert (told["kills"], told["pid"], told["name"], told["resident"]) == (1, 4711, "python3", 2 << 20)
        assert killed_for_memory(before, tmp_path / "none") == {"by": by, "kills": 1}
