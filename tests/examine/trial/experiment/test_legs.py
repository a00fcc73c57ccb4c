"""Small trainings that run again for each trial, in forks of this process."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch
from experimented import STEPS, faults, network, task, train, tried
from torch import nn
from torch.utils.data import DataLoader, Dataset

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm
from torchtriage.examine.trial.experiment.questions import FROM_MEMORY, SLOWER, TRIES

SPEED = frozenset(("speed",))


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each leg mirrors the working folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")


class Slow(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples for which one waits, as for a disk."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.data = seconds, task()

    def __len__(self) -> int:
        return len(self.data[0])

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(self.seconds)
        return self.data[0][index], self.data[1][index]


def wait_for_data(seconds: float = 0.002) -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for inputs, labels in DataLoader(Slow(seconds), batch_size=8):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()


def look_for_anomalies() -> None:
    with torch.autograd.set_detect_anomaly(True):
        train(epochs=2)


def arm(name: str, value: float = 1.0) -> Arm:
    return Arm(((name, value),))


def test_what_loading_takes_of_a_step_is_shown_by_batches_from_memory(tmp_path: Path) -> None:
    found = tried(tmp_path, wait_for_data, SPEED, (FROM_MEMORY,))
    saved = found.paces.courses.saved(FROM_MEMORY, CONTROL)
    assert saved is not None
    assert saved.tries == TRIES
    assert saved.spread[0] > 0.5
    assert saved.ends[1] > 8 * 0.002
    assert "input-bound" in faults(found)


def test_no_worker_is_started_for_batches_from_memory(tmp_path: Path) -> None:
    found = tried(tmp_path, lambda: train(data=task(rows=64), epochs=40, workers=1), SPEED, (FROM_MEMORY,))
    saved = found.paces.courses.saved(FROM_MEMORY, CONTROL)
    assert saved is not None
    assert saved.spread[0] > 0.5


def test_workers_load_while_a_step_computes(tmp_path: Path) -> None:
    found = tried(tmp_path, wait_for_data, frozenset(), (arm("workers", 2.0),))
    saved = found.paces.courses.saved(arm("workers", 2.0), CONTROL)
    assert saved is not None
    assert saved.spread[0] > 0.2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (arm("workers", 0.0), "it builds no DataLoader of samples with another number of workers than 0"),
        (arm("channels-last"), "its model convolves no images"),
        (arm("anomaly-detection"), "it does not look for anomalies"),
        (arm("deterministic-kernels"), "it does not ask for deterministic kernels"),
        (arm("threads", 1.0), "it computes on 1 thread as it is"),
    ],
    ids=str,
)
def test_a_change_without_a_place_in_the_job_is_refused(change: Arm, why: str, tmp_path: Path) -> None:
    found = tried(tmp_path, train, SPEED, (change,))
    assert found.paces.refused[change] == why


@pytest.mark.parametrize("change", [arm("fused-optimizer"), arm("bfloat16"), arm("batch-from-memory")], ids=str)
def test_a_change_leaves_the_training_one(change: Arm, tmp_path: Path) -> None:
    found = tried(tmp_path, train, SPEED, (change,))
    courses = found.paces.courses
    assert found.paces.refused == {}
    assert courses.of(change).keys() == courses.of(CONTROL).keys() == set(range(TRIES + 1))
    own, other = courses.of(change)[1], courses.of(CONTROL)[1]
    assert len(own.losses) == len(own.seconds) == STEPS
    assert own.losses[0] == pytest.approx(other.losses[0], rel=0.02)
    assert own.end < own.losses[0]


def test_anomalies_are_looked_for_no_more(tmp_path: Path) -> None:
    change = arm("anomaly-detection")
    found = tried(tmp_path, look_for_anomalies, SPEED, (change,))
    assert change not in found.paces.refused
    assert found.paces.courses.of(change)[0].losses == found.paces.courses.of(CONTROL)[0].losses


def test_rates_of_a_job_that_cannot_be_branched_are_tried_in_legs(tmp_path: Path) -> None:
    def of_ranks() -> None:
        store = Path("store").absolute().as_uri()
        torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
        train(rate=3.0)

    found = tried(tmp_path, of_ranks, frozenset(("stability",)))
    assert found.in_legs
    assert found.seconds > 0
    control, slower = (found.courses.of(each)[0] for each in (CONTROL, SLOWER))
    assert control.losses[0] == slower.losses[0]
    assert [len(course.before) for course in found.courses.of(CONTROL).values()] == [
        number * STEPS // 4 for number in range(TRIES + 1)
    ]
    assert "learning-rate-too-high" in faults(found)
    assert not list((tmp_path / "run").glob("*"))


def test_a_job_without_a_training_is_not_timed(tmp_path: Path) -> None:
    found = tried(tmp_path, lambda: None, SPEED)
    assert [each.why for each in found.unseen] == ["no step of a training was seen"]
    assert faults(found) == set()
