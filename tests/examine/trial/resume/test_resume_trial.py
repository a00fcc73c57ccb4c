from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import resumed as bench

from torchtriage.core.errors import TriageError
from torchtriage.examine.trial.leg.fork import forking
from torchtriage.examine.trial.resume.conduct import Wanted, conduct
from torchtriage.triage.trials import resumed

SAMPLE = (
    "complete_loop", "complete_mid", "loop_rounded", "loop_without_alpha", "loop_without_scheduler", "mid_without_gradients",
    "mid_without_position", "workers_without_order",
)  # fmt: skip
PLANTED = {each.name: each for each in bench.marked()}


@pytest.fixture(scope="module", autouse=True)
def _warm(lean_forks: None) -> None:
    """Forks have what each would import."""
    bench.warm()


@pytest.mark.parametrize("name", SAMPLE)
def test_what_was_left_out_is_named_first_and_complete_jobs_are_left_in_peace(name: str) -> None:
    seen = bench.tried(PLANTED[name])
    assert bench.is_right(seen), bench.told(seen)


def test_each_component_has_a_job_that_lacks_it() -> None:
    assert len({each.component for each in PLANTED.values()}) >= 18


JOB = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
start = 0
if "--resume" in sys.argv:
    state = torch.load("ckpt.pt")
    model.load_state_dict(state["model"])
    start = state["step"]
for step in range(start, 9):
    optimizer.zero_grad()
    {loss}.backward()
    optimizer.step()
    if step % 3 == 2:
        {save}
"""
LOSS, SAVE = "model(torch.ones(1, 2)).sum()", "torch.save(dict(model=model.state_dict(), step=step + 1), 'ckpt.pt')"
Try = Callable[..., str]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Try:
    """What the user is told of a job that cannot be tried, or "" of one that can."""

    def run(source: str, again: str = "--resume", after: int | None = 4, **fields: object) -> str:
        home = tmp_path / "home"
        home.mkdir()
        (home / "train.py").write_text(source)
        monkeypatch.chdir(home)
        wanted = Wanted(("train.py",), tmp_path / "out", after, again, timeout=60.0)
        try:
            case = resumed(conduct(wanted, forking(bench._script)))
        except TriageError as error:
            return f"{error} ({error.code})"
        return " | ".join(item.why for item in case.inconclusive)

    return run


@pytest.mark.parametrize(
    ("source", "again", "after", "said"),
    [
        (JOB.format(loss=LOSS, save="pass"), "--resume", 4, "no checkpoint was written before the stop after step 4"),
        (JOB.format(loss=LOSS, save="pass"), "--resume", None, "the job wrote no checkpoint, after step 9"),
        (JOB.format(loss=LOSS, save=SAVE), "--resume", 40, "ended after step 9, before the stop after step 40"),
        (JOB.format(loss=LOSS, save=SAVE), "", 4, "began anew: it read none of the files .* (ckpt.pt)"),
        (JOB.format(loss="torch.zeros(1, device='cuda')", save=SAVE), "--resume", 4, "a device that is not here"),
        ("raise ValueError('a fault of the job')", "", 4, "failed with code 1: ValueError: a fault of the job"),
        ("print('no training')", "", 4, "ended without a training step"),
        (JOB.format(loss=LOSS, save=SAVE) + "\nsys.exit(3)", "--resume", 40, "the job failed with code 3 after step 9"),
        (JOB.format(loss=LOSS, save=SAVE).replace("range(start, 9)", "range(start, 0 if start else 9)"), "--resume", 4,
         "the resumed leg ended without a training step"),
        (JOB.format(loss=LOSS, save="open('/etc/hostname', 'w')"), "", 4, "/etc/hostname: .* overwritten by train.py:16"),
    ],
    ids=["none", "none at all", "too short", "never resumes", "no device", "fails", "no training", "late", "over", "fixed path"],
)  # fmt: skip
def test_a_job_that_cannot_be_tried_is_told_with_the_way_out(
    source: str, again: str, after: int | None, said: str, told: Try
) -> None:
    found = told(source, again, after)
    assert all(part in found for part in said.split(" .* ")), found
    assert found.endswith("(3)")


def test_a_job_that_does_not_repeat_itself_is_told_first(told: Try) -> None:
    source = JOB.format(loss="model(torch.ones(1, 2) * (1 + int.from_bytes(os.urandom(2)) / 1e6)).sum()", save=SAVE)
    found = told(source)
    assert found.startswith("rank 0: the job does not repeat itself: two runs differ from pass 1 on")


def test_a_model_without_storage_beside_the_trained_one_is_no_obstacle(told: Try) -> None:
    source = JOB.format(loss=LOSS, save=SAVE).replace("start = 0", "start, shapes = 0, torch.ones(2, device='meta')")
    assert told(source) == ""
