from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.examine.run.launcher import launch as launching
from torchtriage.examine.run.launcher.launch import ATTACH, Ended, Launch, environment, prepared, resolved

HERE = Path("job")


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def go(*command: str, folder: Path = HERE, aside: bool = False) -> Ended:
    return launching.launch(Launch(command, folder, aside=aside), [])


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("pass", Ended(0)),
        ("raise SystemExit(3)", Ended(3)),
        ("import os; os.kill(os.getpid(), 9)", Ended(137, 9)),
        ("import os; os.kill(os.getpid(), 15)", Ended(143, 15)),
    ],
)
def test_the_jobs_own_code_comes_back_as_a_shell_tells_it(source: str, ended: Ended) -> None:
    assert go(sys.executable, "-c", source) == ended


def test_output_passes_through_to_the_byte(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    go(sys.executable, "-c", "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff')")

    assert capfdbinary.readouterr() == (bytes(range(256)), b"\xff")


def test_output_goes_to_stderr_when_ours_holds_the_case(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    go(sys.executable, "-c", "print(1)", aside=True)

    assert capfdbinary.readouterr() == (b"", b"1\n")


def test_a_script_runs_with_the_python_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert resolved(["train.py", "--lr", "1"]) == [str(tmp_path / "bin" / "python"), "train.py", "--lr", "1"]

    monkeypatch.setenv("PATH", str(tmp_path))
    assert resolved(["train.py"]) == [sys.executable, "train.py"]


@pytest.mark.parametrize(
    "command",
    [(), ("no-such-command",), ("missing.py",), (sys.executable, "missing.py"), ("./missing/tool", "x")],
    ids=str,
)
def test_what_does_not_exist_is_refused_before_anything_is_made(command: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(TriageError) as refused:
        go(*command)

    assert refused.value.code in (2, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_run_folder_hides_itself_from_git() -> None:
    assert (prepared(HERE / "deep") / ".gitignore").read_text() == "*\n"


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "precious").write_text("x")

    with pytest.raises(TriageError, match="not empty"):
        go(sys.executable, "-c", "raise AssertionError('must not start')")
    assert [path.name for path in (tmp_path / "job").iterdir()] == ["precious"]


def test_a_place_that_cannot_hold_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job").write_text("a file")

    for folder in (HERE, HERE / "below"):
        with pytest.raises(TriageError, match="cannot be written"):
            prepared(folder)


def test_a_folder_that_is_read_only_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(TriageError, match="Permission denied"):
        prepared(HERE)


def test_windows_is_told_what_works_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtriage.examine.run.launcher.launch.on_windows", lambda: True)

    with pytest.raises(TriageError, match="Windows") as refused:
        go(sys.executable, "-c", "pass")
    assert refused.value.code == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, []),
        ("", []),
        ("a", ["a"]),
        (os.pathsep.join("ab"), ["a", "b"]),
        (os.pathsep + "a", ["<cwd>", "a"]),
        (os.pathsep.join(["a", "", "b", ""]), ["a", "<cwd>", "b", "<cwd>"]),
        (str(ATTACH) + os.pathsep + "a", ["a"]),
    ],
)
def test_pythonpath_keeps_its_meaning_and_has_no_empty_entry(
    before: str | None, after: list[str], tmp_path: Path
) -> None:
    outer = {} if before is None else {"PYTHONPATH": before}
    entries = environment(outer, tmp_path, [])["PYTHONPATH"].split(os.pathsep)

    assert entries == [str(ATTACH), *(entry.replace("<cwd>", str(Path.cwd())) for entry in after)]


def test_the_environment_of_an_outer_run_is_not_handed_on(tmp_path: Path) -> None:
    outer = {"TORCHTRIAGE_STEPS": "5", "TORCHTRIAGE_FOLDER": "elsewhere", "HOME": "h"}
    inner = environment(outer, tmp_path, [tmp_path / "a", tmp_path / "b"])

    assert inner["HOME"] == "h"
    assert inner["TORCHTRIAGE_FOLDER"] == str(tmp_path)
    assert inner["TORCHTRIAGE_PROBES"] == f"{tmp_path / 'a'}{os.pathsep}{tmp_path / 'b'}"
    assert "TORCHTRIAGE_STEPS" not in inner
    assert "TORCHTRIAGE_FOCUS" not in inner
    assert environment(outer, tmp_path, [], focus=("one_room", "another"))["TORCHTRIAGE_FOCUS"] == "one_room another"


PARENT = """
import signal, sys
from pathlib import Path
# under nohup, or in the background of a script, these would be ignored from the start, and rightly so
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from torchtriage.examine.run.launcher.launch import Launch, launch
job = '''
import signal, sys, os
def told(number, frame):
    print("job got", number, flush=True)
    sys.exit(5)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, told)
print("ready", flush=True)
while True:  # a pause() that begins just after a signal was noted waits for ever
    signal.sigtimedwait((), 0.05)
'''
print("ended", launch(Launch((sys.executable, "-c", job), Path("job")), []), flush=True)
"""


HANDED_ON = [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2]


@pytest.mark.parametrize("number", HANDED_ON)
def test_a_signal_that_reaches_us_alone_is_handed_on_and_the_parent_reports(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        parent.send_signal(number)
        assert parent.stdout.read() == f"job got {number.value}\nended Ended(code=5, signal=None, leads=True)\n"


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["to the group, as a terminal does", "to us alone"])
def test_ctrl_c_ends_the_job_and_the_parent_reports(send: Callable[[int, int], None]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        send(parent.pid, signal.SIGINT)
        out, _ = parent.communicate()

    assert out == "ended Ended(code=130, signal=2, leads=True)\n"


def test_signal_handlers_are_put_back_and_other_threads_may_launch() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    ended: list[Ended] = []
    thread = threading.Thread(target=lambda: ended.append(go(sys.executable, "-c", "pass")))
    thread.start()
    thread.join()
    go(sys.executable, "-c", "pass", folder=Path("second"))

    assert ended == [Ended(0)]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
