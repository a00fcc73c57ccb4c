"""What `check` costs, beside a bare ast.parse of the same files in the same run; a second look; a cold start.

    python bench/check.py [FOLDER]

Without FOLDER the files are those of the installed torch.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from torchtriage.examine.source.files import Means, examine
from torchtriage.examine.source.seen import Memory
from torchtriage.triage import detectors

MOST, ROUNDS, GOAL = 400, 5, 2.5
WARM, COLD = 0.1, 150
SMALL = Path(__file__).parent.parent / "examples/slow_and_unstable.py"


def files(folder: Path) -> list[Path]:
    """Every file under FOLDER that mentions torch, thinned out evenly to MOST."""
    found = [path for path in sorted(folder.rglob("*.py")) if b"torch" in path.read_bytes() and parses(path)]
    stride = max(1, len(found) // MOST)
    return found[::stride][:MOST]


def parses(path: Path) -> bool:
    try:
        ast.parse(path.read_bytes())
    except SyntaxError:
        return False
    return True


def floor(paths: list[Path]) -> None:
    for path in paths:
        ast.parse(path.read_bytes())


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one run."""
    start = time.process_time()
    work()
    return time.process_time() - start


def again(paths: list[Path], rules: tuple[object, ...]) -> float:
    """The CPU time of a second look at files that have not changed, as a share of the first."""
    with tempfile.TemporaryDirectory() as home:
        means = Means(memory=Memory([], Path(home)))
        first, second = (seconds(lambda: examine(paths, rules, means)) for _ in range(2))  # type: ignore[arg-type]
    return second / first


def cold() -> tuple[float, float]:
    """Milliseconds (the median) until `check` of one small file has ended, and until an empty Python has."""
    with tempfile.TemporaryDirectory() as home:
        calls = (["-m", "torchtriage", "check", "--no-cache", str(SMALL)], ["-c", "pass"])
        spent = [[_milliseconds(call, home) for call in calls] for _ in range(2 * ROUNDS)]
    ours, empty = (sorted(column)[ROUNDS] for column in zip(*spent, strict=True))
    return ours, empty


def _milliseconds(words: list[str], home: str) -> float:
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *words], check=False, capture_output=True, env={**os.environ, "XDG_CACHE_HOME": home}
    )
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    spec = find_spec("torch")
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(spec.origin or "").parent if spec else Path()
    paths, rules = files(folder), tuple(detectors("rules"))
    pairs = [(seconds(lambda: floor(paths)), seconds(lambda: examine(paths, rules))) for _ in range(ROUNDS)]
    ratios = sorted(ours / bare for bare, ours in pairs)
    bare, ours = (min(column) for column in zip(*pairs, strict=True))
    lines = sum(path.read_bytes().count(b"\n") for path in paths)
    print(f"{len(paths)} files, {lines} lines, {len(rules)} rules, {ROUNDS} rounds, CPU seconds of one process")
    print(f"floor: ast.parse {bare:.2f} s   check {ours:.2f} s   (the best round of each)")
    print(f"ratio {ratios[ROUNDS // 2]:.2f} (median; {ratios[0]:.2f} to {ratios[-1]:.2f} over the rounds; goal {GOAL})")
    print(f"a second look at unchanged files: {again(paths, rules):.3f} of the first (goal {WARM})")
    ours, empty = cold()
    print(f"one small file, cold: {ours:.0f} ms, of which an empty Python {empty:.0f} ms (goal {COLD} ms)")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
