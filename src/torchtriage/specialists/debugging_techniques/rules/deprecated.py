"""Names that torch keeps for old code only."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.script import Script


@cache
def _table() -> tuple[str, dict[str, str], frozenset[str]]:
    """The torch that was asked, its deprecated names with their successors, and the last words of the names."""
    found = tomllib.loads(Path(__file__).parents[1].joinpath("deprecated.toml").read_text(encoding="utf-8"))
    return found["torch"], found["names"], frozenset(name.rpartition(".")[2] for name in found["names"])


@detector("source/api-deprecated")
def api_deprecated(script: Script) -> Iterator[Sighting]:
    """A function or class is called that torch has marked as deprecated."""
    torch, names, tails = _table()
    aliases = {store.name for store in script.facts.aliases if store.imported.rpartition(".")[2] in tails}
    for call in script.calls(*sorted((tails | aliases) & script.facts.calls.keys())):
        name = script.names.spelled(call.node.func, call.scope)
        if name in names:
            instead = f": {names[name]} takes its place" if names[name] else ", and names nothing in its place"
            fact = f"torch {torch} marks {name} as deprecated{instead}"
            yield script.seen(call.node, fact, _edit(script, call, name))


def _edit(script: Script, call: Call, old: str) -> tuple[Edit, ...]:
    """Only the last word changes, where it stands there and the new name is beside the old one."""
    new = _table()[1][old]
    written, home = dotted(call.node.func), old.rpartition(".")[0]
    if new.rpartition(".")[0] != home or "." not in written or not written.endswith(f".{call.tail}"):
        return ()
    _, end = script.text.span(call.node.func)
    return script.change("take-the-successor", end - len(call.tail.encode()), end, new.rpartition(".")[2])
