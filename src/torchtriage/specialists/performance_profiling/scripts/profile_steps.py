"""The complete profile of a training: schedule, named phases, table, trace, and who calls the copies.

Copy what stands between `profile(` and `prof.step()` into your own loop. Prints the phases and the operators with
the most time of their own; with --copies, instead, the line that each copy comes from. The trace opens at
ui.perfetto.dev.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

PHASES = ("data", "transfer", "forward", "backward", "optimizer")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wait", type=int, default=5, help="steps before anything is recorded (default 5)")
    parser.add_argument("--active", type=int, default=3, help="steps that are recorded (default 3)")
    parser.add_argument("--rows", type=int, default=8, help="rows of the table (default 8)")
    parser.add_argument("--copies", action="store_true", help="record Python's stack and name the callers of copies")
    parser.add_argument("--trace", type=Path, help="where to write the trace (default: a temporary folder)")
    return parser.parse_args()


def recorded(device: str, wait: int, active: int, stack: bool) -> profile:
    """A profile of ACTIVE steady steps of a small training on DEVICE."""
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kinds = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    steps = schedule(wait=wait, warmup=2, active=active, repeat=1)
    with profile(activities=kinds, schedule=steps, with_stack=stack) as prof:
        for _ in range(wait + 2 + active):
            with record_function("data"):
                inputs, labels = torch.randn(64, 256, dtype=torch.float64), torch.randint(10, (64,))
            with record_function("transfer"):
                inputs, labels = inputs.to(device, torch.float32), labels.to(device)
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(inputs), labels)
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            prof.step()
    return prof


def copies(prof: profile) -> Counter[str]:
    """How often each caller copied: the operator above, and the Python frame where a stack was recorded."""
    found: Counter[str] = Counter()
    for event in prof.events() or []:
        if event.name != "aten::copy_":
            continue
        above, names = event.cpu_parent, []
        while above is not None:
            names.append(above.name)
            above = above.cpu_parent
        line = next((name for name in names if ".py(" in name), "no stack recorded")
        found[f"{names[0] if names else 'the code itself'} at {line}"] += 1
    return found


def main() -> None:
    given = options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    prof = recorded(device, given.wait, given.active, given.copies)
    if given.copies:
        print("copies (no times are shown: recording stacks costs too much to believe them):")
        for caller, count in copies(prof).most_common():
            print(f"  {count:4} {caller}")
    else:
        show(prof, given, device)
    path = given.trace or Path(tempfile.mkdtemp(), "trace.json.gz")
    prof.export_chrome_trace(str(path))
    print(f"trace: {path}")


def show(prof: profile, given: argparse.Namespace, device: str) -> None:
    """The phases by the host's time, and the operators by their own on DEVICE."""
    rows = prof.key_averages()
    spent = {row.key: row.cpu_time_total / given.active / 1000 for row in rows if row.key in PHASES}
    print("host milliseconds a step, by phase:")
    for name in PHASES:
        print(f"  {name:10} {spent[name]:8.3f}")
    print(rows.table(sort_by=f"self_{device}_time_total", row_limit=given.rows, max_name_column_width=40))


if __name__ == "__main__":
    main()
