"""Functions with planted and without mistakes in their gradients, and what `gradcheck` says of each.

Part of bench/trials.py: `bench/trials.py --only gradcheck [FILE]`. bench/gradients.jsonl is held out: functions by
people who had not seen the checks; only its sums are looked at. The planted ones are those of
tests/cases/trials/gradient, each below its mark:

    # right[: OPTIONS]
    # wrong: [order=ORDER] [input=NUMBER] [explains=KIND] [-- OPTIONS]

A line of a FILE is {"id", "module", "target", "options", "faults", "input", "order", "explains"}.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import share

from torchtriage.catalog.load import catalog
from torchtriage.core.errors import TriageError
from torchtriage.core.fault import Severity
from torchtriage.core.finding import Finding
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.trial.gradient import Asked, GradientTrial
from torchtriage.examine.trial.gradient.apart import BOOT
from torchtriage.examine.trial.gradient.record import gathered
from torchtriage.triage import detectors

CASES = Path(__file__).parent.parent / "tests/cases/trials/gradient"
MARK = re.compile(r"^# (?P<kind>right|wrong)(?:: (?P<rest>.*))?\n(?:class|def) (?P<name>\w+)", re.MULTILINE)
FAULT = "gradient-wrong"
LIMIT = 120.0
ORDERS = {
    "needs-input-grad": "needs-input-grad", "in-place": "in-place", "grad-output": "in-place", "twice": "in-place",
    "grad-output layout": "view", "input layout": "view", "batched": "batched", "vmap": "batched",
    "double-backward": "double-backward", "forward-mode": "forward-mode", "autocast": "autocast",
}  # fmt: skip
"""The kind of situation by the check that looks at it; any other is "backward"."""


@dataclass(frozen=True)
class Function:
    """One function of a module. order, input, explains: as an expert would say it; None where nothing is said."""

    id: str
    module: str
    target: str
    options: tuple[str, ...] = ()
    is_wrong: bool = False
    order: str | None = None
    input: int | None = None
    explains: str | None = None


@dataclass(frozen=True)
class Tried:
    """What was said of a function. refused: why nothing could be examined."""

    function: Function
    findings: tuple[Finding, ...] = ()
    trial: GradientTrial | None = None
    refused: str = ""
    seconds: float = 0.0

    @property
    def wrong(self) -> list[dict[str, Any]]:
        return self.trial.all("wrong") if self.trial else []

    @property
    def is_found(self) -> bool:
        return FAULT in {each.fault.slug for each in self.findings}

    @property
    def is_loud(self) -> bool:
        """Whether anything above info is said."""
        return any(each.fault.severity is not Severity.INFO for each in self.findings)

    @property
    def is_right(self) -> bool:
        return self.is_found if self.function.is_wrong else not self.is_loud and not self.refused

    @property
    def alarms(self) -> set[str]:
        """The checks and faults above info that are said."""
        loud = {each.fault.slug for each in self.findings if each.fault.severity is not Severity.INFO}
        return ({each["check"] for each in self.wrong} | loud) - ({FAULT} if self.wrong else set())

    @property
    def is_examined(self) -> bool:
        """Whether at least the gradient itself could be judged."""
        return self.trial is not None and bool(self.trial.of("backward"))

    def names(self, what: str) -> bool:
        """Whether the order, input or explanation is told as the expert has it."""
        wanted = getattr(self.function, what)
        if what == "order":
            return any(ORDERS.get(each["check"], "backward") == wanted for each in self.wrong)
        return any(each.get(what) == wanted for each in self.wrong)


def planted() -> list[Function]:
    """The marked functions of this repository."""
    texts = ((path, path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("*.py")))
    return [_marked(path, text, mark) for path, text in texts for mark in MARK.finditer(text)]


def _marked(path: Path, text: str, mark: re.Match[str]) -> Function:
    rest = mark["rest"] or ""
    said, _, options = rest.partition("-- ") if mark["kind"] == "wrong" else ("", "", rest)
    if said.startswith("-"):
        said, options = "", rest
    told = dict(each.split("=", 1) for each in said.split())
    number = told.get("input")
    return Function(
        f"{path.stem}.{mark['name']}",
        text,
        f"{path.name}:{mark['name']}",
        tuple(shlex.split(options)),
        mark["kind"] == "wrong",
        told.get("order", "backward"),
        int(number) if number is not None else None,
        told.get("explains"),
    )


def held(paths: Iterable[Path]) -> Iterator[Function]:
    """The functions of files of JSON lines."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.strip() else None
            if row is not None:
                yield Function(
                    row["id"], row["module"], row["target"], tuple(row.get("options") or ()), bool(row["faults"]),
                    row.get("order"), row.get("input"), row.get("explains"),
                )  # fmt: skip


OPTIONS = ("inputs", "shapes", "reference", "expect")


def asked(function: Function) -> Asked:
    """The options of the command line as its verb hands them on."""
    given: dict[str, Any] = {}
    words = iter(function.options)
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        if name in OPTIONS:
            given[name] = value or next(words)
        else:
            next(words, None)
    return Asked(function.target, **given)


def tried(function: Function) -> Tried:
    """One function in a fork of this process, which has torch: what the verb does, without a start of Python each."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / f"{function.target.partition(':')[0].removesuffix('.py').replace('.', '/')}.py").write_text(
            function.module
        )
        lines = _lines(function, folder)
    refused = next((each["what"] for each in lines if each["kind"] == "refused"), "")
    if refused:
        return Tried(function, refused=refused, seconds=time.perf_counter() - began)
    try:
        trial = gathered(asked(function), lines)
    except TriageError as error:
        return Tried(function, refused=str(error), seconds=time.perf_counter() - began)
    outcomes = perform(tuple(detectors("readings", "torchtriage.examine.trial.gradient")), trial)
    return Tried(function, weigh.findings(outcomes, catalog()), trial, "", time.perf_counter() - began)


def _lines(function: Function, folder: Path) -> list[dict[str, Any]]:
    from dataclasses import asdict

    start()  # before the fork
    answer, work = folder / "answer.jsonl", folder / "work"
    work.mkdir()
    request = {
        **asdict(asked(function)),
        "answer": str(answer),
        "scratch": str(work),
        "folder": str(folder),
        "skip": [],
    }
    child = os.fork()
    if not child:
        _become(request, folder)
    _awaited(child)
    found = [json.loads(line) for line in answer.read_text().splitlines()] if answer.exists() else []
    if not found or found[-1]["kind"] == "begun":
        at = found[-1]["check"] if found else "import"
        kind = "refused" if at in {"import", "inputs"} else "result"
        why = "the process did not end by itself"
        found.append({"kind": kind, "what": why, "check": at, "state": "unseen", "why": why, "unblock": "-"})
    return found


def start() -> Any:
    """The part of the trial that runs in the user's Python, loaded once."""
    import runpy

    if "_torchtriage_gradient.start" not in sys.modules:
        import torch  # before the fork, so that no function's process has to

        torch.set_num_threads(1)
        runpy.run_path(str(BOOT))["load"](str(BOOT.parent / "job"))
    return sys.modules["_torchtriage_gradient.start"]


def _become(request: dict[str, Any], folder: Path) -> None:
    code = 1
    try:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        (folder / "request.json").write_text(json.dumps(request))
        sys.argv = ["boot.py", str(folder / "request.json")]
        start().main()
        code = 0
    finally:
        os._exit(code)


def _awaited(child: int) -> None:
    until = time.monotonic() + LIMIT
    while time.monotonic() < until:
        if os.waitpid(child, os.WNOHANG)[0]:
            return
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)


def told(row: Tried) -> str:
    """A function's own line: what was planted and what was said."""
    function = row.function
    said = "; ".join(f"{each['check']}: {each['says']} {each.get('why', '')}" for each in row.wrong)
    said = said or row.refused or "nothing"
    planted = f"{function.order} input {function.input} {function.explains or ''}" if function.is_wrong else "right"
    wanted = (what for what in ("order", "input", "explains") if getattr(function, what) is not None)
    off = " ".join(what for what in wanted if function.is_wrong and not row.names(what))
    verdict = f"{'ok' if row.is_right else 'WRONG'}{f' (not {off})' if off else ''}"
    return f"{function.id}: {verdict}; planted {planted}; said {said}"


def main(file: Path | None = None, only: str = "", *, lines: bool = True) -> None:
    """Prints what was found, of the planted functions or those of FILE, of which only the sums are shown."""
    rows = [tried(each) for each in (held([file]) if file else planted()) if only in each.id]
    if lines and file is None:
        sys.stdout.write("".join(f"{told(row)}\n" for row in rows if not row.is_right))
    sys.stdout.write("".join(f"{line}\n" for line in table(rows)))


def table(rows: list[Tried]) -> Iterator[str]:
    """The sums, with Wilson intervals at 95 %."""
    wrong = [row for row in rows if row.function.is_wrong]
    right = [row for row in rows if not row.function.is_wrong]
    yield _line("right, of all", rows, lambda row: row.is_right)
    yield _line("mistakes found", wrong, lambda row: row.is_found)
    yield _line("false alarms on right functions", right, lambda row: row.is_loud)
    yield _line(
        "nothing could be examined",
        rows,
        lambda row: bool(row.refused) or not row.trial or not row.trial.of("backward"),
    )
    for what in ("order", "input", "explains"):
        known = [row for row in wrong if getattr(row.function, what) is not None]
        yield _line(f"  {what} as planted", known, lambda row, what=what: row.names(what))
    for order in sorted({row.function.order or "" for row in wrong}):
        yield _line(
            f"  found: {order}", [row for row in wrong if row.function.order == order], lambda row: row.is_found
        )
    alarms = Counter(name for row in right for name in row.alarms)
    yield from (f"  false alarms by {name}: {number}" for name, number in alarms.most_common())
    seconds = sorted(row.seconds for row in rows)
    if seconds:
        yield f"seconds each: median {seconds[len(seconds) // 2]:.2f}, most {seconds[-1]:.2f}"


def _line(title: str, rows: list[Tried], is_so: Any) -> str:
    return f"{title:<34} {share(sum(map(is_so, rows)), len(rows))}"
