from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchtriage.examine.run.reader import load

Run = Callable[..., Any]

TRAIN = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.1), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
data = torch.utils.data.DataLoader(torch.randn(48, 4), batch_size=4, shuffle=True)
for step, batch in enumerate(data):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
    if step == 8:
        {at_step_8}
print("weights", torch.cat([p.flatten() for p in model.parameters()]).tolist())
print("random", torch.rand(1).item())
print("path", sys.path, "attach" in str(sys.modules.get("sitecustomize")))
"""


def why(trial: Any) -> dict[str, str]:
    return {item.detector: item.why for item in load.read(trial.folder).inconclusive}


@pytest.fixture(scope="module")
def healthy(run: Run) -> Any:
    return run(TRAIN.format(at_step_8="pass"))


@pytest.fixture(scope="module")
def plain(run: Run) -> Any:
    return run(TRAIN.format(at_step_8="pass"), watched=False)


def test_the_jobs_output_and_its_numbers_are_the_same_to_the_last_bit(healthy: Any, plain: Any) -> None:
    folder = str(healthy.folder.parent)
    assert (healthy.code, healthy.stderr) == (plain.code, plain.stderr) == (0, "")
    assert healthy.stdout.replace(folder, "") == plain.stdout.replace(str(plain.folder.parent), "")


def test_a_healthy_job_leaves_a_whole_record(healthy: Any) -> None:
    assert [event["step"] for event in healthy.events("step")] == list(range(12))
    assert healthy.events("end")[0]["why"] == "exit"
    assert healthy.notes == ["attached", "torch"]
    assert why(healthy) == {}


def test_the_record_holds_no_batch_and_no_weight(healthy: Any) -> None:
    weights = json.loads(healthy.stdout.splitlines()[0].removeprefix("weights "))
    text = (healthy.folder / "rank0.jsonl").read_text()

    assert not any(str(weight)[:9] in text for weight in weights)


@pytest.mark.parametrize(
    ("at_step_8", "code", "said"),
    [
        ("raise RuntimeError('a fault of the job')", 1, "with RuntimeError at train.py:12"),
        ("os._exit(7)", 7, "wrote nothing after step 8"),
        ("os.kill(os.getpid(), 9)", -9, "wrote nothing after step 8"),
    ],
    ids=["crash", "os._exit", "SIGKILL"],
)
def test_a_job_that_dies_leaves_all_its_steps(fork: Run, at_step_8: str, code: int, said: str) -> None:
    trial = fork(TRAIN.format(at_step_8=at_step_8))

    assert trial.code == code
    assert [event["step"] for event in trial.events("step")] == list(range(9))
    assert trial.events("end") == []
    assert said in why(trial)["run/end"]
    if code == 1:
        assert "Traceback" in trial.stderr
        assert "a fault of the job" in trial.stderr


def test_a_job_that_cannot_write_goes_on(run: Run) -> None:
    limited = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
    trial = run(limited + TRAIN.format(at_step_8="pass"))

    assert trial.code == 0
    assert "weights" in trial.stdout
    assert (trial.folder / "rank0.jsonl").stat().st_size <= 2000
    assert "disk was full" in why(trial)["run/end"]


def test_a_job_without_torch_is_told_from_one_that_was_never_attached(run: Run) -> None:
    without, isolated = run("print(1)"), run("print(1)", "-I")

    assert (without.notes, isolated.notes) == (["attached"], [])
    assert (without.stdout, isolated.stdout) == ("1\n", "1\n")
    assert why(without) == {"run/torch": "the job never imported torch"}
    assert "-I, -E or -S" in why(isolated)["run/attach"]


def test_a_job_that_never_trains_leaves_no_rank_file_and_says_so(run: Run) -> None:
    trial = run("import torch; torch.nn.Linear(2, 2)")

    assert trial.notes == ["attached", "torch"]
    assert "no batch, forward pass, backward pass or optimizer step was seen" in why(trial)["run/steps"]
    assert [path.name for path in trial.folder.glob("rank*")] == []


def test_a_sitecustomize_of_the_jobs_own_still_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.OF_THE_JOB = 1\n")
    trial = run("import sitecustomize; print(OF_THE_JOB, sitecustomize.__file__)", PYTHONPATH=str(tmp_path))

    assert trial.stdout == f"1 {tmp_path / 'sitecustomize.py'}\n"
    assert trial.stderr == ""


def test_nothing_of_ours_can_be_imported_by_accident(run: Run) -> None:
    source = """
import importlib, sys
for name in ("sitecustomize", "job", "attach", "clock", "places"):
    try:
        module = importlib.import_module(name)
    except ImportError:
        continue
    print(name, module.__file__)
print([entry for entry in sys.path if "torchtriage" in entry and "attach" in entry])
"""
    watched, plain = run(source), run(source, watched=False)

    assert watched.stdout == plain.stdout


CHILDREN = """
import os, torch, torch.multiprocessing as mp
class Set(torch.utils.data.Dataset):
    def __init__(self): self.model = torch.nn.Linear(2, 2)
    def __len__(self): return 16
    def __getitem__(self, i): return self.model(torch.ones(2)).detach()
def train(rank):
    os.environ["RANK"] = str(rank)
    model = torch.nn.Linear(2, 1); optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(5):
        model(torch.ones(1, 2)).sum().backward(); optimizer.step()
if __name__ == "__main__":
    mp.spawn(train, (), nprocs=1)
    list(torch.utils.data.DataLoader(Set(), num_workers=1))
    child = os.fork()
    if not child:
        train(3)
        os._exit(0)
    os.waitpid(child, 0)
    train(4)
"""


def test_every_process_that_trains_has_a_file_of_its_own_and_no_other_has(run: Run) -> None:
    trial = run(CHILDREN, "-W", "ignore::DeprecationWarning")

    assert (trial.code, trial.stderr) == (0, "")
    files = {path.name: len(trial.events("step", path.name)) for path in trial.folder.glob("rank*")}
    assert sorted(files.values()) == [5, 5, 5]
    assert {"rank0.jsonl", "rank3.jsonl"} <= set(files)


FORKED = """
import multiprocessing, torch
def train():
    model = torch.nn.Linear(2, 1); optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for step in range(5):
        {at_each_step}
        model(torch.ones(1, 2)).sum().backward(); optimizer.step()
child = multiprocessing.get_context("fork").Process(target=train)
child.start(); child.join(); print(child.exitcode)
"""


@pytest.mark.parametrize(
    ("at_each_step", "code", "kinds"),
    [("pass", "0\n", ["end"]), ("assert step < 3", "1\n", ["error"]), ("step < 3 or exit(1)", "1\n", ["end"])],
)
def test_a_process_that_multiprocessing_forked_tells_how_it_ended(
    fork: Run, at_each_step: str, code: str, kinds: list[str]
) -> None:
    trial = fork(FORKED.format(at_each_step=at_each_step))

    assert trial.stdout == code
    assert [each["kind"] for each in trial.events() if each["kind"] in {"end", "error"}] == kinds


def test_a_failed_import_of_torch_is_the_jobs_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise ImportError('broken torch')\n")
    trial = run("import torch", PYTHONPATH=str(tmp_path))

    assert trial.code == 1
    assert trial.stderr.rstrip().endswith("ImportError: broken torch")
    assert "_torchtriage" not in trial.stderr


def test_a_torch_that_is_too_strange_for_the_probes_still_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '0'\n")
    trial = run("import torch; print(torch.__version__)", PYTHONPATH=str(tmp_path))

    assert (trial.code, trial.stdout, trial.stderr) == (0, "0\n", "")
    assert "machinery/batches: ModuleNotFoundError" in " ".join(
        item.why for item in load.read(trial.folder).inconclusive
    )


def test_the_probes_leave_after_so_many_steps_and_the_job_goes_on(fork: Run) -> None:
    trial = fork(TRAIN.format(at_step_8="pass"), steps=5)

    assert trial.code == 0
    assert len(trial.events("step")) == 5
    assert trial.events("end")[0]["why"] == "steps"
    assert why(trial) == {}
