"""However processes that train together are started: one record for each, and none for who started them."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from torchtriage.examine.run.job.events import Error, Start
from torchtriage.examine.run.job.ranks import membership
from torchtriage.examine.run.reader import load

Run = Callable[..., Any]

TRAIN = """
import os, sys, torch
def main(rank=0, met=None):
    torch.manual_seed(rank)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for step in range(12):
        if met is not None and step == 8:
            met.wait()
        if rank == 1 and step == 8:
            {at_step_8}
        optimizer.zero_grad()
        model(torch.randn(4, 4)).square().mean().backward()
        optimizer.step()
"""

# As mpirun and srun do: the same command several times, numbered in the environment.
STAND_IN = (
    "import subprocess, sys, os\n"
    "names = sys.argv[1:4]\n"
    "jobs = [subprocess.Popen([sys.executable, '-c', os.environ['JOB']], env={**os.environ, **dict(zip(names, (str(n), '2', str(n))))})"
    " for n in range(2)]\n"
    "sys.exit(max(job.wait() for job in jobs))\n"
)

ENVIRONMENTS = [
    ("nobody numbers", {}, (0, 1, None)),
    ("torchrun", {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}, (3, 4, 1)),
    ("a rank alone", {"RANK": "3"}, (3, 1, None)),
    ("no number", {"RANK": "-1", "WORLD_SIZE": "two", "LOCAL_RANK": "²"}, (0, 1, None)),
    (
        "Open MPI",
        {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_RANK": "1"},
        (5, 8, 1),
    ),
    ("MPICH", {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1"}, (5, 8, 1)),
    ("a step of Slurm", {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}, (5, 8, 1)),
    ("a batch script of Slurm", {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}, (0, 1, 0)),
    (
        "torchrun on each node of a step of Slurm",
        {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
        (3, 4, 1),
    ),
    (
        "mpirun within a batch script of Slurm",
        {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "8", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
        (5, 8, None),
    ),
]


@pytest.mark.parametrize(("given", "told"), [case[1:] for case in ENVIRONMENTS], ids=[case[0] for case in ENVIRONMENTS])
def test_a_process_knows_its_number_from_whoever_started_it(
    given: dict[str, str], told: tuple[int, int, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (name for names in membership.LAUNCHERS for name in names):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    assert (membership.rank(), membership.world_size(), membership.local_rank()) == told


def test_the_group_knows_better_than_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    group = SimpleNamespace(get_rank=lambda: 1, get_world_size=lambda: 2)
    monkeypatch.setattr(membership, "_group", lambda: group)

    assert (membership.rank(), membership.world_size()) == (1, 2)


def test_a_launcher_that_numbers_in_the_environment_gets_one_record_per_rank(run: Run) -> None:
    names = membership.LAUNCHERS[1]
    job = TRAIN.format(at_step_8="pass") + "main()"
    trial = run(f"import sys\nsys.argv[1:] = {names!r}\n{STAND_IN}", JOB=job)
    record = load.read(trial.folder)

    assert (trial.code, trial.stderr) == (0, "")
    assert [(each.rank, each.count) for each in record.ranks] == [(0, 12), (1, 12)]
    starts = [each.all(Start)[0] for each in record.ranks]
    assert [(each.world_size, each.local_rank) for each in starts] == [(2, 0), (2, 1)]
    assert [item.detector for item in record.inconclusive if item.detector in {"run/ranks", "run/processes"}] == []


SPAWNED = (
    TRAIN.format(at_step_8="raise ValueError('of the job')")
    + """
if __name__ == "__main__":
    # Rank 0 is ended when rank 1 fails: by then it has trained.
    met = torch.multiprocessing.get_context("{method}").Barrier(2)
    torch.multiprocessing.start_processes(main, (met,), nprocs=2, start_method="{method}")
"""
)


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_that_torch_spawns_have_their_numbers_and_their_errors(run: Run, method: str) -> None:
    trial = run(SPAWNED.replace("{method}", method), "-W", "ignore::DeprecationWarning")
    record = load.read(trial.folder)

    assert trial.code == 1
    assert [each.rank for each in record.ranks] == [0, 1]
    (error,) = record.ranks[1].all(Error)
    assert (error.error, error.path, error.line) == ("ValueError", "train.py", 11)
    assert len(list(trial.folder.glob("rank*"))) == 2


LATE = """
import multiprocessing
def main():
    import torch
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for step in range(12):
        assert step < 8
        model(torch.randn(4, 4)).sum().backward()
        optimizer.step()
if __name__ == "__main__":
    child = multiprocessing.get_context("{method}").Process(target=main)
    child.start()
    child.join()
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_child_that_imports_torch_itself_keeps_its_error(run: Run, method: str) -> None:
    trial = run(LATE.replace("{method}", method))

    assert [each["error"] for each in trial.events("error")] == ["AssertionError"]


def test_torchrun_itself_leaves_no_record(run: Run) -> None:
    job = TRAIN.format(at_step_8="pass") + "main()"
    start = "import os, subprocess, sys\nopen('job.py', 'w').write(os.environ['JOB'])\n"
    start += "sys.exit(subprocess.call([sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', 'job.py']))"
    trial = run(start, JOB=job)

    assert trial.code == 0, trial.stderr
    assert sorted(path.name for path in trial.folder.glob("rank*")) == ["rank0.jsonl", "rank1.jsonl"]
    assert trial.notes.count("torch") == 3
    assert {each["host"] for name in ("rank0.jsonl", "rank1.jsonl") for each in trial.events("start", name)} == {
        os.uname().nodename
    }
