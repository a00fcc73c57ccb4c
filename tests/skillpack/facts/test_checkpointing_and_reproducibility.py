"""The facts of the checkpointing skill, taken again from the installed torch."""

from __future__ import annotations

import argparse
import inspect
import io
import os
import pickle
import random
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn


def written(value: object) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def stepped(kind: Any, **options: float) -> tuple[nn.Module, Any]:
    model = nn.Linear(64, 64)
    optimizer = kind(model.parameters(), lr=0.1, **options)
    model(torch.ones(1, 64)).sum().backward()
    optimizer.step()
    return model, optimizer


def share(kind: Any, **options: float) -> float:
    """How many numbers an optimizer keeps for each parameter, its counters of steps left out."""
    model, optimizer = stepped(kind, **options)
    kept = (each for state in optimizer.state.values() for each in state.values() if isinstance(each, torch.Tensor))
    return sum(each.numel() for each in kept if each.dim()) / sum(each.numel() for each in model.parameters())


def test_step_lr_restarts() -> None:
    def schedule() -> Any:
        optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
        return torch.optim.lr_scheduler.StepLR(optimizer, 30)

    scheduler = schedule()
    for _ in range(30):
        scheduler.optimizer.step()
        scheduler.step()
    assert scheduler.get_last_lr() == [pytest.approx(0.01)]
    assert schedule().get_last_lr() == [0.1]


def test_scaler_start() -> None:
    assert torch.amp.GradScaler("cpu").state_dict()["scale"] == 65536
    assert torch.amp.GradScaler("cpu", enabled=False).state_dict() == {}


def test_epoch_plus_one() -> None:
    def updates(ahead: int) -> int:
        """Of 4 epochs of one update, stopped after 2 and resumed AHEAD of the number that was saved."""
        _, optimizer = stepped(torch.optim.Adam)
        optimizer.step()
        saved = 1
        for _ in range(saved + ahead, 4):
            optimizer.step()
        return int(optimizer.state_dict()["state"][0]["step"])

    assert (updates(0), updates(1)) == (5, 4)


def test_adam_state_twice() -> None:
    assert (share(torch.optim.Adam), share(torch.optim.AdamW)) == (2, 2)
    gigabytes = 3e9 * torch.float32.itemsize / 1e9
    assert (gigabytes, 2 * gigabytes, 3 * gigabytes) == (12, 24, 36)
    assert (2 * 8, 3 * 8, 2 * 3 * 8) == (16, 24, 48)


def test_sgd_state() -> None:
    assert (share(torch.optim.SGD, momentum=0.9), share(torch.optim.SGD)) == (1, 0)


def test_manual_seed_all() -> None:
    assert "on all devices" in (torch.manual_seed.__doc__ or "")
    source = inspect.getsource(inspect.getmodule(torch.manual_seed))  # type: ignore[arg-type]
    assert "torch.cuda.manual_seed_all(seed)" in source


def test_no_grad_in_state() -> None:
    model, optimizer = stepped(torch.optim.Adam)
    assert model.weight.grad is not None
    assert {name for state in optimizer.state_dict()["state"].values() for name in state} == {
        "step",
        "exp_avg",
        "exp_avg_sq",
    }


def test_rng_on_the_cpu() -> None:
    state = torch.get_rng_state()
    assert (state.dtype, state.device.type) == (torch.uint8, "cpu")
    for other in (state.to("meta"), state.float()):
        with pytest.raises((TypeError, RuntimeError)):
            torch.set_rng_state(other)
    torch.set_rng_state(state)


def test_weights_only_default() -> None:
    assert "In PyTorch 2.6, we changed the default value of the `weights_only`" in torch.serialization.UNSAFE_MESSAGE
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(written(argparse.Namespace()))


@pytest.mark.parametrize(
    "value",
    [
        np.random.get_state(),
        np.float64(1),
        torch.__version__,
        Path("a"),
        argparse.Namespace(),
        defaultdict(list),
        datetime.min,
    ],
    ids=lambda value: type(value).__name__,
)
def test_weights_only_refuses(value: object) -> None:
    with pytest.raises(pickle.UnpicklingError):
        torch.load(written(value), weights_only=True)
    plain = [random.getstate(), 1, 1.5, "a", b"a", {1}, torch.float32, torch.Size([1]), torch.device("cpu")]
    assert torch.load(written(plain), weights_only=True) == plain


class Draws(torch.utils.data.Dataset[float]):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> float:
        return float(np.random.rand())


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_seeded() -> None:
    def drawn() -> list[float]:
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(Draws(), batch_size=None, num_workers=2)
        return [float(each) for each in loader]

    assert len(set(drawn())) == 4
    assert drawn() == drawn()


def test_allclose_passes() -> None:
    one, other = torch.tensor(1.0), torch.tensor(1.0 + 1e-6)
    assert torch.allclose(one, other)
    assert not torch.equal(one, other)


def test_hash_seed_late(monkeypatch: pytest.MonkeyPatch) -> None:
    before = hash("torch" * 2)
    monkeypatch.setenv("PYTHONHASHSEED", "12345" if os.environ.get("PYTHONHASHSEED") != "12345" else "1")
    assert hash("torch" * 2) == before == hash("torchtorch")


def test_zip_not_compressed() -> None:
    assert 4_000_000 < len(written(torch.zeros(1_000_000)).getbuffer()) < 4_050_000


def test_slice_saves_all() -> None:
    whole = torch.zeros(1000)
    sizes = [len(written(each).getbuffer()) / 1000 for each in (whole[:2], whole[:2].clone())]
    assert sizes == [pytest.approx(5.5, abs=0.3), pytest.approx(1.6, abs=0.3)]


def test_sums_have_an_order() -> None:
    a, b, c = (torch.tensor(each, dtype=torch.float64) for each in (0.1, 0.2, 0.3))
    assert not torch.equal((a + b) + c, a + (b + c))


def test_batch_norm_version() -> None:
    state = nn.BatchNorm1d(2).state_dict()
    assert nn.BatchNorm1d._version == 2
    del state["num_batches_tracked"]
    assert not nn.BatchNorm1d(2).load_state_dict(dict(state)).missing_keys
    with pytest.raises(RuntimeError, match="Missing key"):
        nn.BatchNorm1d(2).load_state_dict(state)
