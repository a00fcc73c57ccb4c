"""What `check` says of published code, and how much of that is true: findings that somebody has tried to refute.

    python bench/published.py                  the verdicts, by rule and by round
    python bench/published.py FOLDER [--show]  what of them is said today, of the checkouts OWNER+NAME below FOLDER

ROWS (bench/published.jsonl): JSON lines {"round", "repository", "commit", "path", "line", "fault", "severity",
"verdict"}. Each is a finding of the default persona in a repository that nobody had looked at before, at the state of
`check` when its round began; a reader of the program around it has judged it "true", "harmless" (so, but nobody would
care: a unit test, code that nothing calls), "misplaced" (a fault, but not there) or "false". What was found false is
mended since, so that a round says how often the `check` of its time was wrong, and the next round how often it is now.
FOLDER: the text files of each repository at its commit. --show: each finding that is said today and was not judged or
is false, and each that is true and not said any more.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unseen import wilson

import torchtriage
from torchtriage.core.fault import Persona
from torchtriage.report.choose import wanted

ROWS = Path(__file__).parent / "published.jsonl"
VERDICTS = ("true", "harmless", "misplaced", "false")


@dataclass(frozen=True)
class Row:
    """A finding and what was found of it."""

    round: str
    repository: str
    commit: str
    path: str
    line: int
    fault: str
    severity: str
    verdict: str

    @property
    def key(self) -> tuple[str, int, str]:
        return self.path, self.line, self.fault


def rows() -> list[Row]:
    return [Row(**json.loads(line)) for line in ROWS.read_text(encoding="utf-8").splitlines()]


def verdicts(title: str, judged: Iterable[Row]) -> str:
    """One line of the table: of the findings JUDGED how many have which verdict, and the share that is false."""
    found = Counter(each.verdict for each in judged)
    shown = "".join(f"{found[each]:10d}" for each in VERDICTS)
    return f"{title:32s}{shown}   {wilson(found['false'], found.total())}"


def table(judged: list[Row]) -> Iterator[str]:
    yield f"{'':32s}" + "".join(f"{each:>10s}" for each in VERDICTS) + "   false"
    for name in sorted({each.round for each in judged}):
        yield verdicts(f"round {name}", (each for each in judged if each.round == name))
    for name in ("error", "warning", "info"):
        yield verdicts(f"  {name}", (each for each in judged if each.severity == name))
    by_fault = defaultdict(list)
    for each in judged:
        by_fault[each.fault].append(each)
    for name, mine in sorted(by_fault.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        yield verdicts(f"  {name}", mine)


def said_today(folder: Path) -> dict[tuple[str, int, str], str]:
    """By path, line and fault of what the default persona is told of FOLDER, the fact."""
    case = torchtriage.check([folder])
    shown = filter(wanted(Persona.DEFAULT), case.findings)
    places = ((each.fault.slug, item) for each in shown for item in each.evidence)
    return {
        (Path(item.place.path or "").relative_to(folder).as_posix(), item.place.line or 0, slug): item.fact or ""
        for slug, item in places
    }


def compare(judged: list[Row], home: Path, *, is_shown: bool) -> Iterator[str]:
    still: list[Row] = []
    at_hand: list[Row] = []
    new = 0
    for name in sorted({each.repository for each in judged}):
        folder = home / name.replace("/", "+")
        if not folder.is_dir():
            continue
        mine = [each for each in judged if each.repository == name]
        said = said_today(folder)
        at_hand += mine
        still += [each for each in mine if each.key in said]
        others = sorted(said.keys() - {each.key for each in mine})
        new += len(others)
        if is_shown:
            yield from (f"not judged   {name} {each[0]}:{each[1]} {each[2]}: {said[each]}" for each in others)
            yield from (f"still false  {name} {each.path}:{each.line} {each.fault}: {said[each.key]}"
                        for each in mine if each.verdict == "false" and each.key in said)  # fmt: skip
            yield from (f"true, lost   {name} {each.path}:{each.line} {each.fault}"
                        for each in mine if each.verdict == "true" and each.key not in said)  # fmt: skip
    for each in VERDICTS:
        of = [one for one in at_hand if one.verdict == each]
        yield f"{each:10s} still said   {wilson(sum(one.verdict == each for one in still), len(of))}"
    yield f"places that are said and were not judged: {new}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    judged = rows()
    lines = table(judged) if options.folder is None else compare(judged, options.folder, is_shown=options.show)
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
