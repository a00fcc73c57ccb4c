"""Figures from traces of torch.profiler (.json, .json.gz), one file for each rank.

Prints for each: the milliseconds traced, the share in which the device worked, kernels and their median length, copies
by direction, collectives and what of them no other kernel hides (exposed), the longest gaps with what the host did
then, and the operators on top by their own time. Without a file it profiles a small training and reads that.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

Event = dict[str, Any]
Span = tuple[float, float]
DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path, help="traces, one for each rank (none: an example is made)")
    parser.add_argument("--top", type=int, default=5, help="gaps and operators to show (default 5)")
    return parser.parse_args()


def read(path: Path) -> list[Event]:
    """The events of PATH that have a length."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [event for event in json.loads(text)["traceEvents"] if event.get("ph") == "X"]


def union(spans: Iterable[Span]) -> list[Span]:
    """SPANS merged, in order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def total(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)


def span(event: Event) -> Span:
    return event["ts"], event["ts"] + event["dur"]


def collective(event: Event) -> bool:
    return event["cat"] == "kernel" and "nccl" in event["name"].lower()


def own_times(events: list[Event]) -> Counter[str]:
    """Microseconds that each operator spent outside of the operators that it called."""
    own: Counter[str] = Counter()
    open_calls: dict[Any, list[Event]] = {}
    for event in sorted(events, key=lambda each: (each["ts"], -each["dur"])):
        calls = open_calls.setdefault(event["tid"], [])
        while calls and span(calls[-1])[1] <= event["ts"]:
            calls.pop()
        if calls:
            own[calls[-1]["name"]] -= event["dur"]
        own[event["name"]] += event["dur"]
        calls.append(event)
    return own


def gaps(busy: list[Span], host: list[Event], top: int) -> Iterator[str]:
    """The longest times without work on the device, each with the host's call that covers most of it."""
    idle = [(left[1], right[0]) for left, right in pairwise(busy)]
    for start, end in sorted(idle, key=lambda each: each[0] - each[1])[:top]:
        over = [(min(end, span(each)[1]) - max(start, each["ts"]), -each["dur"], each["name"]) for each in host]
        name = max(over)[2] if over and max(over)[0] > 0 else "nothing that was recorded"
        yield f"  {(end - start) / 1000:8.3f} ms: {name}"


def of_device(work: list[Event], host: list[Event], length: float, top: int) -> Iterator[str]:
    """What the device did in LENGTH microseconds."""
    busy = union(map(span, work))
    kernels = [event["dur"] for event in work if event["cat"] == "kernel"]
    yield f"device busy {total(busy) / length:.1%}, {len(kernels)} kernels, median {median(kernels or [0]):.1f} us"
    directions = Counter[str]()
    for event in work:
        if event["cat"] == "gpu_memcpy":
            directions[event["name"].partition("(")[0].strip()] += event["dur"]
    yield from (f"{name}: {spent / 1000:.3f} ms" for name, spent in directions.most_common())
    collectives = union(span(event) for event in work if collective(event))
    other = union(span(event) for event in work if not collective(event))
    exposed = total(union([*collectives, *other])) - total(other)
    yield f"collectives {total(collectives) / length:.1%}, exposed {exposed / length:.1%}"
    yield "longest gaps of the device:"
    yield from gaps(busy, host, top)


def figures(events: list[Event], top: int) -> Iterator[str]:
    work = [event for event in events if event.get("cat") in DEVICE]
    host = [event for event in events if event.get("cat") in ("cpu_op", "cuda_runtime", "user_annotation")]
    spans = [span(event) for event in work + host]
    length = max(end for _, end in spans) - min(start for start, _ in spans)
    steps = len({event["name"] for event in events if event["name"].startswith("ProfilerStep#")})
    yield f"{length / 1000:.2f} ms, {steps} steps"
    if work:
        yield from of_device(work, host, length, top)
    else:
        yield "no work on a device was recorded: times below are the host's"
    yield "operators on top, by their own time on the host:"
    operators = own_times([event for event in host if event["cat"] == "cpu_op"])
    yield from (f"  {spent / 1000:8.3f} ms: {name}" for name, spent in operators.most_common(top))


def example() -> Path:
    """The trace of three steps of a small training."""
    import torch
    from torch import nn
    from torch.profiler import profile, schedule

    model = nn.Linear(128, 128)
    with profile(schedule=schedule(wait=1, warmup=1, active=3, repeat=1)) as prof:
        for _ in range(5):
            model(torch.randn(32, 128)).pow(2).mean().backward()
            prof.step()
    path = Path(tempfile.mkdtemp(), "trace.json.gz")
    prof.export_chrome_trace(str(path))
    return path


def main() -> None:
    given = options()
    for path in given.traces or [example()]:
        print(f"== {path.name}")
        for line in figures(read(path), given.top):
            print(line)


if __name__ == "__main__":
    main()
