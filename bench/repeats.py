"""How often `torchtriage repro` finds the step, phase and module at which planted differences begin, and at what price.

bench/trials.py --only repro [FILE]: the scripts of tests/cases/trials/repeat, or those of a file of the format that
bench/trials.py names; the price as the ratio of steps with and without fingerprints, taken in turns in one process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CASES = HERE.parent / "tests" / "cases" / "trials" / "repeat"
SIZES = (("0.8 M", 160, 4, 60), ("12.6 M", 512, 6, 16))
CAUSES = {
    "seeds": {"seed", "data-order", "dataset-generator", "worker-seed"},
    "entropy": {"time-or-entropy", "seed", "data-order", "worker-seed", "dataset-generator"},
    "hash": {"hash-order", "data-order"},
    "listing": {"file-order", "data-order"},
    "addresses": {"time-or-entropy", "hash-order", "other"},
    "workers": {"worker-seed", "dataset-generator"},
    "threads": {"threads", "nondeterministic-kernel"},
    "deterministic": {"nondeterministic-kernel", "threads"},
}  # what each thing that was held still explains


@dataclass(frozen=True)
class Planted:
    """A script; wanted: step, phase, module ("null" where no module has it) and cause; nothing for a healthy one."""

    name: str
    script: str
    words: tuple[str, ...]
    options: tuple[str, ...]
    wanted: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """Of one case: whether anything was found, and whether each part of the answer is right."""

    planted: Planted
    found: bool
    place: bool
    first: bool
    cause: bool
    told: str


def planted(paths: Sequence[Path]) -> Iterator[Planted]:
    """Of files of the suite the heads; of a file of JSON lines those for repro."""
    for path in paths:
        if path.suffix == ".py":
            head = dict(
                line[2:].split(": ", 1) for line in path.read_text().splitlines() if line[:2] == "# " and ": " in line
            )
            wanted: dict[str, Any] = {key: head[key] for key in ("step", "phase", "module", "cause") if key in head}
            yield Planted(path.stem, path.read_text(), ("train.py",), (), wanted if "step" in wanted else {})
            continue
        for line in path.read_text().splitlines():
            item = json.loads(line)
            if item["trial"] == "repro":
                wanted = {key: str(item[key]) for key in ("step", "phase", "module", "cause") if item.get(key)}
                fault = bool(item["faults"])
                yield Planted(
                    item["id"], item["script"], tuple(item["command"]), tuple(item["options"]), wanted if fault else {}
                )


def asked(each: Planted) -> Answer:
    """What repro answers to one script, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(each.script)
        words = [
            sys.executable,
            "-m",
            "torchtriage",
            "repro",
            "--json",
            "--timeout",
            "300",
            *each.options,
            "--",
            *each.words,
        ]
        ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        files = sorted(path.name for path in Path(folder).iterdir())
    if files != ["torchtriage-runs", "train.py"]:
        return Answer(each, found=False, place=False, first=False, cause=False, told=f"left {files} behind")
    try:
        told = json.loads(ended.stdout)["measurements"]["repro"]
    except (ValueError, KeyError):
        return Answer(each, found=False, place=False, first=False, cause=False, told=ended.stderr[-400:])
    found = ended.returncode == 1
    place, first = (_right(each.wanted, told[key]) for key in ("place", "first_pass"))
    cause = each.wanted.get("cause") in CAUSES.get(told["explained_by"] or "", set())
    held = [tried["held"] for tried in told["tried"]]
    said = f"{told['first_pass']} {told['place']} {told.get('operation')} {told['explained_by']} {held}"
    return Answer(each, found, place, first, cause, said)


def _right(wanted: dict[str, Any], place: dict[str, Any] | None) -> bool:
    """Step and phase, and the module where one is wanted."""
    if not wanted or place is None:
        return not wanted and place is None
    module = wanted.get("module", "null")
    alike = module == "null" or place["module"] == module
    return bool(int(wanted["step"]) == place["step"] and wanted["phase"] == place["phase"] and alike)


PRICE = """
import gc, statistics, sys, time, torch
from torch import nn
width, layers, steps = map(int, sys.argv[1:])
torch.manual_seed(0)
torch.set_num_threads(1)
layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True)
model = nn.Sequential(nn.Linear(32, width), nn.TransformerEncoder(layer, layers), nn.Linear(width, 8))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
watch = next(each for each in gc.get_objects() if type(each).__name__ == "Watch" and hasattr(each, "closer"))
times = {True: [], False: []}
for step in range(-4, steps):
    watch.off = step % 2 == 1
    began = time.thread_time()
    model(torch.randn(16, 24, 32)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step >= 0:
        times[watch.off].append(time.thread_time() - began)
print(statistics.median(times[False]) / statistics.median(times[True]))
"""


def price(width: int, layers: int, steps: int) -> float:
    """The median step with fingerprints by the median step without, steps in turns, CPU time of the thread."""
    from torchtriage.examine.run.launcher.launch import environment
    from torchtriage.examine.trial.repeat.pairs import HERE as REPEAT

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(PRICE)
        variables = environment(os.environ, Path(folder), [REPEAT / "job"])
        words = [sys.executable, str(script), str(width), str(layers), str(steps)]
        return float(subprocess.run(words, env=variables, capture_output=True, text=True, check=True).stdout)


def main(file: Path | None = None) -> None:
    """Prints the price, where the planted set is run, and the figures; what was not as wanted by name, there only."""
    paths = [file] if file is not None else sorted(CASES.glob("*.py"))
    for name, width, layers, steps in SIZES if file is None else ():
        ratios = sorted(price(width, layers, steps) for _ in range(3))
        spread = f"({ratios[0]:.2f} to {ratios[2]:.2f})"
        print(f"a step under fingerprints, transformer of {name} parameters: x{ratios[1]:.2f} {spread}")
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(asked, planted(paths)))
    for each in answers if file is None else ():
        good = (each.found and each.place and each.cause) if each.planted.wanted else not each.found and each.place
        if not good:
            print(f"  {each.planted.name}: wanted {each.planted.wanted or 'nothing'}; {each.told}")
    _sums([each for each in answers if each.planted.wanted], [each for each in answers if not each.planted.wanted])


def _sums(faulty: Sequence[Answer], healthy: Sequence[Answer]) -> None:
    for what, right in (
        ("found", sum(each.found for each in faulty)),
        ("step, phase and module by the first pass", sum(each.first for each in faulty)),
        ("step, phase and module after the closer look", sum(each.found and each.place for each in faulty)),
        ("cause", sum(each.cause for each in faulty)),
    ):
        print(f"{what}: {right} of {len(faulty)}{_interval(right, len(faulty))}")
    alarms = sum(each.found or not each.place for each in healthy)
    print(f"false alarms: {alarms} of {len(healthy)} healthy{_interval(alarms, len(healthy))}")


def _interval(right: int, of: int) -> str:
    """Wilson's, of 95 %."""
    if not of:
        return ""
    z, share = 1.96, right / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * ((share * (1 - share) / of + z * z / (4 * of * of)) ** 0.5) / (1 + z * z / of)
    return f" ({max(0.0, middle - half):.0%} to {min(1.0, middle + half):.0%})"
