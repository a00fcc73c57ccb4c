"""Samples of the stack, made by hand."""

from __future__ import annotations

from typing import Any

LOOP = ["train.py", "train"]


def stacks(*seen: tuple[str, list[tuple[str, int, str]], int], around: Any = (LOOP,), **fields: Any) -> dict[str, Any]:
    """SEEN: the part of the step, the frames from the innermost outwards, and the samples of 5 ms. Of a part
    "forward/torch" the innermost line stood in torch, of "forward*" in Python, of "data<" the phase calls the frames
    but the last.
    """
    frames: dict[tuple[str, int, str], int] = {}
    rows = []
    for number, (part, stack, looks) in enumerate(seen):
        name, _, inside = part.rstrip("*<").partition("/")
        within = len(stack) - 1 if part.endswith("<") or name in ("forward", "backward") else 0
        ids = [frames.setdefault(frame, len(frames)) for frame in stack]
        rows += [[20 + number % 3, name, inside, part.endswith("*"), within, ids, looks, looks * 5_000_000]]
    told = {"kind": "stacks", "step": 39, "since": 19, "samples": sum(looks for *_, looks in seen), "parts": {}}
    known = {"lines": [], "calls": [], "frames": list(frames), "around": list(around), "nodes": 10.0}
    return {**told, **known, "stacks": rows, "again": 0, "evaluated": 0, **fields}
