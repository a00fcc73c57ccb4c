"""Events as JSON, in the layouts that profilers have written and in some that none has."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from traced.simulated import Event, Rank

LAYOUTS = ("kineto", "lines", "dense", "pretty", "shuffled", "list", "late", "gzip")
BASE = 1_790_857_026_000_000_000
DEVICE = "NVIDIA A100-SXM4-80GB"


def microseconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def written(rank: Rank, layout: str, path: Path, skew: int = 0, host: str = "node0") -> Path:
    """The trace of RANK at PATH. skew: nanoseconds by which its clock is ahead."""
    events = sorted(rank.events, key=lambda each: each["start"])
    head = _head(rank, host)
    text = "".join(_text(events, layout, head, skew))
    data = gzip.compress(text.encode(), 1) if layout == "gzip" else text.encode()
    path.write_bytes(data)
    return path


def _head(rank: Rank, host: str) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": DEVICE, "computeMajor": 8, "computeMinor": 0, "numSms": 108}],
        "distributedInfo": {"backend": "nccl", "rank": rank.number, "world_size": rank.world},
        "record_shapes": int(rank.shapes),
        "host_name": host,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE,
    }


def _text(events: list[Event], layout: str, head: dict[str, Any], skew: int) -> Iterator[str]:
    between = {"kineto": "\n  ", "lines": "\n", "pretty": "\n    "}.get(layout, "")
    if layout == "list":
        yield "["
    elif layout == "late":
        yield '{"traceEvents":['
    else:
        yield json.dumps(head, indent=2 if layout == "pretty" else None)[:-1].rstrip() + ',\n"traceEvents": ['
    for number, one in enumerate(_all(events, layout, skew)):
        yield ("," if number else "") + between + one
    yield (
        "\n]"
        if layout == "list"
        else "],\n" + (json.dumps(head)[1:] if layout == "late" else '"traceName": "made.json"\n}')
    )


def _all(events: list[Event], layout: str, skew: int) -> Iterable[str]:
    chance = Random(1)  # noqa: S311
    yield from (_meta(each) for each in ("process_name", "thread_name"))
    for event in events:
        yield _one(event, layout, skew, chance)
        if event["cat"] == "cuda_runtime":
            yield _arrow(event, skew, "s")
        elif event["cat"] in ("kernel", "gpu_memcpy"):
            yield _arrow(event, skew, "f")


def _meta(name: str) -> str:
    return f'{{"ph": "M", "name": "{name}", "ts": 0.000, "pid": 1, "tid": 0, "args": {{"name": "python"}}}}'


def _arrow(event: Event, skew: int, end: str) -> str:
    number = event["args"].get("correlation", 0)
    return (
        f'{{"ph": "{end}", "id": {number}, "pid": 1, "tid": {event["tid"]}, '
        f'"ts": {microseconds(event["start"] + skew)}, "cat": "ac2g", "name": "ac2g"}}'
    )


def _one(event: Event, layout: str, skew: int, chance: Random) -> str:
    pairs = [
        ('"ph"', '"X"'),
        ('"cat"', json.dumps(event["cat"])),
        ('"name"', json.dumps(event["name"])),
        ('"pid"', "0" if event["cat"] == "kernel" else "1"),
        ('"tid"', str(event["tid"])),
        ('"ts"', microseconds(event["start"] + skew)),
        ('"dur"', microseconds(event["length"])),
        ('"args"', json.dumps(event["args"], indent=4 if layout == "pretty" else None)),
    ]
    if layout == "shuffled":
        chance.shuffle(pairs)
    if layout == "dense":
        return "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"
    if layout in ("kineto", "pretty"):
        return "{\n    " + ",\n    ".join(f"{key}: {value}" for key, value in pairs) + "\n  }"
    return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
