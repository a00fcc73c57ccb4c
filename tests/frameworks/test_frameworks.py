"""Jobs of Lightning, transformers and Accelerate under `torchtriage run`, unaided: healthy ones, and faults in them.

`torchtriage run` starts a healthy job of each framework, under each launcher; the others are forks of a process that
has torch and what the frameworks are built on. A framework itself is imported after the probes, in a fork too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from jobs import Server
from machine import Machine

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
BUILT_ON = ("torchmetrics", "scipy.stats", "huggingface_hub")  # of which importing takes longest
LAUNCHED = {("lightning_fit", 2), ("transformers_train", 2), ("accelerate_loop", 1), ("deepspeed_loop", 2)}
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


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    there = [each for each in BUILT_ON if find_spec(each.partition(".")[0])]
    server = Server(*there, **offline(tmp_path_factory.mktemp("hub")))
    yield server
    server.close()


def offline(place: Path) -> dict[str, str]:
    return {"HF_HUB_OFFLINE": "1", "HF_HOME": str(place / "hf")}


def needs(job: str) -> None:
    if find_spec(FRAMEWORKS[job]) is None:
        plain = f"{FRAMEWORKS[job]} is not installed: pip install -e '.[test]'"
        pytest.skip(LACKING.get(FRAMEWORKS[job], plain))


def launched(place: Path, job: str, launcher: tuple[str, ...], words: tuple[str, ...]) -> Case:
    command = [sys.executable, *launcher, str(JOBS / f"{job}.py"), *words]
    outer = {**os.environ, "OMP_NUM_THREADS": "1", "DS_ACCELERATOR": "cpu", **offline(place)}
    run = [sys.executable, "-m", "torchtriage", "run", "--out", str(place / "run"), "--", *command]
    done = subprocess.run(run, cwd=place, env=outer, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return judged(place)


def forked(jobs: Server, place: Path, job: str, launcher: tuple[str, ...], words: tuple[str, ...]) -> Case:
    ranks = 2 if launcher == TORCHRUN else 0
    code = jobs.run(JOBS / f"{job}.py", place / "run", ranks, 280, words=words)
    assert code == 0, "\n".join(each.read_text() for each in (place / "run").glob("stderr*.txt"))
    return judged(place)


def judged(place: Path) -> Case:
    case = triage.judge(place / "run")
    assert [each for each in case.inconclusive if "switched off" in each.why or "rank" in each.detector] == []
    return case


@pytest.mark.parametrize(
    ("job", "launcher", "words", "steps", "ranks"), HEALTHY, ids=[f"{case[0]} on {case[4]}" for case in HEALTHY]
)
def test_a_healthy_job_is_seen_whole_and_nothing_is_found(
    job: str, launcher: tuple[str, ...], words: tuple[str, ...], steps: int, ranks: int, *, jobs: Server, tmp_path: Path,
    machine: Machine,
) -> None:  # fmt: skip
    needs(job)

    def attempt(name: str) -> Case:
        place = tmp_path / name
        place.mkdir()
        if (job, ranks) in LAUNCHED:
            return launched(place, job, launcher, words)
        return forked(jobs, place, job, launcher, words)

    case = attempt("first")
    if any(each.fault.slug == "straggler" for each in case.findings):
        with machine.alone():  # other tests may have slowed down the core of one rank
            case = attempt("again")
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
    job: str, launcher: tuple[str, ...], fault: str, slug: str, jobs: Server, tmp_path: Path
) -> None:
    needs(job)
    case = forked(jobs, tmp_path, job, launcher, (fault,))
    lines = (JOBS / f"{job}.py").read_text().splitlines()
    wanted = next(number for number, line in enumerate(lines, start=1) if line.endswith(f"# fault: {fault}"))
    found = {
        each.fault.slug: [(Path(item.place.path or "").name, item.place.line) for item in each.evidence]
        for each in case.findings
    }

    assert set(found) == {slug}
    assert (f"{job}.py", wanted) in found[slug]
