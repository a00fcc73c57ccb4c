"""How much of what is wrong `check` finds in code that its authors had not seen, and how often it is wrong itself.

    python bench/unseen.py [CASES] [--errors N] [--persona default|pedantic]

CASES (bench/unseen.jsonl): JSON lines {"id", "slug", "specialist", "line", "bad", "good"}, one planted fault in bad and
none in good, or {"id", "slug": null, "near", "good"}, healthy code that looks like a fault. They were written by
someone who did not see the rules, and frozen before these were tuned. A fault is found when bad has a finding of its
slug and good has none. Every other finding counts as false: of another slug in bad, of any in good.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Observed
from torchtriage.core.fault import Persona, Severity
from torchtriage.core.finding import Finding
from torchtriage.diagnose import weigh
from torchtriage.examine.source.seen import look
from torchtriage.report.choose import wanted
from torchtriage.triage import detectors

CASES = Path(__file__).parent / "unseen.jsonl"


@dataclass(frozen=True)
class Judged:
    """One case: whether it was found, whether at its line, and every finding that is false."""

    case: dict[str, Any]
    found: bool
    at_line: bool
    false: tuple[Finding, ...]
    said: tuple[Finding, ...]


def findings(text: str, persona: Persona) -> list[Finding]:
    seen = look("unseen.py", text.encode(), tuple(detectors("rules")))
    if not seen.is_read:
        raise SystemExit(f"a case is no Python: {seen.inconclusive}")
    found = weigh.findings([Observed("source", (item,)) for item in seen.evidence], catalog())
    return list(filter(wanted(persona), found))


def judged(case: dict[str, Any], persona: Persona) -> Judged:
    good = findings(case["good"], persona)
    bad = findings(case["bad"], persona) if case["slug"] else []
    said = [each for each in bad if each.fault.slug == case["slug"]]
    found = bool(said) and all(each.fault.slug != case["slug"] for each in good)
    lines = {case.get("line"), *case.get("lines", ())}
    at_line = any((item.place.line or 0) <= (line or 0) <= (item.place.end_line or item.place.line or 0)
                  for each in said for item in each.evidence for line in lines)  # fmt: skip
    others = [each for each in bad if each.fault.slug != case["slug"]]
    return Judged(case, found, at_line, (*others, *good), tuple(said))


def wilson(right: int, of: int, z: float = 1.96) -> str:
    if not of:
        return "      -"
    share, norm = right / of, 1 + z * z / of
    centre, half = share + z * z / (2 * of), z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    low, high = max(0.0, (centre - half) / norm), (centre + half) / norm
    return f"{right:4d}/{of:<4d} {100 * share:5.1f} %   [{100 * low:.0f}–{100 * high:.0f}]"


def table(rows: Iterable[Judged]) -> Iterator[str]:
    rows = list(rows)
    planted = [row for row in rows if row.case["slug"]]
    yield f"found                                {wilson(sum(row.found for row in planted), len(planted))}"
    placed = sum(row.found and row.at_line for row in planted)
    yield f"  at the line that was marked        {wilson(placed, len(planted))}"
    rooms = defaultdict(list)
    for row in planted:
        rooms[row.case["specialist"]].append(row.found)
    for name, hits in sorted(rooms.items()):
        yield f"  {name:34s} {wilson(sum(hits), len(hits))}"
    for name, loud in (("precision, all", list(Severity)), ("precision, errors", [Severity.ERROR])):
        true = sum(each.fault.severity in loud for row in planted for each in row.said[:1])
        false = sum(each.fault.severity in loud for row in rows for each in row.false)
        yield f"{name:36s} {wilson(true, true + false)}"
    healthy = [row for row in rows if not row.case["slug"]]
    yield f"look-alikes that stay silent         {wilson(sum(not row.false for row in healthy), len(healthy))}"


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("cases", nargs="?", type=Path, default=CASES)
    reader.add_argument("--errors", type=int, default=0, help="print so many wrong answers")
    reader.add_argument("--persona", choices=[each.value for each in Persona], default="default")
    asked = reader.parse_args()
    cases = [json.loads(line) for line in asked.cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    rows = [judged(case, Persona(asked.persona)) for case in cases]
    print(f"{asked.cases.name}: {len(rows)} cases, persona {asked.persona}")
    print("\n".join(table(rows)))
    wrong = [row for row in rows if row.false or (row.case["slug"] and not row.found)]
    for row in wrong[: asked.errors]:
        false = ", ".join(f"{each.fault.slug}:{each.evidence[0].place.line}" for each in row.false)
        print(f"x {row.case['id']} {row.case['slug']} found {row.found}; false: {false}")


if __name__ == "__main__":
    main()
