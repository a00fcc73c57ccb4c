"""On what the readings of a run and of its log have been shown to work, as the tests declare it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from torchtriage.catalog.load import catalog
from torchtriage.catalog.page import Page, read
from torchtriage.catalog.walk import pages
from torchtriage.core.fault import Basis, Sign

TESTS = Path(__file__).parent.parent / "tests"
_MARK = re.compile(r"# expect: ([a-z0-9-]+)")


def readings() -> dict[str, tuple[set[str], set[Basis]]]:
    """For each detector of runs and logs the faults and verdicts that it shows, and what it has been shown on.

    A test declares it by the name of the detector, or by that of the fault or verdict.
    """
    named = {
        ("run", Basis.CPU): {*_marks(), *(page.fault.slug for page in _pages() if _is_run(page))},
        ("run", Basis.SIM): {*_named_on_sim()},
        ("log", Basis.CPU): {*_provoked(), *(page.fault.slug for page in _pages() if _is_logged(page))},
        ("log", Basis.SIM): {*_logged_on_sim()},
    }
    return {
        detector: (
            slugs,
            {basis for (looker, basis), names in named.items() if _is_named(detector, slugs, looker, names)},
        )
        for detector, slugs in sorted(_shown().items())
    }


def _is_named(detector: str, slugs: set[str], looker: str, names: set[str]) -> bool:
    return detector.startswith(f"{looker}/") and not names.isdisjoint({detector, *slugs})


def _shown() -> dict[str, set[str]]:
    """The faults and verdicts that each detector of runs and logs shows."""
    signs: dict[str, tuple[Sign, ...]] = {slug: fault.signs for slug, fault in catalog().faults.items()}
    signs.update({slug: verdict.signs for slug, verdict in catalog().verdicts.items()})
    shows: dict[str, set[str]] = {}
    for slug, those in signs.items():
        for sign in those:
            if sign.detector.startswith(("run/", "log/")):
                shows.setdefault(sign.detector, set()).add(slug)
    return shows


def _marks() -> Iterator[str]:
    """The faults that jobs on the CPU have, by the marks beside their lines."""
    for folder in ("run", "ranks"):
        for path in (TESTS / "cases" / folder).glob("*.py"):
            yield from _MARK.findall(path.read_text(encoding="utf-8"))


def _pages() -> Iterator[Page]:
    return map(read, pages().values())


def _lookers(page: Page) -> set[str]:
    return {sign.detector.partition("/")[0] for sign in page.fault.signs}


def _is_run(page: Page) -> bool:
    """Whether tests/test_pages.py runs its code under probes."""
    has_proof = Basis.CPU in page.fault.proven_on
    return page.ranks > 1 or (has_proof and "run" in _lookers(page) and "source" not in _lookers(page))


def _is_logged(page: Page) -> bool:
    """Whether tests/test_pages.py reads what its code prints."""
    return Basis.CPU in page.fault.proven_on and _lookers(page) == {"log"}


def _provoked() -> Iterator[str]:
    """The faults of messages that tests provoke."""
    names = {*_texts(TESTS / "routing/test_messages.py")}
    for symptom in catalog().symptoms.values():
        for signature in symptom.signatures:
            if signature.name in names:
                yield from signature.faults


def _named_on_sim() -> Iterator[str]:
    """What the tests of jobs on the simulated device name."""
    for path in (TESTS / "simulation").rglob("*.py"):
        if path.parent.name != "proofs":  # of faults, not of readings
            yield from _texts(path)


def _logged_on_sim() -> Iterator[str]:
    """The faults whose proofs also read the log."""
    for path in (TESTS / "simulation/proofs").glob("test_*.py"):
        if any(isinstance(each, ast.arg) and each.arg == "logged" for each in ast.walk(_tree(path))):
            yield path.stem.removeprefix("test_").replace("_", "-")


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _texts(path: Path) -> Iterator[str]:
    """The string constants of a test, but for what it says is not in something."""
    tree = _tree(path)
    denied = {
        id(each.left)
        for each in ast.walk(tree)
        if isinstance(each, ast.Compare) and any(isinstance(operator, ast.NotIn) for operator in each.ops)
    }
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in denied:
            yield each.value
