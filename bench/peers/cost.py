"""What a peer costs a step, in processes of their own: TraceML cannot leave a process that it has entered."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from processes import ended

from peers.traceml import traced

LOOP = Path(__file__).parent / "inside/loop.py"
PRINTED = re.compile(r"seconds (\S+)")


def traceml(folder: Path, model: str, rounds: int, steps: int) -> list[tuple[float, float]]:
    """Of each pair of neighbouring processes: seconds added to the median step, and the ratio to the step alone."""
    tools = (folder / "traceml-ai" / "bin").absolute()
    loop = (LOOP, model, str(steps))
    pairs = [(_seconds((tools / "python", *loop)), _seconds(traced(tools, *loop))) for _ in range(rounds)]
    return [(with_it - alone, with_it / alone) for alone, with_it in pairs]


def _seconds(command: Sequence[str | Path]) -> float:
    with tempfile.TemporaryDirectory() as name:
        ended(command, Path(name))
        logs = (Path(name) / "output.txt", *Path(name).glob("logs/run/nodes/*/training.stdout.log"))
        texts = [log.read_text(encoding="utf-8") for log in logs]
        printed = PRINTED.search("\n".join(texts))
    if printed is None:
        raise SystemExit(f"{' '.join(map(str, command))} printed no time")
    return float(printed[1])
