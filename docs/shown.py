"""On what the readings of a run have been shown to work, as the tests declare it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchtriage.catalog.load import Catalog, catalog
from torchtriage.catalog.page import read
from torchtriage.catalog.walk import pages
from torchtriage.core.fault import Basis, Sign

TESTS = Path(__file__).parent.parent / "tests"
_MARK = re.compile(r"# expect: ([a-z0-9-]+)")


def readings() -> dict[str, tuple[set[str], set[Basis]]]:
    """For each detector of a run the faults and verdicts that it shows, and what it has been shown on.

    A test declares it by the name of the detector, or by that of the fault or verdict.
    """
    named = {Basis.CPU: set(_marks()) | set(_run_pages()), Basis.SIM: set(_named_on_sim())}
    shows = _shown_by(catalog())
    return {
        detector: (slugs, {basis for basis, names in named.items() if names & {detector, *slugs}})
        for detector, slugs in sorted(shows.items())
    }


def _shown_by(known: Catalog) -> dict[str, set[str]]:
    signs: dict[str, tuple[Sign, ...]] = {slug: fault.signs for slug, fault in known.faults.items()}
    signs.update({slug: verdict.signs for slug, verdict in known.verdicts.items()})
    shows: dict[str, set[str]] = {}
    for slug, those in signs.items():
        for sign in those:
            if sign.detector.startswith("run/"):
                shows.setdefault(sign.detector, set()).add(slug)
    return shows


def _marks() -> Iterator[str]:
    """The faults that jobs on the CPU have, by the marks beside their lines."""
    for folder in ("run", "ranks"):
        for path in (TESTS / "cases" / folder).glob("*.py"):
            yield from _MARK.findall(path.read_text(encoding="utf-8"))


def _run_pages() -> Iterator[str]:
    """The faults whose pages are run under probes (tests/test_pages.py)."""
    for slug, path in pages().items():
        page = read(path)
        lookers = {sign.detector.partition("/")[0] for sign in page.fault.signs}
        is_run = "run" in lookers and "source" not in lookers and Basis.CPU in page.fault.proven_on
        if is_run or page.ranks > 1:
            yield slug


def _named_on_sim() -> Iterator[str]:
    """What the tests of jobs on the simulated device name, but for what they say is not found."""
    for path in (TESTS / "simulation").rglob("*.py"):
        if path.parent.name != "proofs":  # of faults, not of readings
            yield from _texts(ast.parse(path.read_text(encoding="utf-8")))


def _texts(tree: ast.AST) -> Iterable[str]:
    denied = {
        id(each.left)
        for each in ast.walk(tree)
        if isinstance(each, ast.Compare) and any(isinstance(operator, ast.NotIn) for operator in each.ops)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in denied:
            yield each.value
