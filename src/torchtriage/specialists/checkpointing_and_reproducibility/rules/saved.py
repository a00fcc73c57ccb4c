"""What is saved, where, and whether a path is that of the same file."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.values import Member, Object, Unknown, Value

MODELS = ("module", "wrapper")


def saved_parts(value: Value) -> Iterator[Value]:
    """VALUE, and the values of a dict, a list or a tuple."""
    yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in inside:
        yield from saved_parts(each)


def saved_states(value: Value) -> set[int]:
    """Of what VALUE holds the states."""
    found = [each.state["of"] for each in saved_parts(value) if isinstance(each, Object) and each.kind == "state"]
    return {id(each) for each in found} | {id(bare(each)) for each in found}


def is_same_path(loaded: Value, saved: Value) -> bool:
    """Whether the path SAVED is that of the file LOADED, or of one that is renamed to it later: last.pt.tmp."""
    if isinstance(loaded, str) and isinstance(saved, str):
        return saved.startswith(loaded)
    while isinstance(saved, Member) and saved.why == "text" and saved is not loaded:
        saved = saved.receiver
    if isinstance(saved, Unknown) and saved.source is loaded and saved.why in lore()["paths"]:
        return True  # path.with_suffix(".tmp")
    return loaded is saved


def is_same_file(one: Value, other: Value) -> bool:
    """Whether two paths, or files that were opened by them, are the same."""
    first, second = path_of_file(one), path_of_file(other)
    return first is second or (isinstance(first, str) and first == second)


def path_of_file(value: Value) -> Value:
    while isinstance(value, Member) and value.name == "open":
        value = value.receiver
    return value
