"""A case from a file: its slugs are looked up, its words heard anew, none of its commands is handed on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from torchtriage.catalog.load import catalog
from torchtriage.core.case import Case
from torchtriage.core.plain import SCHEMA, plain
from torchtriage.report.keep import kept
from torchtriage.triage import begun, next_step


def steps(path: Path) -> dict[str, Any]:
    """The steps that may be taken now in the case at PATH, a case.json or the folder that holds one."""
    return {"schema": SCHEMA, "kind": "steps", "open_steps": plain(next_step(known(kept(path))))}


def known(case: Case) -> Case:
    """CASE with the plan that its words lead to, and with those findings and verdicts that the catalogue knows."""
    pages = catalog()
    homes = {slug: fault.specialist for slug, fault in pages.faults.items()}
    return replace(
        begun(case.query.text) if case.query else Case(),
        findings=tuple(each for each in case.findings if homes.get(each.fault.slug) == each.fault.specialist),
        verdicts=tuple(each for each in case.verdicts if each.verdict in pages.verdicts),
    )
