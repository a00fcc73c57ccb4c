"""A fault page: a TOML head between +++ lines, then Markdown sections."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from torchtriage.core.errors import TriageError
from torchtriage.core.fault import Fault, Sign

SECTIONS = ("What happens", "Bad", "Good", "Not this")
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.S | re.M)


class Page(Struct, frozen=True):
    """What `explain` shows: the fault of the head and the prose by heading, in the order of the page.

    ranks: how many processes that train together its Bad and Good need to show the fault in a run, if more than one.
    """

    fault: Fault
    sections: dict[str, str]
    ranks: int = 1

    def snippet(self, section: str) -> str:
        """The first Python block of a section; raises TriageError when there is none."""
        found = _PYTHON.search(self.sections[section])
        if found is None:
            raise _broken(self.fault.slug, f"section {section!r} has no Python block")
        return found.group(1)


def room_name(folder: Path) -> str:
    """The specialist whose room FOLDER is: mixed_precision_and_optimization → mixed-precision-and-optimization."""
    return folder.name.replace("_", "-")


def read(path: Path) -> Page:
    """Raises TriageError that names the page and what is wrong with it."""
    import tomllib  # here, not above: a cold `ask` reads the cache and no TOML

    try:
        _, head, body = path.read_text(encoding="utf-8").split("+++\n", 2)
        told = tomllib.loads(head)
        ranks = msgspec.convert(told.pop("ranks", 1), Annotated[int, msgspec.Meta(ge=1)])
        fault = _fault(path, told)
    except (ValueError, msgspec.ValidationError) as error:
        raise _broken(str(path), str(error)) from error
    parts = re.split(r"^## (.+)\n", body, flags=re.M)[1:]
    sections = {title: prose.strip() + "\n" for title, prose in zip(parts[::2], parts[1::2], strict=True)}
    if tuple(sections) != SECTIONS:
        raise _broken(str(path), f"sections {list(sections)} are not {list(SECTIONS)}")
    return Page(fault, sections, ranks)


def _fault(path: Path, head: dict[str, Any]) -> Fault:
    known = {"title", "class", "confidence", "persona", "signs", "explains", "refines", "proof", "remedies", "torch"}
    if unknown := set(head) - known:
        raise ValueError(f"unknown keys in the head: {sorted(unknown)}")
    head["signs"] = [msgspec.to_builtins(Sign.parse(sign)) for sign in head.get("signs", ())]
    for order, remedy in enumerate(head.get("remedies", ()), start=1):
        remedy["order"] = order
    return msgspec.convert({**head, "slug": path.stem, "specialist": room_name(path.parent.parent)}, Fault)


def _broken(where: str, what: str) -> TriageError:
    return TriageError(f"broken fault page: {what}", where, "Mend the page; CONTRIBUTING.md shows its form.")
