"""Bad luck: whatever a job does, it ends as it would have without probes, and its record tells how far it came."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.examine.run.launcher.launch import Ended, Launch, launch, prepared
from torchtriage.examine.run.reader import load
from torchtriage.triage import probes

Run = Callable[..., Any]

TRAIN = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(4, 4)).square().mean().backward()
    optimizer.step()
"""

HOOKS = (
    """
import sys, torch
from torch.nn.modules import module as modules
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
seen = []
modules.register_module_forward_pre_hook(lambda *_: seen.append("pre") and None)
modules.register_module_forward_hook(lambda *_: seen.append("post") and None)
modules.register_module_full_backward_hook(lambda *_: seen.append("back") and None)
register_optimizer_step_pre_hook(lambda *_: seen.append("stepping") and None)
register_optimizer_step_post_hook(lambda *_: seen.append("stepped") and None)
old = torch.Tensor.backward
def backward(self, *args, **kwargs):
    seen.append("backward")
    return old(self, *args, **kwargs)
torch.Tensor.backward = backward
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None
sys.meta_path.insert(0, Finder)
sys.excepthook = lambda kind, *_: print("the hook of the job", kind.__name__, file=sys.stderr)
"""
    + TRAIN.replace("torch.randn(4, 4)", "torch.randn(4, 4, requires_grad=True)")
    + """
print({each: seen.count(each) for each in sorted(set(seen))}, torch.Tensor.backward is backward, sys.meta_path[0] is Finder)
raise ValueError("of the job's own")
"""
)

MEGABYTES = TRAIN + "\nfor _ in range(30):\n    sys.stdout.write('o' * 100_000); sys.stderr.write('e' * 100_000)\n"

NOWHERE = (
    TRAIN
    + """
    if step == 1:
        import tempfile
        gone = tempfile.mkdtemp()
        os.chdir(gone)
        os.rmdir(gone)
"""
)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (HOOKS, ()),
        (MEGABYTES, ()),
        (NOWHERE, ()),
        (TRAIN, ("-W", "error", "-X", "dev")),
        (TRAIN, ("-OO", "-X", "frozen_modules=on")),
    ],
    ids=["hooks of its own", "megabytes of output", "no working folder", "warnings are errors", "optimised"],
)
def test_a_job_says_and_ends_the_same_and_is_seen_whole(run: Run, source: str, options: tuple[str, ...]) -> None:
    plain, watched = (run(source, *options, watched=yes, probes=probes()) for yes in (False, True))

    assert (watched.code, watched.stdout, watched.stderr) == (plain.code, plain.stdout, plain.stderr)
    assert [event["step"] for event in watched.events("step")] == list(range(12))
    assert watched.events("probe-off") == []


def test_a_job_without_the_three_streams_keeps_its_record_clean(run: Run) -> None:
    closed = "import os\nfor number in range(3): os.close(number)\n"
    written = (
        "\nfor number in range(3):\n    try: os.write(number, b'of the job')\n    except OSError: pass\nos._exit(4)\n"
    )
    trial = run(closed + TRAIN + written, probes=probes())

    assert trial.code == 4
    assert len(trial.events("step")) == 12
    assert "of the job" not in (trial.folder / "rank0.jsonl").read_text()


def test_a_job_that_replaces_itself_leaves_a_record_of_each_life(run: Run) -> None:
    again = """
lives = int(os.environ.get("LIVES", "3"))
if lives > 1:
    os.environ["LIVES"] = str(lives - 1)
    os.execv(sys.executable, [sys.executable, "train.py"])
"""
    trial = run(TRAIN + again)

    assert len(list(trial.folder.glob("rank0*.jsonl"))) == 3
    assert all(len(trial.events("step", path.name)) == 12 for path in trial.folder.glob("rank0*.jsonl"))


def test_a_probe_that_raises_anywhere_is_off_and_inconclusive_and_the_job_goes_on(run: Run, tmp_path: Path) -> None:
    room = tmp_path / "some_room" / "probes"
    room.mkdir(parents=True)
    (room / "__init__.py").touch()
    (room / "theme.py").write_text("""
from torchtriage.examine.run.job.events import Event
class Worked(Event): pass
def placing(job): raise RuntimeError("while placing")
def hearing(job): job.on("stepped", lambda optimizer: 1 / 0)
def working(job): job.on("iterated", lambda step: job.record(Worked()))
""")
    trial = run(TRAIN, probes=(room,))
    seen = {item.detector: item.why for item in load.read(trial.folder).inconclusive}

    assert (trial.code, trial.stderr) == (0, "")
    assert "RuntimeError: while placing" in seen["run/some_room/placing"]
    assert "ZeroDivisionError" in seen["run/some_room/hearing"]
    assert len(trial.events("worked")) == 12


def started(folder: Path, *command: str) -> Ended:
    return launch(Launch(command, folder), probes())


def notes(folder: Path) -> list[str]:
    path = folder / "processes.jsonl"
    return [json.loads(line)["kind"] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("a träin ☃.py",),
        ("bash", "-c", "python -m pkg"),
        ("bash", "-c", "cd pkg && python __main__.py & wait"),
        ("python", "-X", "utf8", "-m", "pkg"),
        ("env", "FOO=1", "python", "pkg"),
    ],
    ids=" ".join,
)
def test_however_python_is_started_it_takes_the_probes_up(place: Path, words: tuple[str, ...]) -> None:
    (place / "pkg").mkdir()
    for name in ("a träin ☃.py", "pkg/__main__.py"):
        (place / name).touch()
    assert started(place / "run", *words) == Ended(0)
    assert notes(place / "run") == ["attached", "ended"]


@pytest.mark.parametrize("how", ["-I", "-S", "-E", "PYTHONPATH="])
def test_a_python_that_takes_no_probes_up_runs_unseen_and_that_is_said(place: Path, how: str) -> None:
    words = ("env", how, "python", "-c", "pass") if "=" in how else ("python", how, "-c", "raise SystemExit(6)")
    ended = started(place / "run", *words)

    assert ended == Ended(0 if "=" in how else 6)
    assert notes(place / "run") == ["ended"]
    (item,) = load.read(place / "run").inconclusive
    assert item.detector == "run/attach"
    assert "-I, -E or -S, an emptied PYTHONPATH" in item.why


@pytest.mark.skipif(shutil.which("torchrun") is None, reason="torchrun stands beside the torch that has it")
def test_a_job_under_torchrun_is_seen(place: Path) -> None:
    (place / "train.py").write_text(TRAIN)
    assert started(place / "run", "torchrun", "--standalone", "--nproc-per-node", "1", "train.py") == Ended(0)

    (rank,) = load.read(place / "run").ranks
    assert rank.count == 12


def test_of_two_runs_into_one_folder_at_the_same_moment_one_is_refused(place: Path) -> None:
    for number in range(20):
        meeting, got = threading.Barrier(4), list[str]()

        def prepare(number: int = number, meeting: threading.Barrier = meeting, got: list[str] = got) -> None:
            meeting.wait()
            try:
                prepared(place / f"run{number}")
                got.append("mine")
            except TriageError as error:
                got.append(error.what)

        threads = [threading.Thread(target=prepare) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(got) == ["mine", *["the folder is not empty"] * 3]


def mounted(folder: Path) -> bool:
    """A disk of its own of 64 KiB, where this user may mount one."""
    folder.mkdir()
    if os.name != "posix" or shutil.which("mount") is None:
        return False
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)], capture_output=True)
    return done.returncode == 0


def test_a_disk_that_is_full_ends_the_record_and_not_the_job(tmp_path: Path) -> None:
    if not mounted(tmp_path / "disk"):
        pytest.skip("this user may not mount a disk")
    try:
        (tmp_path / "train.py").write_text(TRAIN.replace("range(12)", "range(400)") + "print('done')\n")
        ended = started(tmp_path / "disk" / "run", sys.executable, str(tmp_path / "train.py"))
        (rank,) = load.read(tmp_path / "disk" / "run").ranks
        said = {item.detector: item.why for item in load.read(tmp_path / "disk" / "run").inconclusive}
    finally:
        subprocess.run(["umount", str(tmp_path / "disk")], check=True)

    assert ended == Ended(0)
    assert 20 < rank.count < 400
    assert "the disk was full" in said["run/end"]
