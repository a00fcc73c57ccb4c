"""How much `check` finds in projects of several files, where a fault stands in what the files do together.

    python bench/projects.py [FILE.jsonl …] [--only ID…] [--all-output]

bench/projects.jsonl (the default) is held out: projects of two to five files in the style of public repositories, one
planted fault each, and a twin in which it is put right, by an author who had not seen the rules; frozen before these
were tuned (sha256 in the output); only its sums are looked at. A FILE holds one project a line: {"id", "fault", "also",
"files": {path: source}, "twin": {path: source of what differs}, "place": {"file", "line"}, "places": […]}.

A fault is found when its project has a finding of it, or of one in "also", that the twin has not; on the line, when one
of its places is among those of the label. Every other finding that is shown by default counts as false.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corpus import share

import torchtriage
from torchtriage.core.fault import Persona, Severity
from torchtriage.core.finding import Finding
from torchtriage.report.choose import wanted

HELD_OUT = Path(__file__).with_name("projects.jsonl")


@dataclass(frozen=True)
class Row:
    """One project: what is found in it, and in its twin."""

    label: dict[str, Any]
    planted: tuple[Finding, ...]
    healthy: tuple[Finding, ...]

    @property
    def said(self) -> list[Finding]:
        """The findings of the planted fault, none where the twin has them too."""
        fine = {self.label["fault"], *self.label.get("also", ())}
        in_twin = {each.fault.slug for each in self.healthy}
        return [each for each in self.planted if each.fault.slug in fine - in_twin]

    @property
    def is_placed(self) -> bool:
        spots = {(each["file"], each["line"]) for each in (self.label["place"], *self.label.get("places", ()))}
        places = [evidence.place for each in self.said for evidence in each.evidence]
        return any(
            (place.path or "").endswith(file) and (place.line or 0) <= line <= (place.end_line or place.line or 0)
            for place in places
            for file, line in spots
        )

    @property
    def false(self) -> list[str]:
        """What else is said of the project, and all that is said of its twin."""
        fine = {self.label["fault"], *self.label.get("also", ())}
        return [each.fault.slug for each in self.planted if each.fault.slug not in fine] + self.loud

    @property
    def loud(self) -> list[str]:
        return [each.fault.slug for each in self.healthy]


def findings(files: Mapping[str, str]) -> tuple[Finding, ...]:
    """What `check` shows by default of a project of FILES, above info."""
    with tempfile.TemporaryDirectory() as name:
        for path, text in files.items():
            file = Path(name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        case = torchtriage.check([Path(name)])
    shown = filter(wanted(Persona.DEFAULT), case.findings)
    return tuple(each for each in shown if each.fault.severity is not Severity.INFO)


def judged(label: dict[str, Any]) -> Row:
    return Row(label, findings(label["files"]), findings({**label["files"], **label["twin"]}))


def table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"the planted fault is found          {share(sum(bool(row.said) for row in rows), len(rows))}"
    yield f"  at the line that was marked       {share(sum(row.is_placed for row in rows), len(rows))}"
    yield f"something else is said beside it    {share(sum(len(row.false) > len(row.loud) for row in rows), len(rows))}"
    yield f"a twin has a finding                {share(sum(bool(row.loud) for row in rows), len(rows))}"


def told(row: Row) -> str:
    mark = "found" if row.is_placed else "elsewhere" if row.said else "MISSED"
    others = f"; FALSE {', '.join(row.false)}" if row.false else ""
    return f"{row.label['id']} {mark} {row.label['fault']}{others}; {row.label.get('note', '')}"


def main() -> None:
    asked = arguments()
    for path in asked.files or [HELD_OUT]:
        data = path.read_bytes()
        labels = [json.loads(line) for line in data.decode().splitlines() if line.strip()]
        print(f"{path.name}: {len(labels)} projects, sha256 {hashlib.sha256(data).hexdigest()[:16]}", flush=True)
        rows = []
        for label in labels:
            if not asked.only or label["id"] in asked.only:
                rows.append(judged(label))
                if asked.all_output:
                    print(told(rows[-1]), flush=True)
        print("\n".join(table(rows)))


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("files", nargs="*", type=Path, metavar="FILE.jsonl")
    reader.add_argument("--only", nargs="+", default=(), metavar="ID")
    reader.add_argument("--all-output", action="store_true", help="also each project and what was said")
    return reader.parse_args()


if __name__ == "__main__":
    main()
