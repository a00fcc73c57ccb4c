"""What the source alone shows about how a profiler is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.script import Script

_RENAMED = {
    "cuda_time_total": "device_time_total",
    "self_cuda_time_total": "self_device_time_total",
    "cuda_memory_usage": "device_memory_usage",
    "self_cuda_memory_usage": "self_device_memory_usage",
}


@detector("source/profiler-api-removed")
def profiler_api_removed(script: Script) -> Iterator[Sighting]:
    """A figure of a profiler's event is read by a name that torch 2.13 no longer has."""
    if not any(tail in script.facts.calls for tail in ("key_averages", "events", "profile")):
        return
    for name, new in _RENAMED.items():
        if name not in script.aside or name.encode() not in script.text.data:
            continue
        for node in ast.walk(script.facts.scopes[0].node):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                yield script.seen(
                    node,
                    f"{name} is {new} since torch 2.13: reading it raises AttributeError",
                    _renamed(script, node, new),
                )


def _renamed(script: Script, node: ast.Attribute, new: str) -> tuple[Edit, ...]:
    _, end = script.text.span(node)
    return script.change("rename", end - len(node.attr.encode()), end, new)
