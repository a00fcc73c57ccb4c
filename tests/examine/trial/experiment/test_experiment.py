"""Small trainings with one thing wrong, and healthy ones, experimented on in forks of this process."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from experimented import CLASSES, STEPS, faults, network, said, task, train, tried
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.trial.experiment.arms import CONTROL, Arm

SLOWER = Arm((("learning-rate", 0.1),))


class Language(nn.Module):
    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(11, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.head = nn.Linear(16, 11)
        self.mask = nn.Transformer.generate_square_subsequent_mask(12) if causal else None

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        known = self.table(ids)
        logits: torch.Tensor = self.head(known + self.attention(known, known, known, attn_mask=self.mask)[0])
        return logits


def predict_the_next(*, causal: bool = True) -> None:
    model = Language(causal=causal)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    text = torch.randint(11, (4000,), generator=torch.Generator().manual_seed(0))
    draw = torch.Generator().manual_seed(1)
    for _ in range(STEPS * 2):
        starts = torch.randint(4000 - 13, (8,), generator=draw)
        rows = torch.stack([text[start : start + 13] for start in starts])
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).backward()
        optimizer.step()


class Zero(nn.Module):
    """A last layer of zeros answers alike to all, before the first update."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(8, 32), nn.Linear(32, CLASSES)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.last(self.first(inputs).relu())
        return logits


def learn(loss: Callable[[nn.Module, torch.Tensor], torch.Tensor], model: nn.Module, rate: float = 0.01) -> None:
    """What has no labels: a loss of batches of inputs alone."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for (inputs,) in DataLoader(TensorDataset(task(rows=4096)[0]), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss(model, inputs).backward()
        optimizer.step()


def reconstruct() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 3), nn.Linear(3, 8))
    learn(lambda model, inputs: nn.functional.mse_loss(model(inputs), inputs), model, 0.03)


def denoise() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 8))

    def loss(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        noise, level = torch.randn_like(inputs), torch.rand(len(inputs), 1)
        return nn.functional.mse_loss(model(torch.cat([inputs * (1 - level) + noise * level, level], 1)), noise)

    learn(loss, model, 0.03)


def hold_views_together() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))

    def loss(model: nn.Module, inputs: torch.Tensor) -> torch.Tensor:
        first, second = (nn.functional.normalize(model(inputs + 0.1 * torch.randn_like(inputs))) for _ in range(2))
        return nn.functional.cross_entropy(first @ second.t() / 0.1, torch.arange(len(inputs)))

    learn(loss, model)


def fill_gaps() -> None:
    model = Language(causal=False)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    draw = torch.Generator().manual_seed(1)
    for _ in range(STEPS * 2):
        rows = (torch.randint(10, (8, 1), generator=draw) + torch.arange(12)) % 10
        hidden = torch.rand(rows.shape, generator=draw) < 0.3
        logits = model(rows.masked_fill(hidden, 10))
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits.transpose(1, 2), rows.masked_fill(~hidden, -100)).backward()
        optimizer.step()


def tell_many_apart() -> None:
    """Two hundred classes, of which little is known after a few hundred steps."""
    draw = torch.Generator().manual_seed(3)
    inputs = torch.randn(8192, 16, generator=draw)
    centers = torch.randn(200, 16, generator=draw)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 200))
    train(model, 0.003, (inputs, (inputs @ centers.t()).argmax(1)), epochs=1)


def tell_noise_apart() -> None:
    """A line through data of which it can tell little: it learns no batch by heart, and need not."""
    draw = torch.Generator().manual_seed(4)
    inputs = torch.randn(8192, 8, generator=draw)
    labels = (torch.rand(8192, generator=draw) < (0.3 * inputs[:, 0]).sigmoid()).long()
    torch.manual_seed(0)
    train(nn.Linear(8, 2), 0.01, (inputs, labels), epochs=1)


def play() -> None:
    first, second = network(), network()
    optimizers = [torch.optim.Adam(each.parameters(), 0.01) for each in (first, second)]
    inputs, labels = task(rows=32)
    for _ in range(STEPS * 2):
        for model, optimizer in zip((first, second), optimizers, strict=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


PLANTED = {  # the other pages have proofs by an experiment
    "learning-rate-too-high": lambda: train(rate=3.0),
    "learning-rate-too-low": lambda: train(rate=1e-6),
}
HEALTHY = {
    "a classifier": train,
    "a classifier with a plain optimizer": lambda: train(rate=0.1, kind=torch.optim.SGD),
    "workers": lambda: train(workers=2),
    "a language model": predict_the_next,
    "two models in turns": play,
    "a last layer of zeros": lambda: train(Zero()),
    "an autoencoder": reconstruct,
    "a diffusion model": denoise,
    "views held together": hold_views_together,
    "a masked language model": fill_gaps,
    "many classes": tell_many_apart,
    "a line through noise": tell_noise_apart,
}


def copied_after_the_optimizer() -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    model = copy.deepcopy(model)
    train(model, kind=lambda _parameters, lr: optimizer)


def root_of_zero() -> None:
    """The derivative of a root at zero is infinite, which the first step brings into the weights."""
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    inputs, labels = task(rows=64)
    for step in range(STEPS * 2):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        (loss + (model[0].weight * (step > 3) * 0).pow(2).sum().sqrt()).backward()
        optimizer.step()


ELSEWHERE = {
    "weights that no optimizer has": copied_after_the_optimizer,
    "a root of zero": root_of_zero,
}


@pytest.mark.parametrize("slug", PLANTED)
def test_what_is_wrong_is_shown_by_a_trial(slug: str, tmp_path: Path) -> None:
    found = said(tried(tmp_path, PLANTED[slug]))
    assert f"trial/{slug}" in found, found


def test_of_a_training_that_is_too_slow_nothing_else_is_said(tmp_path: Path) -> None:
    found = said(tried(tmp_path, lambda: train(rate=1e-6, data=task(rows=4096))))
    assert set(found) == {"trial/learning-rate-too-low"}
    assert said(tried(tmp_path / "sanity", lambda: train(rate=1e-6), frozenset(("sanity",)))) == {}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_shows_nothing(name: str, tmp_path: Path) -> None:
    found = tried(tmp_path, HEALTHY[name])
    assert found.courses.of(CONTROL), found
    assert faults(found) == set()


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_a_run_tells_by_its_cause_is_given_no_other(name: str, tmp_path: Path) -> None:
    assert faults(tried(tmp_path, ELSEWHERE[name])) == set()


def test_a_branch_begins_where_the_job_stood_and_the_job_does_not_move(tmp_path: Path) -> None:
    found = tried(tmp_path, train, frozenset(("stability",)))
    control, slower = (found.courses.of(arm)[0] for arm in (CONTROL, SLOWER))
    assert control.losses[0] == slower.losses[0]
    assert control.losses[1] != slower.losses[1]
    assert found.record is not None
    first = [row.loss for row in found.record.ranks[0].every_step[: len(control.losses)]]
    assert first == pytest.approx(control.losses, rel=1e-4)  # of one thread and of several


def test_a_job_that_cannot_be_branched_says_why(tmp_path: Path) -> None:
    def alone() -> None:
        torch.distributed.init_process_group("gloo", init_method=(tmp_path / "store").as_uri(), rank=0, world_size=1)
        train()

    found = tried(tmp_path, alone, frozenset(("sanity",)))
    (told,) = found.unseen
    assert isinstance(told, Inconclusive)
    assert told.why == (
        "the job is one of several ranks, which cannot be branched one by one: what its model depends on was not asked"
    )


def test_a_job_without_a_training_says_so(tmp_path: Path) -> None:
    (told,) = tried(tmp_path, lambda: None).unseen
    assert told.why == "no step of a training was seen"
