"""TraceML: where the time of a step goes, and memory. Its reports are verdicts of four sections."""

from __future__ import annotations

import json
import shutil
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

from corpus import Job
from processes import NAME, ended

from peers.peer import Peer, Said, faults

STEPPED = Path(__file__).parent / "inside/stepped.py"
MEMORY = faults("graph-retained memory-growth host-memory-growth retain-graph-needless hidden-state-not-detached",
                "eval-builds-graph")  # fmt: skip
BESIDE = faults("input-bound built-in-loop debug-left-on progressive-slowdown recompiling layer-built-in-forward",
                "eval-builds-graph retain-graph-needless graph-retained")  # fmt: skip


class TraceML(Peer):
    """Its zero-code mode sees the steps of Trainer and Lightning only, so that every step is put into its step here."""

    package = "traceml-ai"
    how = "`traceml run`, init(mode='auto'), each step of the loop within trace_step(model)"
    means: ClassVar[dict[str, frozenset[str]]] = {
        "INPUT_BOUND": BESIDE,
        "RESIDUAL_HEAVY": BESIDE,
        **dict.fromkeys(("CREEP_EARLY", "CREEP_CONFIRMED", "HIGH_PRESSURE", "HIGH_PROCESS_RSS"), MEMORY),
    }

    def said(self, job: Job) -> Said:
        folder = self.folder / "job"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / NAME).write_text(job.script, encoding="utf-8")
        code, seconds = ended(traced(self.tools, NAME), folder)
        left = folder / "logs/run/final_summary.json"
        if not left.exists():
            return Said(frozenset(), seconds, "ran out of time" if code is None else "left no summary")
        sections = json.loads(left.read_text(encoding="utf-8")).values()
        issues = [issue for each in sections if isinstance(each, dict) for issue in each.get("issues") or ()]
        return Said(frozenset((each["kind"], each["severity"] != "info") for each in issues), seconds)


def traced(tools: Path, *script: str | Path) -> tuple[str | Path, ...]:
    """The command that runs SCRIPT; it leaves logs/run in the folder where it runs."""
    ports = (f"--{name}-port={port}" for name, port in zip(("aggregator", "master"), free(2), strict=True))
    return (tools / "traceml", "run", STEPPED, "--run-name", "run", "--logs-dir", "logs", *ports, "--args", *script)


def free(number: int) -> list[int]:
    """Ports of this machine that nobody listens on."""
    with ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in listening]
