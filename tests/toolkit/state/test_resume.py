"""A training that is stopped and resumed ends with the same bits as one that was not; what cannot be so is said."""

from __future__ import annotations

import contextlib
import itertools
import logging
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
from trained import COUNT, EPOCHS, Noisy, Training

from torchtriage.core.errors import TriageError
from torchtriage.toolkit import TrainingState

BOUNDARY, MIDWAY = (1, COUNT), (1, 4)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def through(folder: Path, **options: Any) -> Training:
    """A training at one stretch."""
    made = Training(folder / "straight", **options)
    made.run()
    return made


def resumed(folder: Path, save_at: tuple[int, int], **options: Any) -> tuple[list[Any], Training]:
    """The steps of a training that was saved and ended there, and of a second process's worth that went on; and that."""
    first = Training(folder / "stopped", **options)
    first.run(save_at=save_at)
    first.state.close()
    second = Training(folder / "stopped", **options)
    assert second.state.load().step == len(first.steps)
    torch.rand(3), random.random(), np.random.rand()
    second.run()
    return first.steps + second.steps, second


@pytest.mark.parametrize("save_at", [BOUNDARY, MIDWAY], ids=["boundary", "midway"])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("augment", [False, True], ids=["plain", "augmented"])
def test_a_resume_goes_on_bit_by_bit(tmp_path: Path, save_at: tuple[int, int], workers: int, augment: bool) -> None:
    straight = through(tmp_path, workers=workers, augment=augment)
    steps, _ = resumed(tmp_path, save_at, workers=workers, augment=augment)
    assert len(steps) == EPOCHS * COUNT
    assert steps == straight.steps


@pytest.mark.parametrize(
    ("options", "save_at"),
    [
        ({"generator": True}, BOUNDARY),
        ({"generator": True, "workers": 2}, MIDWAY),
        ({"accumulate": 4}, (1, 5)),
        ({"async_": True, "keep": 1}, MIDWAY),
        ({"ranks": (0, 1)}, MIDWAY),
        ({"replay": False, "augment": False}, MIDWAY),
        ({"replay": False, "augment": False, "workers": 2, "generator": True}, MIDWAY),
        ({}, (0, 1)),
        ({}, (EPOCHS - 1, COUNT)),
    ],
    ids=str,
)
def test_a_resume_goes_on_bit_by_bit_with(tmp_path: Path, options: dict[str, Any], save_at: tuple[int, int]) -> None:
    steps, _ = resumed(tmp_path, save_at, **options)
    assert steps == through(tmp_path, **options).steps


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")
@pytest.mark.parametrize(
    ("save_at", "options"),
    [
        (BOUNDARY, {"workers": 2}),
        (MIDWAY, {"workers": 2}),
        (MIDWAY, {"workers": 0}),
        (MIDWAY, {"workers": 2, "augment": False, "replay": False}),
    ],
    ids=str,
)
def test_a_stateful_loader_resumes_bit_by_bit(
    tmp_path: Path, save_at: tuple[int, int], options: dict[str, Any]
) -> None:
    kind = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    steps, _ = resumed(tmp_path, save_at, kind=kind, **options)
    assert steps == through(tmp_path, kind=kind, **options).steps


def test_the_test_sees_a_state_that_was_not_put_back(tmp_path: Path) -> None:
    straight = through(tmp_path)
    first = Training(tmp_path / "stopped")
    first.run(save_at=MIDWAY)
    first.state.close()
    for name, differs in (("random", True), ("optimizer", True), ("scaler", True), ("ema", True), ("scheduler", True)):
        second = Training(tmp_path / "stopped")
        second.state.load(without=[name])
        second.run()
        assert (first.steps + second.steps != straight.steps) is differs, name


def test_saves_do_not_disturb_a_training(tmp_path: Path) -> None:
    watched = Training(tmp_path / "saved", keep=2)
    state = watched.state
    for _ in state.epochs(EPOCHS):
        for x, y, index in state.batches(watched.loader):
            watched._step(watched.model, x, y, index)
            state.save()
        watched.scheduler.step()
    assert watched.steps == through(tmp_path).steps


def test_after_the_last_batch_of_an_epoch_a_resume_does_what_comes_after_the_loop(tmp_path: Path) -> None:
    first = Training(tmp_path)
    for epoch in first.state.epochs(EPOCHS):
        for number, (x, y, index) in enumerate(first.state.batches(first.loader), start=1):
            first._step(first.model, x, y, index)
            if (epoch, number) == (0, COUNT):
                first.state.save()
    first.state.close()
    second = Training(tmp_path)
    second.state.load(step=COUNT)
    assert second.state.epoch == 0
    left = next(len(list(second.state.batches(second.loader))) for _ in second.state.epochs(EPOCHS))
    assert left == 0


def test_gradients_that_wait_are_saved_and_those_that_were_used_are_not(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        model(torch.ones(2, 3)).sum().backward()
        state.save(1)
        waiting = model.weight.grad.clone()
        optimizer.step()
        state.save(2)
        model(torch.ones(2, 3)).sum().backward()
        state.save(3)
        state.load(1)
        assert torch.equal(model.weight.grad, waiting)
        state.load(2)
        assert model.weight.grad is None
        state.load(3)
        assert torch.equal(model.weight.grad, 2 * waiting)


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


def test_a_stream_is_resumed_by_taking_its_batches_again(tmp_path: Path) -> None:
    def loader() -> Any:
        return DataLoader(Stream(), batch_size=2)

    seen: list[list[int]] = []
    first = loader()
    with TrainingState(tmp_path, model=torch.nn.Linear(1, 1), loader=first) as state:
        for _ in state.epochs(1):
            for batch in state.batches(first):
                seen.append(batch.tolist())
                if len(seen) == 2:
                    state.save(2)
                    break
    second = loader()
    with TrainingState(tmp_path, model=torch.nn.Linear(1, 1), loader=second) as state:
        state.load()
        seen += [batch.tolist() for _ in state.epochs(1) for batch in state.batches(second)]
        state.load()
        with pytest.raises(TriageError, match="no indices"):
            next(iter(state.batches(second, replay=False)))
    assert seen == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]]


class Drawing(torch.utils.data.Sampler[int]):
    """A sampler with a state of its own."""

    def __init__(self) -> None:
        self.passes = 0

    def __iter__(self) -> Iterator[int]:
        self.passes += 1
        return iter([(number * self.passes) % 7 for number in range(6)])

    def __len__(self) -> int:
        return 6

    def state_dict(self) -> dict[str, int]:
        return {"passes": self.passes}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.passes = state["passes"]


def test_a_sampler_with_a_state_is_not_advanced_twice(tmp_path: Path) -> None:
    def epochs(state: TrainingState, loader: Any, stop: int | None = None) -> list[int]:
        seen: list[int] = []
        for _ in state.epochs(3):
            for batch in state.batches(loader):
                seen += batch.tolist()
                if stop is not None and len(seen) == stop:
                    state.save(1)
                    return seen
        return seen

    def made(folder: str) -> tuple[TrainingState, Any]:
        sampler = Drawing()
        loader = DataLoader(torch.arange(7), batch_size=2, sampler=sampler)
        return TrainingState(tmp_path / folder, loader=loader, sampler=sampler), loader

    straight = epochs(*made("straight"))
    state, loader = made("stopped")
    before = epochs(state, loader, stop=10)
    state.close()
    state, loader = made("stopped")
    state.load()
    assert before + epochs(state, loader) == straight


def test_generators_of_the_training_itself_go_on(tmp_path: Path) -> None:
    def made() -> dict[str, Any]:
        return {"a": torch.Generator().manual_seed(1), "b": np.random.default_rng(1), "c": random.Random(1)}

    def drawn(held: dict[str, Any]) -> tuple[float, ...]:
        return torch.rand(1, generator=held["a"]).item(), held["b"].random(), held["c"].random()

    held = made()
    drawn(held)
    with TrainingState(tmp_path, noise=held) as state:
        state.save(1)
    expected = drawn(held)
    held = made()
    with TrainingState(tmp_path, noise=held) as state:
        state.load()
    assert drawn(held) == expected


def test_counters_best_and_own_values_come_back(tmp_path: Path) -> None:
    with TrainingState(tmp_path) as state:
        state.best, state.values = -float("inf"), {"patience": 3, 7: (1, None)}
        state.save(12)
    with TrainingState(tmp_path) as state:
        assert state.load().step == state.step == 12
        assert (state.best, state.values) == (-float("inf"), {"patience": 3, 7: (1, None)})


def test_modes_and_frozen_parameters_come_back(tmp_path: Path) -> None:
    def made() -> Any:
        return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))

    model = made()
    model[1].eval()
    model[0].bias.requires_grad_(False)
    with TrainingState(tmp_path, model=model) as state:
        state.save(1)
    model = made()
    with TrainingState(tmp_path, model=model) as state:
        state.load()
    assert [each.training for each in model] == [True, False]
    assert [name for name, each in model.named_parameters() if not each.requires_grad] == ["0.bias"]


def test_other_settings_are_told_and_equal_ones_are_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with TrainingState(tmp_path, config={"lr": 0.1, "layers": [1, 2], "nan": float("nan")}) as state:
        state.save(1)
    with TrainingState(tmp_path, config={"lr": 0.1, "layers": [1, 2], "nan": float("nan")}) as state:
        assert state.load().notes == []
    torch.set_num_threads(2)
    with TrainingState(tmp_path, config={"lr": 0.01, "layers": [1, 2], "seed": 1}) as state:
        notes = state.load().notes
    assert notes == [
        "threads was 1, and is 2",
        "config.lr was 0.1, and is 0.01",
        "config.nan was nan, and is None",
        "config.seed was None, and is 1",
    ]
    assert "config.lr was 0.1, and is 0.01" in caplog.text


def test_what_a_resume_will_lack_is_told_at_the_first_save(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD([*model.parameters(), torch.nn.Parameter(torch.ones(1))], lr=0.1)
    torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
    with caplog.at_level(logging.WARNING), TrainingState(tmp_path, model=model, optimizer=optimizer) as state:
        state.save(1)
        said = len(caplog.records)
        state.save(2)
    assert len(caplog.records) == said == 2
    assert "scheduler: optimizer has one, which is not registered" in caplog.text
    assert "model: 1 parameters of optimizer are in no model that is registered" in caplog.text


def test_a_scheduler_of_functions_says_what_it_leaves_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.9**epoch)
    with TrainingState(tmp_path, model=model, optimizer=optimizer, scheduler=scheduler) as state:
        optimizer.step()
        scheduler.step()
        state.save(1)
        scheduler.last_epoch = 7
        state.load()
    assert scheduler.last_epoch == 1
    assert "left out of scheduler: lr_lambdas (functions)" in caplog.text


SCHEDULERS: list[Any] = [
    lambda made: torch.optim.lr_scheduler.MultiStepLR(made, [2, 4]),
    lambda made: torch.optim.lr_scheduler.OneCycleLR(made, 0.1, 20),
    lambda made: torch.optim.lr_scheduler.CyclicLR(made, 0.01, 0.1, step_size_up=3, scale_fn=lambda x: 0.9**x),
    lambda made: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(made, 4),
    lambda made: torch.optim.lr_scheduler.ReduceLROnPlateau(made, patience=0),
    lambda made: torch.optim.swa_utils.SWALR(made, 0.05, anneal_epochs=5),
    lambda made: torch.optim.lr_scheduler.MultiplicativeLR(made, lambda _: 0.9),
    lambda made: torch.optim.lr_scheduler.SequentialLR(
        made,
        [torch.optim.lr_scheduler.ConstantLR(made, 0.1), torch.optim.lr_scheduler.ExponentialLR(made, 0.9)],
        milestones=[3],
    ),
]


@pytest.mark.parametrize("scheduled", SCHEDULERS)
def test_every_scheduler_goes_on_with_the_same_rates(tmp_path: Path, scheduled: Any) -> None:
    def made() -> tuple[Any, Any, TrainingState]:
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = scheduled(optimizer)
        return optimizer, scheduler, TrainingState(tmp_path, model=model, optimizer=optimizer, scheduler=scheduler)

    def rates(optimizer: Any, scheduler: Any, count: int) -> list[float]:
        found = []
        for _ in range(count):
            optimizer.step()
            scheduler.step(*([1.0] if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau) else []))
            found.append(optimizer.param_groups[0]["lr"])
        return found

    optimizer, scheduler, state = made()
    rates(optimizer, scheduler, 5)
    state.save(5)
    state.close()
    expected = rates(optimizer, scheduler, 6)
    optimizer, scheduler, state = made()
    state.load()
    state.close()
    assert rates(optimizer, scheduler, 6) == expected


def test_a_new_process_ends_after_an_asynchronous_save_has_come_to_its_end(tmp_path: Path) -> None:
    script = (
        "import torch\nfrom torchtriage.toolkit import TrainingState\n"
        "model = torch.nn.Linear(1000, 1000)\n"
        "TrainingState('steps', async_=True, model=model).save(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    with TrainingState(tmp_path / "steps", model=torch.nn.Linear(1000, 1000)) as state:
        assert state.load().step == 3


def test_noise_is_drawn_where_it_is_loaded() -> None:
    assert not torch.equal(Noisy(True)[0][0], Noisy(True)[0][0])
    assert torch.equal(Noisy(False)[0][0], Noisy(False)[0][0])


def test_the_example_ends_with_the_same_bits(tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "examples/killed_and_resumed.py"
    done = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ended with -9\n  goes on from step 20, in epoch 1\n  ended with 0\n" in done.stdout
    assert done.stdout.endswith("equal: every bit of the weights\n")


Built = tuple[TrainingState, Any]


def counted(folder: Path, samples: int = 20, size: int = 2, others: Any = None) -> Built:
    loader = DataLoader(TensorDataset(torch.arange(float(samples))), batch_size=size, shuffle=True)
    return TrainingState(folder, model=torch.nn.Linear(1, 1), loader=loader, others=others), loader


def left_of(folder: Path, epochs: int = 2, **options: Any) -> list[tuple[int, int]]:
    """The batches of each epoch that a resume still gives."""
    state, loader = counted(folder, **options)
    with state:
        assert state.load()
        return [(epoch, sum(1 for _ in state.batches(loader))) for epoch in state.epochs(epochs)]


def broken_off(state: TrainingState, loader: Any, after: int) -> None:
    for _ in state.epochs(2):
        for _ in state.batches(loader):
            state.step += 1
            if state.step == after:
                raise KeyboardInterrupt


def test_a_save_after_an_error_within_an_epoch_keeps_the_place_in_it(tmp_path: Path) -> None:
    state, loader = counted(tmp_path)
    with state:
        try:
            broken_off(state, loader, 4)
        except KeyboardInterrupt:
            state.save()
    assert left_of(tmp_path) == [(0, 6), (1, 10)]


def test_a_loop_left_by_break_ends_its_pass(tmp_path: Path) -> None:
    state, loader = counted(tmp_path)
    with state:
        for _ in state.epochs(1):
            for _ in itertools.islice(state.batches(loader), 4):
                state.step += 1
            state.save()
    assert left_of(tmp_path) == [(1, 10)]


def test_a_save_before_the_first_batch_after_a_load_keeps_the_place(tmp_path: Path) -> None:
    state, loader = counted(tmp_path)
    with state, contextlib.suppress(KeyboardInterrupt):
        for _ in state.epochs(1):
            for number, _ in enumerate(state.batches(loader)):
                if number == 3:
                    state.save(4)
    state, loader = counted(tmp_path)
    with state:
        state.load()
        state.save(5)
    assert left_of(tmp_path) == [(0, 6), (1, 10)]


def test_a_save_after_the_last_epoch_skips_none_when_there_are_more(tmp_path: Path) -> None:
    state, loader = counted(tmp_path)
    with state:
        for _ in state.epochs(2):
            state.step += sum(1 for _ in state.batches(loader))
        state.save()
    assert left_of(tmp_path, 4) == [(2, 10), (3, 10)]


def test_a_pass_within_a_pass_over_the_same_loader_leaves_the_outer_one_its_place(tmp_path: Path) -> None:
    state, loader = counted(tmp_path)
    with state:
        for _ in state.epochs(1):
            for number, _ in enumerate(state.batches(loader), start=1):
                if number == 3:
                    assert sum(1 for _ in state.batches(loader)) == 10
                if number == 4:
                    state.save(4)
    assert left_of(tmp_path) == [(0, 6), (1, 10)]


def test_a_place_among_other_batches_or_samples_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    state, loader = counted(tmp_path)
    with state:
        for _ in state.epochs(1):
            for number, _ in enumerate(state.batches(loader), start=1):
                if number == 4:
                    state.save(4)
        state.save(10)
    for options, said in ({"size": 4}, "2 as its batch size, and has 4"), ({"samples": 6}, "number of samples"):
        other, _ = counted(tmp_path, **options)
        with other, pytest.raises(TriageError, match=said):
            other.load(step=4)
    other, _ = counted(tmp_path, size=4)
    with other:
        assert "loader: batch size was 2, and is 4" in other.load().notes


def test_a_loader_that_begins_before_the_one_to_go_on_with_changes_no_draw(tmp_path: Path) -> None:
    def run(stop: int | None = None, *, resumed: bool = False) -> list[tuple[float, float]]:
        torch.manual_seed(0)
        check = DataLoader(TensorDataset(torch.ones(4)), batch_size=2, shuffle=True)
        state, loader = counted(tmp_path, others=check)
        with state:
            assert bool(resumed and state.load()) is resumed
            seen = []
            for _ in state.epochs(2):
                assert len(list(state.batches(check))) == 2
                for (batch,) in state.batches(loader):
                    seen.append((float(batch[0]), float(torch.rand(()))))
                    state.step += 1
                    if state.step == stop:
                        state.save()
        return seen

    assert run(4)[4:] == run(resumed=True)
