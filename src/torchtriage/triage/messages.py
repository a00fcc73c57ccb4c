"""Error messages worked out: routing takes them apart, and the room whose message it is does the arithmetic."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from torchtriage.core.query import Decoded, Query

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torchtriage.examine.source.parameters.models import Models


def worked_out(query: Query, sources: Sequence[str | Path] = ()) -> Query:
    """QUERY with its messages' figures worked out by the rooms that know them."""
    models = _models(sources) if sources else None
    if not query.decoded:
        return query
    homes = _homes()
    return replace(
        query, decoded=tuple(_meaning(each, homes[each.signature], query.text, models) for each in query.decoded)
    )


def decoded(text: str) -> tuple[Decoded, ...]:
    """The messages in TEXT, a piece of a log, worked out: what `ask` makes of them, without its words and plan."""
    from torchtriage.routing.compiled import lexicon
    from torchtriage.routing.signatures import decode

    known, homes = lexicon(), _homes()
    found = (each.decoded for each in decode(text, known.signatures, known.anchors))
    return tuple(_meaning(each, homes[each.signature], text, None) for each in found)


@cache
def _homes() -> dict[str, str]:
    """Every signature and the specialist whose message it is."""
    from torchtriage.routing.compiled import lexicon

    known = lexicon()
    return {signature.name: known.symptoms[symptom].specialist for symptom, signature in known.signatures}


def _models(sources: Sequence[str | Path]) -> Models:
    from torchtriage.examine.source.parameters.models import read

    return read(sources)


def _meaning(message: Decoded, specialist: str, text: str, models: Models | None) -> Decoded:
    module = _messages(specialist)
    name = message.signature.replace("-", "_")
    work, named = getattr(module, name, None), getattr(module, f"{name}_in_source", None)
    message = (work(message, text) if work else None) or message
    return (named(message, text, models) if named and models is not None else None) or message


@cache
def _messages(specialist: str) -> Any:
    """The room's messages.py; None where it has none."""
    import importlib
    from importlib.util import find_spec

    name = f"torchtriage.specialists.{specialist.replace('-', '_')}.messages"
    return importlib.import_module(name) if find_spec(name) else None
