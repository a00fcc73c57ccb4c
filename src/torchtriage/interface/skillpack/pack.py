"""The pack as files by their path: each room's sheet, topics, scripts and fault pages, and the router's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from torchtriage.catalog import page
from torchtriage.catalog.load import catalog
from torchtriage.catalog.walk import ROOMS, SOURCE, pages
from torchtriage.core.errors import TriageError
from torchtriage.core.fault import Fault
from torchtriage.interface.skillpack import ledger

ROUTER = "using-pytorch-engineering"
_TABLE = re.compile(r"^<!-- table: (\w+) -->$", re.M)
# rooms whose trials have verbs of their own, which their sheets name
TRIALS = {"custom-autograd-functions": "read", "checkpointing-and-reproducibility": "read"}
_COMMENT = re.compile(r"[ \t]*<!--.*?-->", re.S)


def skills() -> dict[str, Path]:
    """The folder that each skill's own files are in, by its name: the router's first."""
    rooms = {room.specialist: Path(ROOMS, room.specialist.replace("-", "_")) for room in catalog().rooms}
    return {ROUTER: Path(SOURCE, "routing")} | rooms


def pack() -> dict[str, str]:
    """Every file of the pack by its path below the folder of skills, "<skill>/SKILL.md" first among its skill's."""
    return {f"{name}/{path}": text for name, folder in skills().items() for path, text in _skill(name, folder)}


def sheet(name: str) -> str | None:
    """The SKILL.md of the skill NAME; None where there is no such skill, or it has no sheet yet."""
    path = skills().get(name, Path()) / "SKILL.md"
    return _filled(name, _text(path)) if name in skills() and path.is_file() else None


def reference(slug: str) -> str | None:
    """The reference page of the fault SLUG; None where there is no such fault."""
    return _reference(page.read(pages()[slug])) if slug in pages() else None


def _skill(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    yield "SKILL.md", _filled(name, _text(folder / "SKILL.md"))
    for topic in sorted(folder.glob("topics/*.md")):
        yield f"references/{topic.name}", _filled(name, _text(topic))
    for fault in _faults(name):
        yield f"references/{fault.slug}.md", _reference(page.read(pages()[fault.slug]))
    if facts := ledger.read(folder):
        yield "references/facts.md", ledger.written(facts)
    for script in sorted(folder.glob("scripts/*.py")):
        yield f"scripts/{script.name}", _text(script)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        do = "Install torchtriage again: its packages hold it."
        raise TriageError("a file of the skill pack is missing", str(path), do) from error


def _filled(name: str, text: str) -> str:
    """TEXT with its tables, and without comments, which hold the ids of facts."""
    tabled = _TABLE.sub(lambda found: "\n".join(TABLES[found.group(1)](name)), text)
    return _COMMENT.sub("", tabled).strip() + "\n"


def _faults(name: str) -> list[Fault]:
    return [fault for fault in catalog().faults.values() if fault.specialist == name]


def faults(name: str) -> Iterator[str]:
    """The faults that specialist NAME knows, under the commands that see them first."""
    seen: dict[str, list[Fault]] = {}
    for fault in sorted(_faults(name), key=lambda each: each.slug):
        verbs = _verbs(fault)
        # a log or trace shows what came of it, and an experiment takes longer than a run: the reference says so
        earliest = sorted(verbs - {"read", "experiment"} or verbs)
        seen.setdefault(", ".join(earliest), []).append(fault)
    yield "| fault | what it is |"
    yield "|---|---|"
    for commands in sorted(seen):
        said = [fault.slug for fault in seen[commands] if _is_message(fault)]
        yield f"| **{commands}** ||"
        yield from (f"| {fault.slug} | {_more(fault)} |" for fault in seen[commands] if not _is_message(fault))
        if said:  # whoever has the message gets the fault from `ask`: rows would cost every route their tokens
            yield f"| {len(said)} more | named by messages: `torchtriage ask` |"


def _more(fault: Fault) -> str:
    """What its title says that its name does not: each word of a table costs every route its tokens."""
    return "" if fault.title.lower().replace(" ", "-") == fault.slug else fault.title


def _is_message(fault: Fault) -> bool:
    return all(sign.detector.startswith("log/") for sign in fault.signs)


def specialists(_name: str) -> Iterator[str]:
    """The specialists and what each is for."""
    yield "| specialist | for |"
    yield "|---|---|"
    yield from (f"| {room.specialist} | {room.does} |" for room in catalog().rooms)


def symptoms(_name: str) -> Iterator[str]:
    """What is heard, whose it is, and when in a plan."""
    yield "| symptom | specialist | stage | first command |"
    yield "|---|---|---|---|"
    for room in catalog().rooms:
        for each in sorted(room.symptoms, key=lambda one: one.slug):
            first = f"`{each.examine[0]}`" if each.examine else "read the sheet"
            yield f"| {each.title} | {room.specialist} | {each.stage.value} | {first} |"


TABLES: dict[str, Callable[[str], Iterator[str]]] = {
    "faults": faults,
    "specialists": specialists,
    "symptoms": symptoms,
}


def _verbs(fault: Fault) -> set[str]:
    """The commands whose detectors may show FAULT."""
    kinds = {"source": "check", "run": "run", "trial": TRIALS.get(fault.specialist, "experiment")}
    looked = (sign.detector.partition("/")[0] for sign in fault.signs)
    return {kinds.get(kind, "read") for kind in looked}


def _reference(each: page.Page) -> str:
    """A fault's page as a reference: what it is, how it is seen, the prose, the remedies."""
    fault = each.fault
    verbs = " or ".join(f"`torchtriage {verb}`" for verb in sorted(_verbs(fault)))
    lines = [f"# {fault.slug}: {fault.title}", "", f"Severity {fault.severity.value}. Seen by {verbs}.", ""]
    for title, prose in each.sections.items():
        lines += [f"## {title}", "", prose]
    lines += ["## Remedies", ""]
    for remedy in fault.remedies:
        lines += [
            f"- **{remedy.title}**",
            f"  When: {remedy.when}",
            f"  Cost: {remedy.cost}",
            f"  Verify: {remedy.verify}",
        ]
    return _COMMENT.sub("", "\n".join(lines)).strip() + "\n"
