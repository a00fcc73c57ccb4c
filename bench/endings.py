"""Whether the first line about a job that ended badly is right: through `run`, through `read`, and of real crashes.

    python bench/endings.py [FILE.jsonl …] [--by run read] [--only ID…] [--all-output]

bench/endings.jsonl (the default) is held out: 60 jobs that end badly, by an author who had not seen the program,
frozen before it was tuned (sha256 in the output); only its sums are looked at. A FILE holds one case a line:
{"id", "script", "files", "args", "ranks"}, a job that is run under `torchtriage run`, and unwatched so that `read` gets
its output; or {"id", "text"}, an excerpt of a real log for `read`: such files stay outside of the repository. Labels:
"faults", any of which is right as the first finding; "words", all of which the verdict holds where that counts as right
as well, whatever their case; "numbers", which have to stand in the report; "place",
{"file", "line"} where an expert would point; "healthy", where nothing may be found.

A case is right when the verdict begins with one of its faults, or holds all of its words.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import share
from processes import NAME, ended

import torchtriage
from torchtriage.core.case import Case
from torchtriage.core.fault import Severity
from torchtriage.report.console import render
from torchtriage.report.ending import end_of
from torchtriage.report.outline import outline
from torchtriage.report.paper import Paper

HELD_OUT = Path(__file__).with_name("endings.jsonl")

SINCE = {
    "out-of-memory": ("device-out-of-memory", "host-out-of-memory"),
    "killed-by-host-memory": ("host-out-of-memory",),
    "launch-environment": ("rendezvous-failed",),
    "pickle-trusted": ("weights-only-refused",),
    "whole-object-saved": ("weights-only-refused",),
}
"""Names on the list that the authors chose from, and the pages that have come to say the same since."""


@dataclass(frozen=True)
class Row:
    """One case through one verb. case: None where nothing was left."""

    label: dict[str, Any]
    verb: str
    case: Case | None
    note: str = ""

    @property
    def first(self) -> str:
        """The fault that the verdict begins with."""
        if self.case is None or not self.case.findings:
            return ""
        end, found = end_of(self.case), self.case.findings[0].fault.slug
        return found if end is None or end.cause == found else ""

    @property
    def verdict(self) -> str:
        return outline(self.case).verdict if self.case is not None else ""

    @property
    def is_right(self) -> bool:
        if self.label.get("healthy"):
            return self.case is not None and not self.loud and end_of(self.case) is None
        words = self.label.get("words") or ()
        return self.first in _pages(self.label.get("faults") or ()) or (bool(words) and _holds(self.verdict, words))

    @property
    def loud(self) -> list[str]:
        """The findings above info."""
        findings = self.case.findings if self.case else ()
        return [each.fault.slug for each in findings if each.fault.severity is not Severity.INFO]

    @property
    def other(self) -> list[str]:
        """Findings above info that neither are right nor may be said beside."""
        fine = _pages([*(self.label.get("faults") or ()), *(self.label.get("also") or ())])
        return [slug for slug in self.loud if slug not in fine]

    @property
    def has_numbers(self) -> bool | None:
        """Whether all numbers of the label are said; None without any, or where the case is not right anyway."""
        numbers = self.label.get("numbers") or ()
        values = list(numbers.values()) if isinstance(numbers, dict) else list(numbers)
        if not values or not self.is_right:
            return None
        return all(_holds(self.told, [value]) or _holds(self.told, [_signal(value)]) for value in map(str, values))

    @property
    def told(self) -> str:
        """The whole report, as a terminal shows it."""
        return render(self.case, Paper(1000)) if self.case is not None else ""

    @property
    def is_placed(self) -> bool | None:
        """Whether the place of the label is among those of the first finding or of the end; None without a label."""
        wanted = [self.label.get("place") or {}, *(self.label.get("place_also") or ())]
        spots = {(Path(each.get("file") or NAME).name, each["line"]) for each in wanted if each.get("line")}
        if not spots or self.case is None:
            return None
        end = end_of(self.case)
        places = [each.place for each in self.case.findings[0].evidence] if self.case.findings else []
        places += [end.place] if end is not None and end.place is not None else []
        return any((Path(each.path or "").name, each.line) in spots for each in places)


def _signal(code: str) -> str:
    """The name of the signal that an exit code below 0 stands for; CODE where it stands for none."""
    try:
        return signal.Signals(-int(code)).name
    except ValueError:
        return code


def _pages(labels: Sequence[str]) -> set[str]:
    """The pages that say what LABELS say: the authors chose from a list that is older than some pages."""
    return {page for label in labels for page in (label, *SINCE.get(label, ()))}


def _holds(text: str, words: Sequence[str]) -> bool:
    plain = " ".join(text.split()).lower()
    return all(" ".join(word.split()).lower() in plain for word in words)


def laid(label: dict[str, Any], folder: Path) -> list[str]:
    """The files of a job in FOLDER, and the command that starts it there."""
    for name, text in {NAME: label["script"], **(label.get("files") or {})}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    ranks = label.get("ranks") or 0
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
    return [sys.executable, *launcher, NAME, *map(str, label.get("args") or ())]


def through_run(label: dict[str, Any]) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "job")
        folder.mkdir()
        out = Path(name, "out")
        command = [sys.executable, "-m", "torchtriage", "run", "--out", str(out), "--", *laid(label, folder)]
        code, _ = ended(command, folder)
        left = out / "case.json"
        note = "" if code == label.get("exit") else f"ended with {code}, labelled {label.get('exit')}"
        return Row(label, "run", Case.load(left) if left.exists() else None, note)


def through_read(label: dict[str, Any]) -> Row:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "text" in label:
            log = folder / "train.log"
            log.write_text(label["text"], encoding="utf-8")
        else:
            ended(laid(label, folder), folder)
            log = folder / "output.txt"
        return Row(label, "read", torchtriage.read([log]))


def table(rows: Sequence[Row]) -> Iterator[str]:
    for verb in dict.fromkeys(row.verb for row in rows):
        mine = [row for row in rows if row.verb == verb]
        bad = [row for row in mine if not row.label.get("healthy")]
        healthy = [row for row in mine if row.label.get("healthy")]
        numbers = [row.has_numbers for row in bad if row.has_numbers is not None]
        places = [row.is_placed for row in bad if row.is_placed is not None]
        yield f"through {verb}, {len(mine)} cases"
        yield f"  the first line is right            {share(sum(row.is_right for row in bad), len(bad))}"
        yield f"  its numbers are right, where right {share(sum(numbers), len(numbers))}"
        yield f"  the user's line is named           {share(sum(places), len(places))}"
        yield f"  something else is said beside it   {share(sum(bool(row.other) for row in bad), len(bad))}"
        if healthy:
            yield f"  nothing is found where all is fine {share(sum(row.is_right for row in healthy), len(healthy))}"
    if odd := [row for row in rows if row.note]:
        yield f"{len(odd)} jobs ended with another code under `run` than labelled"


def told(row: Row) -> str:
    marks = [
        "right" if row.is_right else "WRONG",
        "" if row.has_numbers in (None, True) else "NUMBERS",
        "" if row.is_placed in (None, True) else "elsewhere",
    ]
    wanted = ", ".join(row.label.get("faults") or row.label.get("words") or ["nothing"])
    return f"{row.label['id']} {row.verb}: {' '.join(filter(None, marks))} {row.note}; wanted {wanted}; {row.verdict}"


def main() -> None:
    asked = arguments()
    rows: list[Row] = []
    for path in asked.files or [HELD_OUT]:
        data = path.read_bytes()
        labels = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
        print(f"{path.name}: {len(labels)} cases, sha256 {hashlib.sha256(data).hexdigest()[:16]}", flush=True)
        for label in labels:
            if asked.only and label["id"] not in asked.only:
                continue
            for verb in asked.by:
                if verb == "run" and "text" in label:
                    continue
                rows.append(through_run(label) if verb == "run" else through_read(label))
                if asked.all_output:
                    print(told(rows[-1]), flush=True)
    print("\n".join(table(rows)))


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("files", nargs="*", type=Path, metavar="FILE.jsonl")
    reader.add_argument("--by", nargs="+", choices=("run", "read"), default=("run", "read"))
    reader.add_argument("--only", nargs="+", default=(), metavar="ID")
    reader.add_argument("--all-output", action="store_true", help="also each case and what was said")
    return reader.parse_args()


if __name__ == "__main__":
    main()
