"""The trial runs in a process of the user's Python, in a scratch folder: what crashes or hangs there ends no other."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from torchtriage.core.errors import NOTHING_EXAMINED, USAGE, TriageError
from torchtriage.examine.run.launcher.launch import on_windows
from torchtriage.examine.trial.gradient.asked import Asked
from torchtriage.examine.trial.gradient.record import GradientTrial, gathered
from torchtriage.examine.trial.leg.ending import MARK, ended_with_us

BOOT = Path(__file__).resolve().parent / "boot.py"
STARTS = 4  # processes at most: after a crash the rest is looked at in a new one
FIRST = ("import", "inputs")
_LOOK = 0.05  # seconds between two looks at what the process has written

Line = dict[str, Any]


def tried(asked: Asked, say: Callable[[str], None] = lambda _: None) -> GradientTrial:
    """What the trial shows. SAY is told what is being looked at.

    Raises TriageError where the function cannot be found or called, or its inputs cannot be made.
    """
    if on_windows():
        raise TriageError("gradients are not tried on Windows", "torchtriage gradcheck", "Use Linux, macOS or WSL.")
    lines: list[Line] = []
    skip: list[str] = []
    with TemporaryDirectory(prefix="torchtriage-gradcheck-") as name:
        scratch = mirrored(Path(name) / "work", Path.cwd())
        for number in range(STARTS):
            answer = Path(name) / f"answer{number}.jsonl"
            broken = _run(asked, scratch, answer, skip, say)
            new = list(_lines(answer))
            lines += [each for each in new if each["kind"] in {"subject", "result", "refused"}]
            if not broken:
                break
            at = next((each["check"] for each in reversed(new) if each["kind"] == "begun"), "import")
            _refuse_start(at, broken, asked, Path(name))
            lines.append(_ended(at, broken))
            done = (each["check"] for each in new if each["kind"] == "result" and each["check"] != "backward")
            skip = [*skip, at, *done]
    refused = next((each for each in lines if each["kind"] == "refused"), None)
    if refused is not None:
        code = USAGE if refused["code"] == USAGE else NOTHING_EXAMINED
        raise TriageError(refused["what"], refused["where"], refused["do"], code)
    return gathered(asked, lines)


def _ended(check: str, how: str) -> Line:
    do = "Run that situation by itself, under a debugger or with TORCH_SHOW_CPP_STACKTRACES=1."
    return {
        "kind": "result",
        "check": check,
        "state": "unseen",
        "why": f"the process {how} during this check",
        "unblock": do,
    }


def _refuse_start(check: str, how: str, asked: Asked, folder: Path) -> None:
    if check not in FIRST:
        return
    what = "importing the module" if check == "import" else "making its inputs"
    last = _tail(folder / "output.txt")
    raise TriageError(
        f"the process {how} while {what}{f': {last}' if last else ''}",
        asked.target,
        'Guard what is to run as a script by `if __name__ == "__main__":`, or give a longer --timeout.',
        NOTHING_EXAMINED,
    )


def _tail(path: Path) -> str:
    with suppress(OSError):
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else ""
    return ""


def _run(asked: Asked, scratch: Path, answer: Path, skip: list[str], say: Callable[[str], None]) -> str:
    """Runs one process to its end; how it ended where that was not by itself, else ""."""
    request = answer.with_suffix(".request")
    told = {"answer": str(answer), "scratch": str(scratch), "folder": str(Path.cwd()), "skip": skip}
    request.write_text(json.dumps({**asdict(asked), **told}), encoding="utf-8")
    answer.touch()
    python = shutil.which("python") or sys.executable
    mark = uuid4().hex
    with (answer.parent / "output.txt").open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - the user's own Python and module
            [python, str(BOOT), str(request)],
            env={**_environment(), MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with ended_with_us(process, mark):
        return _awaited(process, answer, asked.timeout, say)


def _environment() -> dict[str, str]:
    """PYTHONPATH by absolute paths, since the process works in another folder; no bytecode beside the user's files."""
    before = os.environ.get("PYTHONPATH", "")
    paths = [str(Path(each or ".").absolute()) for each in before.split(os.pathsep)] if before else []
    outer = {name: value for name, value in os.environ.items() if not name.startswith("TORCHTRIAGE_")}
    return {**outer, "PYTHONDONTWRITEBYTECODE": "1", **({"PYTHONPATH": os.pathsep.join(paths)} if paths else {})}


def _awaited(process: subprocess.Popen[bytes], answer: Path, limit: float, say: Callable[[str], None]) -> str:
    size, since = 0, time.monotonic()
    while True:
        try:
            code = process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            now = answer.stat().st_size
            if now != size:
                size, since = now, time.monotonic()
                say(next((each["check"] for each in reversed(list(_lines(answer))) if each["kind"] == "begun"), ""))
            elif time.monotonic() - since > limit:
                return f"did not end within {limit:g} s"
            continue
        return "" if code == 0 else _code(code)


def _code(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    known = -code in set(signal.Signals)
    return f"was ended by {signal.Signals(-code).name if known else f'signal {-code}'}"


def _lines(path: Path) -> Iterator[Line]:
    """The lines that are there whole."""
    for line in path.read_bytes().splitlines():
        with suppress(ValueError):
            found = json.loads(line)
            if isinstance(found, dict) and "kind" in found:
                yield found


def mirrored(scratch: Path, folder: Path) -> Path:
    """SCRATCH, in which the entries of FOLDER are links: a relative path finds what is there, what is new stays."""
    scratch.mkdir()
    for entry in sorted(folder.iterdir()):
        if not entry.name.startswith(".") and entry.name not in {"torchtriage-runs", "__pycache__"}:
            (scratch / entry.name).symlink_to(entry)
    return scratch
