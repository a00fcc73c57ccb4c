"""Whether a loss asks for what its model was given: by the graph, and by looks at it made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from records import Events, evidence, found, steps
from torch import nn
from torch.nn import functional as F

from torchtriage.specialists.debugging_techniques.probes._copies import Copies
from torchtriage.specialists.debugging_techniques.readings import copied

SYMBOLS, WIDTH, LENGTH = 7, 12, 5


class Tokens(nn.Module):
    """LAYER between an embedding and a head; SHIFT: what is made of the embeddings before."""

    def __init__(self, layer: nn.Module, shift: Callable[[torch.Tensor], torch.Tensor] = lambda x: x) -> None:
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(SYMBOLS, WIDTH), layer, nn.Linear(WIDTH, SYMBOLS)
        self.shift = shift

    def forward(self, ids: torch.Tensor) -> Any:
        found = self.layer(self.shift(self.embedding(ids)))
        return self.head(found[0] if isinstance(found, tuple) else found)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.attention(self.norm(x)).chunk(3, -1)
        return x + F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    """Without a way around it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(x, x, x, is_causal=True)


class Convolution(nn.Module):
    """A causal one that does not see its own position."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv1d(WIDTH, WIDTH, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(F.pad(x.transpose(1, 2), (2, -1))).transpose(1, 2)


class Code(nn.Module):
    """All positions through one code, as wide as the sequence is long."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.code, self.back = nn.Linear(LENGTH * WIDTH, width), nn.Linear(width, LENGTH * WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.back(self.code(x.flatten(1)).relu()).unflatten(1, (LENGTH, WIDTH))


class Recurrent(nn.Module):
    """The last state of one layer, for each step of another."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.encoder, self.decoder = (kind(WIDTH, WIDTH, batch_first=True) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = self.encoder(x)[0][:, -1]
        return self.decoder(last.unsqueeze(1).expand_as(x))[0]


def share(
    monkeypatch: pytest.MonkeyPatch, model: nn.Module, ids: torch.Tensor, target: torch.Tensor, ignored: int = -100
) -> float | None:
    copies = Copies()
    monkeypatch.setattr(torch, "embedding", copies.noting(torch.embedding))
    loss = F.cross_entropy(model(ids).transpose(1, 2), target, ignore_index=ignored)
    found = copies.share(loss.grad_fn, target, ignored)
    return None if found is None else float(found)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(lambda: Tokens(nn.Sequential(Residual(), nn.Dropout(0.1), Residual())), id="around attention"),
        pytest.param(lambda: Tokens(nn.LSTM(WIDTH, WIDTH, 2, batch_first=True)), id="LSTM"),
        pytest.param(lambda: Tokens(nn.GRU(WIDTH, WIDTH, batch_first=True)), id="GRU"),
        pytest.param(lambda: Tokens(nn.RNN(WIDTH, WIDTH, 2, batch_first=True)), id="RNN"),
        pytest.param(lambda: Tokens(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU())), id="layers"),
        pytest.param(lambda: Tokens(nn.Identity(), lambda x: x[:, -0:]), id="a slice of all"),
    ],
)
def test_each_position_is_led_back_to_its_own_embedding(
    model: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = torch.randint(SYMBOLS, (3, LENGTH))
    assert share(monkeypatch, model(), ids, ids.clone()) == 1
    assert share(monkeypatch, model(), ids, (ids + 1) % SYMBOLS) != 1


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(lambda: Tokens(Attention()), id="attention alone"),
        pytest.param(lambda: Tokens(Convolution()), id="a convolution that looks back"),
        pytest.param(lambda: Tokens(Code(4)), id="one code"),
        pytest.param(lambda: Tokens(Code(LENGTH)), id="one code as wide as the sequence is long"),
        pytest.param(lambda: Tokens(Code(WIDTH)), id="one code as wide as an embedding"),
        pytest.param(lambda: Tokens(Recurrent(nn.LSTM)), id="the last state of an LSTM"),
        pytest.param(lambda: Tokens(Recurrent(nn.GRU)), id="the last state of a GRU"),
        pytest.param(
            lambda: Tokens(nn.LSTM(WIDTH, WIDTH, batch_first=True), lambda x: F.pad(x, (0, 0, 1, -1))),
            id="shifted by padding",
        ),
        pytest.param(
            lambda: Tokens(Residual(), lambda x: torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)),
            id="shifted behind a start",
        ),
        pytest.param(lambda: Tokens(Residual(), lambda x: x.roll(1, 1)), id="shifted around"),
    ],
)
def test_what_has_to_pass_others_or_one_code_is_no_copy(
    model: Callable[[], nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = torch.randint(SYMBOLS, (3, LENGTH))
    assert share(monkeypatch, model(), ids, ids) is None


def test_only_targets_that_count_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = torch.randint(1, SYMBOLS, (3, LENGTH))
    target = torch.full_like(ids, -100)
    target[:, 0] = 0
    assert share(monkeypatch, Tokens(nn.Identity()), ids, target) == 0
    target[:, 1:] = ids[:, 1:]
    assert share(monkeypatch, Tokens(nn.Identity()), ids, target, ignored=0) == 1


def test_ids_that_come_with_the_sequence_first_are_told_in_either_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = torch.randint(SYMBOLS, (3, LENGTH))
    copies, model = Copies(), Tokens(nn.LSTM(WIDTH, WIDTH))
    monkeypatch.setattr(torch, "embedding", copies.noting(torch.embedding))
    loss = F.cross_entropy(model(ids.T).transpose(0, 1).flatten(0, 1), ids.flatten())
    assert copies.share(loss.grad_fn, ids.flatten(), -100) == 1


def test_a_class_for_each_sample_is_no_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = torch.randint(SYMBOLS, (6, 1))
    assert share(monkeypatch, Tokens(nn.Identity()), ids, ids) is None


def test_few_of_many_looks_follow_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    ids, copies = torch.randint(SYMBOLS, (3, LENGTH)), Copies()
    monkeypatch.setattr(torch, "embedding", copies.noting(torch.embedding))
    loss = F.cross_entropy(Tokens(nn.Identity())(ids).flatten(0, 1), ids.flatten())
    looked = [copies.share(loss.grad_fn, ids.flatten(), -100) is not None for _ in range(100)]
    assert [number for number, has in enumerate(looked, 1) if has] == [1, 2, 3, 4, 5, 6, 8, 16, 32, 64]


def looks(values: tuple[float, ...], copied: tuple[float | None, ...], prior: float = 2.7) -> Events:
    """Looks at a cross entropy of these VALUES, with the share of targets that the model was given."""
    told = {"kind": "classes", "alone": True, "classes": 16, "prior": prior, "path": "t.py", "line": 8}
    rows = enumerate(zip(values, copied, strict=True))
    return [{**told, "step": 30 * n, "at": 30 * n, "value": value, "copied": share} for n, (value, share) in rows]


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param(looks((2.8, 0.05), (1.0, 1.0)), {"target-in-input"}, id="all of them, and nothing is left"),
        pytest.param(looks((2.8, 0.05, 0.01), (1.0, None, 1.0)), {"target-in-input"}, id="one look had no way down"),
        pytest.param(looks((2.8, 1.9, 1.5), (1.0, 1.0, 1.0)), set(), id="a mask keeps the model from copying"),
        pytest.param(looks((2.8, 0.05), (0.9, 0.85)), set(), id="a model that removes noise"),
        pytest.param(looks((2.8, 0.05), (0.06, 0.07)), set(), id="text that is known by heart"),
        pytest.param(looks((2.8, 0.4, 0.05), (0.4, 1.0, 1.0)), set(), id="one batch differs"),
        pytest.param(
            [{**each, "floor": 0.5} for each in looks((2.8, 0.6), (1.0, 1.0))],
            {"target-in-input"},
            id="labels are smoothed, which costs something at best",
        ),
        pytest.param(
            [{**each, "alone": False} for each in looks((2.8, 0.05), (1.0, 1.0))], set(), id="one term of several"
        ),
        pytest.param(
            [{"kind": "setup", "step": 0, "models": [{"class": "TokenVQVAE"}]}, *looks((2.8, 0.05), (1.0, 1.0))],
            set(),
            id="an autoencoder of each token",
        ),
        pytest.param(looks((0.05,), (1.0,)), set(), id="one look"),
        pytest.param(looks((2.8, 0.05), (None, None)), set(), id="no embedding below"),
        pytest.param(looks((2.8, 0.05), (float("nan"), float("nan"))), set(), id="padding alone"),
        pytest.param(looks((0.0, 0.0), (1.0, 1.0), prior=0.0), set(), id="a single class"),
    ],
)
def test_targets_are_in_the_input_where_all_of_them_are_copied(events: Events, slugs: set[str]) -> None:
    assert found(copied.target_in_input, [*steps(60), *events]) == slugs


def test_what_is_copied_is_told_with_the_loss_before_and_after() -> None:
    (item,) = evidence(copied.target_in_input, [*steps(60), *looks((2.8, 0.05), (1.0, 1.0))])
    assert (item.place.path, item.place.line) == ("t.py", 8)
    assert "in all 2 batches that were compared; the loss fell from 2.8 to 0.05 in step 30" in item.fact
