"""Reading checkpoints: what it costs beside the start of the program and beside torch.load, and what attacks come to.

    python bench/reading.py [--megabytes N] [--rounds N] [--tensors N]
    python bench/checkpoints.py --fuzz N

Times are those of a process of its own, in turns; verification is held against torch.load in one process, in turns.
With --fuzz N hostile files and N pickles with something broken in them are read, under a hook that sees every import,
every file that is opened for writing, every process and every socket. Clean is called what is neither a finding nor
inconclusive though an unpickler would ask for something by name.
"""

from __future__ import annotations

import argparse
import io
import json
import pickle
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MADE = Path(__file__).parent.parent / "tests/made"
sys.path.insert(0, str(MADE))

from mutated import mutations  # noqa: E402 - of the tests
from stored.hostile import FOLDERS, HOSTILE, SEEDS  # noqa: E402 - beside it

from torchtriage.examine.artefact.checkpoint.builders import BUILDERS  # noqa: E402
from torchtriage.examine.artefact.checkpoint.names import foreign, is_data  # noqa: E402
from torchtriage.examine.artefact.checkpoint.tensors import persistent  # noqa: E402
from torchtriage.examine.artefact.pickle.machine import Machine  # noqa: E402
from torchtriage.examine.artefact.pickle.nodes import Broken  # noqa: E402

SLOW = 1.0
"""Seconds after which a file of some kilobytes counts as one that hangs."""
_HARM = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.", "socket.", "ctypes.", "pty.", "shutil.")


class Watch:
    """What happens in this process that reading never does."""

    def __init__(self) -> None:
        self.on, self.seen = False, list[str]()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        writes = event == "open" and isinstance(args[1], str) and any(letter in args[1] for letter in "wax+")
        if (
            writes
            or event.startswith(_HARM)
            or event in ("exec", "compile", "import", "marshal.loads", "pickle.find_class")
        ):
            self.seen.append(f"{event} {args[0]!r}"[:200])


class Recorder(pickle.Unpickler):
    """Asks for nothing, and remembers what it was asked for."""

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self.asked: list[str] = []

    def find_class(self, module: str, name: str, /) -> Any:
        self.asked.append(f"{module}.{name}")
        raise pickle.UnpicklingError("asked")


def told(data: bytes) -> bool:
    """Whether the reader says anything of a pickle."""
    machine = Machine(data, BUILDERS, persistent)
    try:
        machine.run()
    except Broken:
        return True
    return bool(foreign(machine.names, machine.called))


def asks(data: bytes) -> bool:
    """Whether an unpickler would ask for anything that is no data."""
    recorder = Recorder(data)
    try:
        recorder.load()
    except Exception:  # noqa: BLE001 - hostile bytes may raise anything, MemoryError among it
        return any(not is_data(name) for name in recorder.asked)
    return False


def fuzz(count: int) -> dict[str, Any]:
    """Hostile files by the whole reader, broken pickles by what reads pickles."""
    from torchtriage import triage

    watch, clean, slow, longest = Watch(), list[str](), list[str](), 0.0
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: made(Path(folder)) for name, made in FOLDERS.items()}
        for name, data in HOSTILE.items():
            paths[name] = Path(folder) / f"{len(paths)}.pt"
            paths[name].write_bytes(data)
        whole(triage.read, next(iter(paths.values())))  # what it imports, it imports now
        for name, path in paths.items():
            watch.on, began = True, time.process_time()
            said = whole(triage.read, path)
            watch.on, took = False, time.process_time() - began
            longest = max(longest, took)
            clean += [] if said else [name]
            slow += [name] if took > SLOW else []
    executed = len(watch.seen)
    seen = broken(count, watch)
    return {
        "hostile files": len(paths), "executed": executed, "called clean": clean, "longer than 1 s": slow,
        "longest, s": round(longest, 2), **seen, "events": watch.seen[:5],
    }  # fmt: skip


def whole(read: Callable[..., Any], path: Path) -> bool:
    """Whether the case says anything: a finding, or that something cannot be told beside what --verify would."""
    from torchtriage.core.errors import TriageError

    try:
        case = read([path])
    except TriageError:
        return True
    further = [item for item in case.inconclusive if item.detector != "checkpoint/checkpoint-not-finite"]
    return bool(case.findings or further)


def broken(count: int, watch: Watch) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_AS, (2**31, resource.getrlimit(resource.RLIMIT_AS)[1]))
    # the unpickler that is asked beside ours makes room for any memo slot that a pickle names
    clean = slow = asked = 0
    before = len(watch.seen)
    for data in mutations(SEEDS, count):
        watch.on, began = True, time.process_time()
        said = told(data)
        watch.on, took = False, time.process_time() - began
        slow += took > SLOW
        if not said or asked < count // 10:
            would = asks(data)
            asked += would
            clean += would and not said
    return {
        "broken pickles": count,
        "executed of them": len(watch.seen) - before,
        "clean of them": clean,
        "slow of them": slow,
    }


# Costs


def costs(megabytes: int, rounds: int, tensors: int) -> dict[str, Any]:
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path, many = Path(folder) / "model.pt", Path(folder) / "many.pt"
        torch.save({f"layer{n}.weight": torch.randn(megabytes * 2**18 // 48) for n in range(48)}, path)
        torch.save({f"layer{n}.weight": torch.zeros(2) for n in range(tensors)}, many)
        return {"megabytes": megabytes, **started(path, rounds), **verified(path, rounds), **crowded(many)}


def started(path: Path, rounds: int) -> dict[str, Any]:
    """Beyond the start of the program."""
    verbs = {"--version": ["--version"], "read --json": ["read", str(path), "--json"], "read": ["read", str(path)]}
    seconds: dict[str, list[float]] = {name: [] for name in verbs}
    for turn in range(rounds + 1):
        for name, args in verbs.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "torchtriage", *args], stdout=subprocess.DEVNULL, check=True)
            seconds[name] += [time.perf_counter() - began] if turn else []
    said = subprocess.run(
        [sys.executable, "-m", "torchtriage", "read", str(path), "--json"], stdout=subprocess.PIPE, check=True
    )
    (figures,) = json.loads(said.stdout)["measurements"]["checkpoint"]["checkpoints"]
    floor = min(seconds["--version"])
    beyond = {f"{name}, ms beyond": round(1e3 * (min(seconds[name]) - floor)) for name in ("read --json", "read")}
    return {"--version, ms": round(1e3 * floor), **beyond, "bytes read": figures["bytes_read"]}


def verified(path: Path, rounds: int) -> dict[str, Any]:
    """All numbers held against their checksums and looked at for NaN, beside torch.load of the same file."""
    import torch

    from torchtriage.examine.artefact.checkpoint.read import read

    loads, checks = [], []
    for _ in range(rounds + 1):
        began = time.perf_counter()
        state = torch.load(path, weights_only=True)
        loads.append(time.perf_counter() - began)
        del state
        began = time.perf_counter()
        (each,) = read([str(path)], verify=True).each
        checks.append(time.perf_counter() - began)
        if each.troubles or each.verdict is None or each.verdict.checked < path.stat().st_size * 0.99:
            raise SystemExit("not verified")
    ratios = [check / load for check, load in zip(checks[1:], loads[1:], strict=True)]
    return {
        "torch.load, ms": round(1e3 * min(loads)), "verify, ms": round(1e3 * min(checks)),
        "verify / torch.load": round(min(checks) / min(loads), 2),
        "median of the ratios": round(statistics.median(ratios), 2),
    }  # fmt: skip


def crowded(path: Path) -> dict[str, Any]:
    """A file of very many tensors."""
    import torch

    from torchtriage.examine.artefact.checkpoint.read import read

    began = time.perf_counter()
    (each,) = read([str(path)]).each
    took = time.perf_counter() - began
    began = time.perf_counter()
    torch.load(path, weights_only=True)
    return {
        f"{len(each.tensors):,} tensors, s": round(took, 2),
        "torch.load of them, s": round(time.perf_counter() - began, 2),
    }


def attacked(count: int) -> int:
    """Prints the figures of `fuzz`; 1 where anything was executed, called clean, or hung."""
    figures = fuzz(count)
    for name, figure in figures.items():
        print(f"{name:28} {figure}")
    names = ("executed", "called clean", "longer than 1 s", "executed of them", "clean of them", "slow of them")
    return int(any(figures[name] for name in names))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--tensors", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    for name, figure in costs(given.megabytes, given.rounds, given.tensors).items():
        print(f"{name:28} {figure}")


if __name__ == "__main__":
    main()
