from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.examine.trial.leg import ending, mirror
from torchtriage.examine.trial.leg.execute import Ended, Leg, execute, refusal
from torchtriage.examine.trial.leg.mirror import mirrored

Run = Callable[..., Ended]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's working folder."""
    folder = tmp_path / "home"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "large.bin").write_bytes(b"large" * 10)
    (folder / "notes.txt").write_text("mine")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(mirror, "caches", list)
    return folder


@pytest.fixture
def run(home: Path, tmp_path: Path) -> Run:
    """Runs Python source as one leg of its own mirror."""

    def run(source: str, *words: str, **fields: object) -> Ended:
        (home / "job.py").write_text(source)
        with mirrored(tmp_path / "trial" / "legs", home, keep=True) as made:
            return execute(Leg("first", (sys.executable, "job.py", *words), made, **fields))  # type: ignore[arg-type]

    return run


def before_and_after(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_folder_that_is_where_the_mirror_would_be_is_left_as_it_is(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "out" / "leg"
    place.mkdir(parents=True)
    (place / "weights.bin").write_bytes(b"mine")
    with pytest.raises(TriageError, match="File exists"), mirrored(place, home):
        pass
    assert (place / "weights.bin").read_bytes() == b"mine"


WRITES = {
    "a file that is there": "open('notes.txt', 'w').write('theirs')",
    "a file that is appended to": "open('notes.txt', 'a').write('theirs')",
    "a link to a large file": "open('data/large.bin', 'r+b').write(b'theirs')",
    "a link by its number": "import os; os.write(os.open('data/large.bin', os.O_RDWR), b'theirs')",
    "a removed link": "import os; os.remove('data/large.bin')",
    "a replaced link": "import os; open('new', 'w').write('x'); os.replace('new', 'data/large.bin')",
    "a removed folder": "import shutil; shutil.rmtree('data')",
    "a folder that is linked": "open('linked/inner.txt', 'w').write('theirs')",
    "a new file in a folder that is linked": "open('linked/other.txt', 'w').write('theirs')",
    "a removed file in a folder that is linked": "import os; os.remove('linked/inner.txt')",
    "a folder in a folder that is linked": "import os; os.makedirs('linked/a/b')",
    "a truncated link": "import os; os.truncate('data/large.bin', 1)",
    "pathlib": "import pathlib; pathlib.Path('data/large.bin').write_bytes(b'theirs')",
    "a path from the script's own": "import pathlib; (pathlib.Path(__file__).resolve().parent / 'notes.txt').write_text('t')",
    "a child": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'open(\"data/large.bin\", \"w\")'])",
    "a fork": "import os; pid = os.fork(); (pid or [open('data/large.bin', 'w'), os._exit(0)]) and os.waitpid(pid, 0)",
}


@pytest.mark.parametrize("source", WRITES.values(), ids=WRITES)
def test_whatever_a_leg_writes_the_users_files_stay_as_they_are(
    source: str, run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "SMALL", 1000)
    monkeypatch.setattr(mirror, "WRITTEN", 20)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "inner.txt").write_text("inner")
    (home / "linked").symlink_to(outside)
    (home / "job.py").write_text(source)
    before = before_and_after(home) | before_and_after(outside)

    ended = run(source)

    assert ended.code == 0, ended.said
    assert before_and_after(home) | before_and_after(outside) == before


def test_a_leg_reads_what_it_has_written_and_what_was_there(run: Run) -> None:
    source = "open('notes.txt', 'a').write('!'); assert open('notes.txt').read() == 'mine!'; open('out', 'w')"
    assert run(source).code == 0


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("open({path!r}, 'w')", "overwritten"),
        ("open({path!r}, 'a')", "overwritten"),
        ("import os; os.remove({path!r})", "removed"),
        ("import os; open('x', 'w'); os.replace('x', {path!r})", "overwritten"),
        ("import os; os.rename({path!r}, 'x')", "moved away"),
        ("try:\n    open({path!r}, 'w')\nexcept BaseException:\n    pass", "overwritten"),
        ("import sqlite3; sqlite3.connect({path!r})", "overwritten"),
    ],
)
def test_a_file_elsewhere_that_was_there_ends_the_leg(source: str, how: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fixed.pt"
    path.write_text("mine")

    ended = run(source.format(path=str(path)))

    assert path.read_text() == "mine"
    assert ended.refused is not None
    assert (ended.refused.path, ended.refused.how) == (str(path), how)
    assert ended.refused.line.startswith("job.py:")


def test_a_refusal_names_the_file_the_line_and_the_way_out(run: Run, tmp_path: Path, home: Path) -> None:
    (tmp_path / "fixed.pt").write_text("mine")
    ended = run(f"open({str(tmp_path / 'fixed.pt')!r}, 'w')")
    assert ended.refused is not None
    with mirrored(tmp_path / "again", home) as made:
        said = str(refusal(ended.refused, Leg("first", ("train.py",), made)))
    assert said.startswith(f"{tmp_path / 'fixed.pt'}: the first leg was ended before it")
    assert "by job.py:1" in said
    assert "{leg}" in said


def test_new_files_elsewhere_are_told_and_may_be_written_again(run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "new.txt")
    ended = run(f"open({path!r}, 'w'); open({path!r}, 'a'); import os; os.remove({path!r}); open({path!r}, 'w')")
    assert ended.code == 0
    assert ended.elsewhere == (path,)


def test_a_leg_names_its_own_folder(run: Run, tmp_path: Path, home: Path) -> None:
    source = "import os, sys; assert sys.argv[1] == f'--out={os.getcwd()}/out' and sys.argv[2:] == [os.getcwd() + '/data'] * 2"
    assert run(source, "--out={leg}/out", "{leg}/data", str(home / "data")).code == 0


def test_temporary_files_are_the_legs_and_gone_afterwards(run: Run) -> None:
    source = "import tempfile; f = tempfile.NamedTemporaryFile(delete=False); g = open(f.name, 'w'); print(f.name)"
    source += "\nimport sys; sys.stderr.write(f.name)"
    ended = run(source)
    assert (ended.code, ended.elsewhere) == (0, ())
    assert not Path(ended.said[0]).exists()


def test_a_leg_that_takes_too_long_is_ended_with_all_its_children(run: Run, tmp_path: Path) -> None:
    source = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
open("pids", "w").write(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""
    ended = run(source, timeout=1.5)
    assert ended.late
    pids = (tmp_path / "trial" / "legs" / "work" / "pids").read_text().split()
    assert not [pid for pid in pids if living(int(pid))]


def test_a_leg_that_is_done_is_killed(run: Run, tmp_path: Path) -> None:
    mark = tmp_path / "trial" / "legs" / "work" / "mark"
    ended = run("open('mark', 'w').close()\nimport time; time.sleep(600)", done=mark.exists)
    assert ended.stopped
    assert ended.code == 128 + signal.SIGKILL


def test_what_a_job_says_last_is_kept(run: Run) -> None:
    ended = run("print('out'); raise ValueError('a fault of the job')")
    assert ended.code == 1
    assert ended.said[-1] == "ValueError: a fault of the job"


def test_a_file_that_torch_saves_in_place_is_guarded_too(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "fixed.pt"
    path.write_text("mine")
    ended = run(f"import torch; torch.save({{}}, {str(path)!r})")
    assert ended.refused is not None
    assert path.read_text() == "mine"


def test_a_signal_that_ends_us_ends_the_leg(home: Path, tmp_path: Path) -> None:
    (home / "job.py").write_text("import os, time; open('mark', 'w').write(str(os.getpid())); time.sleep(600)")
    ours = f"""
import sys
from pathlib import Path
from torchtriage.examine.trial.leg.execute import Leg, execute
from torchtriage.examine.trial.leg.mirror import mirrored
with mirrored(Path({str(tmp_path / "legs")!r}), keep=True) as made:
    execute(Leg("first", (sys.executable, "job.py"), made))
"""
    process = subprocess.Popen([sys.executable, "-c", ours], cwd=home)
    mark = tmp_path / "legs" / "work" / "mark"
    pid = until(lambda: mark.read_text() if mark.exists() else "")
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert not living(int(pid))


def until(look: Callable[[], str]) -> str:
    for _ in range(3000):
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError("it never came")


def living(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


def test_the_mirror_links_what_is_large_and_what_is_a_whole(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "SMALL", 20)
    monkeypatch.setattr(mirror, "WRITTEN", 60)
    for name in (".git", "venv", "torchtriage-runs", "__pycache__"):
        (home / name).mkdir()
    (home / "venv" / "pyvenv.cfg").write_text("")
    (home / "data" / "pictures.tar").write_bytes(b"x" * 100)
    (home / "latest").symlink_to("data")
    with mirrored(tmp_path / "legs", home) as made:
        links = {path.name for path in made.work.rglob("*") if path.is_symlink()}
        assert links == {".git", "venv", "pictures.tar", "latest"}
        assert (made.work / "latest").resolve() == made.work / "data"
        assert not (made.work / "torchtriage-runs").exists()
        assert made.changed() == []
        (home / "data" / "pictures.tar").write_bytes(b"y")
        assert made.changed() == [home / "data" / "pictures.tar"]
    assert not (tmp_path / "legs").exists()


def test_an_edit_in_the_mirror_never_reaches_the_users_file(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "SMALL", 4)
    monkeypatch.setattr(mirror, "MANY", 3)
    names = ("train.py", "linked.py", "whole/a.py", "whole/b.py", "whole/c.py")
    for name in names:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text("a large file")
    (home / "part").mkdir()
    (home / "part" / "model.py").write_text("x")
    with mirrored(tmp_path / "leg", home) as made:
        told = {name: made.edit(name, b"edited") for name in (*names, "part/model.py")}
        written = [name for name, is_done in told.items() if is_done and (made.work / name).read_bytes() == b"edited"]
    assert {name for name, is_done in told.items() if not is_done} == {name for name in names if "whole" in name}
    assert sorted(written) == ["linked.py", "part/model.py", "train.py"]
    assert {(home / name).read_text() for name in names} == {"a large file"}


def test_a_mirror_inside_its_own_source_does_not_hold_itself(home: Path) -> None:
    with mirrored(home / "out" / "legs", home) as made:
        assert sorted(path.name for path in made.work.iterdir()) == ["data", "notes.txt", "out"]
        assert list((made.work / "out").iterdir()) == []


def test_a_place_that_is_taken_is_told(home: Path, tmp_path: Path) -> None:
    (tmp_path / "legs").mkdir()
    with pytest.raises(TriageError, match="cannot be mirrored"), mirrored(tmp_path / "legs", home):
        pass


def test_processes_are_known_by_their_mark() -> None:
    assert ending.bearing("no such mark") == []
