"""Jobs of Lightning, transformers and Accelerate under `torchtriage run`, unaided: healthy ones, and faults in them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.core.fault import Severity

JOBS = Path(__file__).parent / "jobs"
FRAMEWORKS = {"lightning_fit": "lightning", "transformers_train": "transformers", "accelerate_loop": "accelerate"}
FRAMEWORKS["deepspeed_loop"] = "deepspeed"
LACKING = {
    # It compiles its collectives for the CPU at the first start, which takes a compiler and a minute.
    "deepspeed": "deepspeed is not installed: pip install deepspeed",
}
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
HEALTHY = [
    ("lightning_fit", (), (), 80, 1),
    ("transformers_train", (), (), 120, 1),
    ("accelerate_loop", ("-m", "accelerate.commands.launch", "--cpu"), (), 128, 1),
    ("lightning_fit", (), ("", "2"), 40, 2),
    ("transformers_train", TORCHRUN, (), 60, 2),
    ("accelerate_loop", TORCHRUN, (), 64, 2),
    ("deepspeed_loop", ("-m", "deepspeed.launcher.runner", "--num_accelerators", "2"), (), 64, 2),
]
PLANTED = [
    ("lightning_fit", (), "eval", "mode-left-in-eval"),
    ("lightning_fit", (), "nan", "non-finite-origin"),
    ("transformers_train", (), "eval", "mode-left-in-eval"),
    ("accelerate_loop", (), "zero", "gradients-not-zeroed"),
    ("accelerate_loop", TORCHRUN, "unprepared", "same-data-on-ranks"),
]


def judged(place: Path, job: str, launcher: tuple[str, ...], words: tuple[str, ...]) -> Case:
    if find_spec(FRAMEWORKS[job]) is None:
        plain = f"{FRAMEWORKS[job]} is not installed: pip install -e '.[test]'"
        pytest.skip(LACKING.get(FRAMEWORKS[job], plain))
    command = [sys.executable, *launcher, str(JOBS / f"{job}.py"), *words]
    outer = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "DS_ACCELERATOR": "cpu"}
    outer["HF_HOME"] = str(place / "hf")
    run = [sys.executable, "-m", "torchtriage", "run", "--out", str(place / "run"), "--", *command]
    done = subprocess.run(run, cwd=place, env=outer, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    case = triage.judge(place / "run")
    assert [each for each in case.inconclusive if "switched off" in each.why or "rank" in each.detector] == []
    return case


@pytest.mark.parametrize(
    ("job", "launcher", "words", "steps", "ranks"), HEALTHY, ids=[f"{case[0]} on {case[4]}" for case in HEALTHY]
)
def test_a_healthy_job_is_seen_whole_and_nothing_is_found(
    job: str, launcher: tuple[str, ...], words: tuple[str, ...], steps: int, ranks: int, tmp_path: Path
) -> None:
    case = judged(tmp_path, job, launcher, words)

    assert [
        f"{each.fault.slug}: {each.evidence[0].fact}"
        for each in case.findings
        if each.fault.severity is not Severity.INFO
    ] == []
    assert [each["steps"] for each in case.measurements["ranks"]["each"]] == [steps] * ranks
    assert len(case.measurements["loss"]) == steps
    shares = case.measurements["shares"]
    assert min(shares[name] for name in ("data", "forward", "backward", "optimizer")) > 0
    assert shares["optimizer"] < 0.4


@pytest.mark.parametrize(
    ("job", "launcher", "fault", "slug"), PLANTED, ids=[f"{case[0]} {case[2]}" for case in PLANTED]
)
def test_a_fault_is_found_through_the_framework_at_its_line(
    job: str, launcher: tuple[str, ...], fault: str, slug: str, tmp_path: Path
) -> None:
    case = judged(tmp_path, job, launcher, (fault,))
    lines = (JOBS / f"{job}.py").read_text().splitlines()
    wanted = next(number for number, line in enumerate(lines, start=1) if line.endswith(f"# fault: {fault}"))
    found = {
        each.fault.slug: [(Path(item.place.path or "").name, item.place.line) for item in each.evidence]
        for each in case.findings
    }

    assert set(found) == {slug}
    assert (f"{job}.py", wanted) in found[slug]
