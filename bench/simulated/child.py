"""Runs one job on the simulated device, in virtual time, and writes down its ledger: `python child.py REQUEST`.

REQUEST is a JSON file: script, out (a folder), costs, memory, devices, turns (optimizer steps that make one step of the
training), autocast (false: regions are switched off), watch (a folder for the record of the probes, or null).

time.sleep stands for work of the host: it advances the simulated clock, and really sleeps, so that a sampler of stacks
sees it. time.perf_counter reads the simulated clock, and the system does not tell how long a thread has queued for a
CPU: the job and what watches it live in one time, which has nothing to do with the machine's. Workers of a loader take
none. Into OUT go ledger<rank>.json and journal<rank>.json: the marks of the steps, the naps with their places, and the
error that ended the job, with its line.
"""

from __future__ import annotations

import builtins
import json
import os
import runpy
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from torchtriage import simulation
from torchtriage.simulation import Costs, Simulator, Transfer

NS = 1_000_000_000
LOADER = f"{os.sep}torch{os.sep}utils{os.sep}data{os.sep}"


def costs_of(row: dict[str, Any]) -> Costs:
    """Costs from JSON, where a transfer is [latency in ns, bytes per second]."""
    costs: dict[str, Any] = {
        name: Transfer(*value) if isinstance(value, list) else value for name, value in row.items()
    }
    return Costs(**costs)


class Journal:
    """What the ledger does not hold: marks of steps, and naps of the host with the place that they come from."""

    def __init__(self, simulator: Simulator, turns: int) -> None:
        self.simulator, self.turns = simulator, turns
        self.marks: list[int] = [simulator.now]
        self.naps: list[dict[str, Any]] = []
        self._stepped = 0

    def mark(self, *_: object) -> None:
        self._stepped += 1
        if self._stepped % self.turns == 0:
            self.marks.append(self.simulator.now)
            self.simulator.step()

    def place_hooks(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(self.mark)
        pid, trainer, rest = os.getpid(), threading.get_ident(), time.sleep

        def sleep(seconds: float) -> None:
            if os.getpid() != pid:
                return  # a worker: it works beside the training
            if threading.get_ident() == trainer:
                begun = self.simulator.now
                self.simulator.host(round(seconds * NS))
                frame = sys._getframe(1)
                row = {"begun": begun, "ended": self.simulator.now, "line": frame.f_lineno}
                self.naps.append({**row, "loader": _within_loader(frame)})
            rest(seconds)

        time.sleep = sleep  # type: ignore[assignment]


def keep_virtual_time(simulator: Simulator) -> None:
    """Gives the process one clock, the simulated one, on a system that does not tell who has queued for a CPU."""
    time.perf_counter_ns = lambda: simulator.now
    time.perf_counter = lambda: simulator.now / NS

    def instead(of: Callable[..., Any]) -> Callable[..., Any]:
        def opened(path: Any, *args: Any, **options: Any) -> Any:
            if str(path).endswith("/schedstat"):
                raise FileNotFoundError(path)
            return of(path, *args, **options)

        return opened

    builtins.open = instead(open)
    os.open = instead(os.open)


def _within_loader(frame: FrameType | None) -> bool:
    while frame is not None:
        if LOADER in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def without_autocast() -> None:
    """Switches every region of autocast off, to see what it costs or gains."""
    import torch

    begin = torch.autocast.__init__

    def off(self: Any, *args: Any, **options: Any) -> None:
        begin(self, *args, **{**options, "enabled": False})

    torch.autocast.__init__ = off


def run(request: dict[str, Any]) -> BaseException | None:
    """Runs the script; the error that ended it, if one did."""
    script = request["script"]
    sys.argv = [script]
    sys.path.insert(0, str(Path(script).parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        return error if error.code else None
    except Exception as error:  # noqa: BLE001 - it is a result
        traceback.print_exc()
        return error
    return None


def line_of(error: BaseException | None, script: str) -> int | None:
    """The innermost line of SCRIPT that ERROR came through."""
    frames = traceback.extract_tb(error.__traceback__) if error else ()
    return next((each.lineno for each in reversed(frames) if each.filename == script), None)


def watched(request: dict[str, Any], simulator: Simulator) -> BaseException | None:
    """Runs the script under the probes, whose clock is the simulated one."""
    from torchtriage.examine.run.job import begin, end
    from torchtriage.examine.run.job.accelerator import accelerator
    from torchtriage.triage import probes

    accelerator.clock = lambda: simulator.now
    job = begin(request["watch"], [str(path) for path in probes()])
    error = run(request)
    if error is None:
        job.leave("exit")
        job.tidy()
    else:
        try:
            end(job, error)
        finally:
            job.close()
    return error


def main(path: str) -> int:
    import torch

    request = json.loads(Path(path).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    simulator = simulation.start(request["devices"], request["memory"], costs_of(request["costs"]))
    journal = Journal(simulator, request["turns"])
    journal.place_hooks()
    keep_virtual_time(simulator)
    if not request["autocast"]:
        without_autocast()
    error = watched(request, simulator) if request["watch"] else run(request)
    rank = os.environ.get("RANK", "0")
    told = {
        "marks": journal.marks,
        "naps": journal.naps,
        "error": type(error).__name__ if error else None,
        "line": line_of(error, request["script"]),
    }
    out = Path(request["out"])
    simulator.ledger.save(out / f"ledger{rank}.json")
    (out / f"journal{rank}.json").write_text(json.dumps(told), encoding="utf-8")
    return int(error is not None)


if __name__ == "__main__" and len(sys.argv) > 1:
    sys.exit(main(sys.argv[1]))
