"""What `explain` shows: the page of a fault, a specialist's room, a symptom or a verdict, as JSON and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torchtriage.catalog.load import Catalog, Topic
from torchtriage.catalog.page import Page
from torchtriage.catalog.room import Room, VerdictKind
from torchtriage.catalog.symptom import Symptom
from torchtriage.core.fault import Basis, Fault, Sign
from torchtriage.core.plain import SCHEMA, plain
from torchtriage.report.paper import PLAIN, Paper
from torchtriage.report.text import inert, line


def as_dict(topic: Topic, catalog: Catalog) -> dict[str, Any]:
    """TOPIC as JSON values; "kind" says which of the four it is."""
    match topic:
        case Page():
            return _page(topic)
        case Room():
            return _room(topic)
        case Symptom():
            return _symptom(topic, catalog)
        case VerdictKind():
            return _verdict(topic)


def _page(page: Page) -> dict[str, Any]:
    fault: dict[str, Any] = plain(page.fault)
    return {
        "schema": SCHEMA,
        "kind": "fault",
        "fault": fault.pop("slug"),
        "severity": page.fault.severity.value,
        **fault,
        "proven_on": [basis.value for basis in page.fault.proven_on],
        "signs": _signs(page.fault.signs),
        "sections": dict(page.sections),
    }


def _room(room: Room) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kind": "specialist",
        "specialist": room.specialist,
        "does": room.does,
        "why": room.why,
        "faults": _faults(room.faults),
        "symptoms": [{"symptom": item.slug, "title": item.title} for item in room.symptoms],
        "verdicts": [{"verdict": item.slug, "title": item.title} for item in room.verdicts],
    }


def _symptom(symptom: Symptom, catalog: Catalog) -> dict[str, Any]:
    flat: dict[str, Any] = plain(symptom)
    flat["signatures"] = [signature.name for signature in symptom.signatures]
    explaining = [fault for fault in catalog.faults.values() if symptom.slug in fault.explains]
    return {
        "schema": SCHEMA,
        "kind": "symptom",
        "symptom": flat.pop("slug"),
        **flat,
        "faults": _faults(explaining),
    }


def _verdict(verdict: VerdictKind) -> dict[str, Any]:
    flat: dict[str, Any] = plain(verdict)
    return {
        "schema": SCHEMA,
        "kind": "verdict",
        "verdict": flat.pop("slug"),
        **flat,
        "signs": _signs(verdict.signs),
    }


def _signs(signs: Iterable[Sign]) -> list[str]:
    return [sign.detector if sign.above is None else f"{sign.detector} > {sign.above:g}" for sign in signs]


def _faults(faults: Iterable[Fault]) -> list[dict[str, Any]]:
    return [{"fault": item.slug, "severity": item.severity.value, "title": item.title} for item in faults]


def render(topic: Topic, catalog: Catalog, paper: Paper = PLAIN) -> str:
    """TOPIC as text."""
    said = as_dict(topic, catalog)
    if isinstance(topic, Page):
        said["proof"] = _proof(topic.fault)
    name = said[said["kind"]]
    body = [f"{paper.ink(name, 'bold')}  {paper.ink(said['kind'], 'dim')}"]
    body += [line(said["title"]), ""] if "title" in said else [""]
    body += _facts(said, paper)
    body += [part for remedy in said.get("remedies", ()) for part in _remedy(remedy, paper)]
    body += [part for title, prose in said.get("sections", {}).items() for part in _section(title, prose, paper)]
    return "\n".join(body).rstrip("\n") + "\n"


_BASES = {
    Basis.CPU: "the CPU",
    Basis.SIM: "the simulated accelerator",
    Basis.TRACE: "recorded traces",
    Basis.CUDA: "CUDA",
}


def _proof(fault: Fault) -> str:
    """What has shown the harm, as a sentence."""
    *first, last = [_BASES[basis] for basis in fault.proven_on] or [""]
    if not last:
        return f"No test shows the harm: {fault.proof}."
    return f"Tests show the harm on {', '.join(first)}{' and ' if first else ''}{last}."


_FACTS = (
    "does", "why", "specialist", "severity", "confidence", "persona", "stage", "because", "signs", "explains",
    "refines", "proof", "phrases", "signatures", "collect", "examine", "read", "unseen", "symptoms", "faults",
    "verdicts",
)  # fmt: skip


def _facts(said: dict[str, Any], paper: Paper) -> Iterator[str]:
    """The short entries of the head, in one order for every kind of page."""
    for name in _FACTS:
        value = said.get(name)
        if not value or name == said["kind"]:
            continue
        if isinstance(value, str):
            yield from paper.fold(line(value), mark=f"{name:<12}")
        else:
            yield name
            yield from paper.items(map(_entry, value), 2)
    yield ""


def _entry(value: Any) -> str:
    """A slug with its title, or a plain entry."""
    if isinstance(value, dict):
        slug, *_, title = value.values()
        return f"{slug}: {line(title)}"
    return line(str(value))


def _remedy(remedy: dict[str, Any], paper: Paper) -> Iterator[str]:
    yield from paper.fold(paper.ink(f"Remedy {remedy['order']}: {line(remedy['title'])}", "bold"))
    for name in ("when", "cost", "verify", "edit"):
        if remedy.get(name):
            yield from paper.fold(line(remedy[name]), 2, mark=f"{name:<8}")
    yield ""


def _section(title: str, prose: str, paper: Paper) -> Iterator[str]:
    """Prose and code as they stand on the page: what is folded can no longer be copied."""
    yield paper.ink(title, "bold")
    yield from (f"  {each}".rstrip() for each in inert(prose).splitlines())
    yield ""
