"""What is asked of a model before its first step: faults that show at once, and healthy models that look alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from torchtriage.core.evidence import Observed
from torchtriage.examine.detector import perform
from torchtriage.examine.run.job.events import replace
from torchtriage.examine.trial.experiment.arms import CONTROL, Course, Courses
from torchtriage.examine.trial.experiment.conduct import Experiment
from torchtriage.examine.trial.experiment.job.delivery import Delivered
from torchtriage.examine.trial.experiment.job.events import Influence
from torchtriage.examine.trial.experiment.job.looks import influence, places_that_matter
from torchtriage.examine.trial.experiment.questions import OTHER_TARGETS, Answers
from torchtriage.specialists.debugging_techniques.readings import influences

ROWS, TIMES, WIDTH, SYMBOLS = 8, 6, 5, 11


class Calls(nn.Module):
    """A model that is one function, with layers of its own."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(self, *args, **kwargs)


def zeros(layer: nn.Linear) -> nn.Linear:
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def dead(layer: nn.Linear) -> nn.Linear:
    nn.init.constant_(layer.bias, -50.0)
    return layer


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def ids(rows: int = ROWS, times: int = TIMES) -> Tensor:
    return torch.randint(SYMBOLS, (rows, times), generator=torch.Generator().manual_seed(2))


def looked(model: nn.Module, *args: Any, shuffle: bool = True, samples: int = ROWS, **kwargs: Any) -> Influence:
    """The look at a call of MODEL, in a job whose loader has put so many SAMPLES together; none: without a loader."""
    given = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor) and each.dim()]
    loader = batch = None
    if samples:
        rows = [each if len(each) == samples else torch.zeros(samples) for each in given[:1]]
        loader = DataLoader(TensorDataset(*rows, torch.arange(samples)), batch_size=samples, shuffle=shuffle)
        batch = [*rows, torch.arange(samples)]
    found, later = influence(1, model, args, kwargs, Delivered(loader, batch))
    if later is not None:  # the loss of a language model, that asks for the next id
        change, shifted = later.judged_by(later.ids[:, 1:].flatten(), -100)
        found = replace(found, later=change, shifted=shifted)
    return found


def said(look: Influence) -> set[str]:
    """What is made of a LOOK where the courses contradict nothing."""
    same = Course((2.0, 1.5, 1.0, 0.9))
    answers = Answers(Courses({(CONTROL, 0): same, (OTHER_TARGETS, 0): same}))
    readings = (influences.input_ignored, influences.samples_mixed, influences.future_visible)
    outcomes = perform(readings, Experiment(4, answers, influences=(look,)))
    return {each.detector.removeprefix("trial/") for each in outcomes if isinstance(each, Observed) and each.evidence}


def mlp(width: int = WIDTH, out: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, out))


def embedded(**layers: nn.Module) -> dict[str, nn.Module]:
    torch.manual_seed(0)
    return {"table": nn.Embedding(SYMBOLS, 8), "head": nn.Linear(8, SYMBOLS), **layers}


def attention(*, batch_first: bool = True) -> nn.MultiheadAttention:
    torch.manual_seed(0)
    return nn.MultiheadAttention(8, 2, batch_first=batch_first)


def attend(model: Any, seen: Tensor, mask: Tensor | None = None) -> Tensor:
    known = model.table(seen) if not seen.is_floating_point() else seen
    logits: Tensor = model.head(known + model.attention(known, known, known, attn_mask=mask)[0])
    return logits


def causal(times: int = TIMES) -> Tensor:
    return nn.Transformer.generate_square_subsequent_mask(times)


def pooled(model: Any, x: Tensor, dim: int) -> Tensor:
    """The mean of the parts of each sample, by weights that a softmax over DIM gives."""
    weights = model.score(x).squeeze(-1).softmax(dim)
    answers: Tensor = model.net(torch.einsum("bt,btd->bd", weights, x))
    return answers


def off_diagonal(scores: Tensor) -> Tensor:
    return scores[~torch.eye(len(scores), dtype=torch.bool)].view(len(scores), -1)


class Spiking(nn.Module):
    """Nothing of a few small numbers is seen in the first of many steps: only the potentials rise."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = mlp()

    def forward(self, now: Tensor) -> tuple[Tensor, Tensor]:
        potential = self.layer(now)
        return (potential > 100).float(), potential


class VAE(nn.Module):
    """A decoder that is given a code of the whole sequence, and the ids so far."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.head = nn.Embedding(SYMBOLS, 8), nn.Linear(8, SYMBOLS)
        self.encoder, self.decoder = nn.GRU(8, 8, batch_first=True), nn.GRU(8, 8, batch_first=True)

    def forward(self, seen: Tensor) -> Tensor:
        known = self.table(seen)
        logits: Tensor = self.head(self.decoder(known, self.encoder(known)[1])[0])
        return logits


GRAPH = torch.tensor([list(range(ROWS)), [*range(1, ROWS), 0]])
WRONG: dict[str, tuple[str, Callable[[], Influence]]] = {
    "inputs below 1 become 0": (
        "input-ignored",
        lambda: looked(Calls(lambda m, x: m.net((x.sigmoid() * 0.9).long().float()), net=mlp()), numbers(ROWS, WIDTH)),
    ),
    "inputs of a loader that are all the same": ("input-ignored", lambda: looked(mlp(), torch.zeros(ROWS, WIDTH))),
    "a view where a transpose was meant": (
        "samples-mixed",
        lambda: looked(Calls(lambda m, x: m.net(x.t().reshape(x.shape)), net=mlp()), numbers(ROWS, WIDTH)),
    ),
    "attention over samples": (
        "samples-mixed",
        lambda: looked(Calls(attend, **embedded(attention=attention(batch_first=False))), numbers(ROWS, TIMES, 8)),
    ),
    "a recurrence over samples": (
        "samples-mixed",
        lambda: looked(Calls(lambda m, x: m.layer(x)[0], layer=nn.LSTM(8, 8)), numbers(ROWS, TIMES, 8)),
    ),
    "weights of the parts, divided among the samples": (
        "samples-mixed",
        lambda: looked(Calls(pooled, net=mlp(8), score=nn.Linear(8, 1)), numbers(ROWS, TIMES, 8), 0),
    ),
    "attention without a mask": (
        "future-visible",
        lambda: looked(Calls(attend, **embedded(attention=attention())), ids()),
    ),
    "a recurrence in both directions": (
        "future-visible",
        lambda: looked(
            Calls(
                lambda m, x: m.head(m.layer(m.table(x))[0]),
                **embedded(layer=nn.GRU(8, 4, batch_first=True, bidirectional=True)),
            ),
            ids(),
        ),
    ),
}

HEALTHY: dict[str, Callable[[], Influence]] = {
    "a network": lambda: looked(mlp(), numbers(ROWS, WIDTH)),
    "a last layer of zeros": lambda: looked(
        Calls(lambda m, x: m.last(m.net(x)), net=mlp(), last=zeros(nn.Linear(3, 4))), numbers(ROWS, WIDTH)
    ),
    "a layer that is dead at the start": lambda: looked(
        Calls(lambda m, x: m.last(m.first(x).relu()), first=dead(nn.Linear(WIDTH, 4)), last=nn.Linear(4, 2)),
        numbers(ROWS, WIDTH),
    ),
    "two inputs, of which one has no effect yet": lambda: looked(
        Calls(lambda m, x, y: m.net(x) + m.gate(y), net=mlp(), gate=zeros(nn.Linear(WIDTH, 3))),
        numbers(ROWS, WIDTH),
        numbers(ROWS, WIDTH) + 1,
    ),
    "an input in a dictionary, and a weight for each sample": lambda: looked(
        Calls(lambda m, weight, x: m.net(x["x"]), net=mlp()), torch.arange(ROWS).float(), {"x": numbers(ROWS, WIDTH)}
    ),
    "spikes": lambda: looked(Spiking(), numbers(ROWS, WIDTH)),
    "rows of images, of which the first is black": lambda: looked(
        Calls(lambda m, x: m.net(x), net=mlp()), torch.zeros(ROWS, WIDTH), samples=2 * ROWS
    ),
    "a benchmark on ones": lambda: looked(mlp(), torch.ones(ROWS, WIDTH), samples=0),
    "weights of the parts of each sample": lambda: looked(
        Calls(pooled, net=mlp(8), score=nn.Linear(8, 1)), numbers(ROWS, TIMES, 8), 1
    ),
    "scores against all others, divided among these": lambda: looked(
        Calls(lambda m, x: (m.net(x) @ m.net(x).t()).softmax(0), net=mlp()), numbers(ROWS, WIDTH)
    ),
    "a set, pooled to as many numbers as it has elements": lambda: looked(
        Calls(lambda m, x: m.net(x).amax(0), net=mlp(out=ROWS)), numbers(ROWS, WIDTH), samples=0
    ),
    "normalisation by running statistics": lambda: looked(
        Calls(lambda m, x: m.last(m.norm(x)), norm=nn.BatchNorm1d(WIDTH), last=mlp()), numbers(ROWS, WIDTH)
    ),
    "normalisation by the batch at hand": lambda: looked(
        Calls(lambda m, x: m.net(m.norm(x)), norm=nn.BatchNorm1d(WIDTH, track_running_stats=False), net=mlp()),
        numbers(ROWS, WIDTH),
    ),
    "normalisation by hand": lambda: looked(
        Calls(lambda m, x: m.net((x - x.mean(0)) / x.std(0)), net=mlp()), numbers(ROWS, WIDTH)
    ),
    "pairs held against all others": lambda: looked(
        Calls(lambda m, x, y: m.left(x) @ m.right(y).t(), left=mlp(), right=mlp()),
        numbers(ROWS, WIDTH),
        numbers(ROWS, WIDTH) + 1,
    ),
    "each sample held against all others but itself": lambda: looked(
        Calls(lambda m, x: off_diagonal(m.net(x) @ m.net(x).t()), net=mlp()), numbers(ROWS, WIDTH)
    ),
    "a graph": lambda: looked(
        Calls(lambda m, x, edges: m.net(x[edges[0]] + x[edges[1]]), net=mlp()), numbers(ROWS, WIDTH), GRAPH, samples=0
    ),
    "a graph that the model holds": lambda: looked(
        Calls(lambda m, x: m.net(x[GRAPH[0]] + 0.5 * x[GRAPH[1]]), net=mlp()), numbers(ROWS, WIDTH), samples=2
    ),
    "a set": lambda: looked(Calls(attend, **embedded(attention=attention(batch_first=False))), numbers(ROWS, 8), samples=0),
    "time first": lambda: looked(
        Calls(lambda m, x: m.layer(x)[0], layer=nn.LSTM(8, 8, bidirectional=True)), numbers(TIMES, ROWS, 8)
    ),
    "a window of time as a batch": lambda: looked(
        Calls(lambda m, x: m.layer(x)[0], layer=nn.LSTM(WIDTH, 8, bidirectional=True)), numbers(ROWS, WIDTH), shuffle=False
    ),
    "a loss": lambda: looked(Calls(lambda m, x: m.net(x).square().mean(), net=mlp()), numbers(ROWS, WIDTH)),
    "a loss beside the answers": lambda: looked(
        Calls(lambda m, x: (m.net(x).square().mean(), m.net(x)), net=mlp()), numbers(ROWS, WIDTH)
    ),
    "noise in evaluation": lambda: looked(
        Calls(lambda m, x: m.net(x) + torch.randn(3), net=mlp()), numbers(ROWS, WIDTH)
    ),
    "an autoencoder": lambda: looked(mlp(out=WIDTH), numbers(ROWS, WIDTH)),
    "a diffusion model": lambda: looked(
        Calls(lambda m, x, t: m.last(m.net(x) * t[:, None].cos()), net=mlp(), last=zeros(nn.Linear(3, WIDTH))),
        numbers(ROWS, WIDTH),
        torch.arange(ROWS),
    ),
    "a causal language model": lambda: looked(
        Calls(lambda m, x: attend(m, x, causal()), **embedded(attention=attention())), ids()
    ),
    "a recurrent language model": lambda: looked(
        Calls(lambda m, x: m.head(m.layer(m.table(x))[0]), **embedded(layer=nn.GRU(8, 8, batch_first=True))), ids()
    ),
    "a mask for padding": lambda: looked(
        Calls(lambda m, x, mask: attend(m, x, causal()), **embedded(attention=attention())),
        ids(),
        torch.ones(ROWS, TIMES, dtype=torch.long),
    ),
    "a code of the whole sentence": lambda: looked(VAE(), ids()),
    "one sentence from another": lambda: looked(
        Calls(lambda m, source, x: attend(m, x, causal()) + m.table(source).mean(1, keepdim=True).sum(-1, keepdim=True),
              **embedded(attention=attention())),
        ids(), ids().flip(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_seen_before_the_first_step(name: str) -> None:
    slug, look = WRONG[name]
    assert said(look()) == {slug}


@pytest.mark.parametrize("name", HEALTHY)
def test_of_a_healthy_model_nothing_is_said(name: str) -> None:
    assert said(HEALTHY[name]()) == set()


def language(targets: Callable[[Tensor], Tensor], ignored: int = -100) -> set[str]:
    """What is said of a model without a mask, whose loss asks for these TARGETS."""
    seen = ids()
    model = Calls(attend, **embedded(attention=attention()))
    found, later = influence(1, model, (seen,), {}, Delivered(None, None))
    assert later is not None
    change, shifted = later.judged_by(targets(seen), ignored)
    return said(replace(found, later=change, shifted=shifted))


def only(seen: Tensor, places: Sequence[int]) -> Tensor:
    """The next ids, of which only those at some PLACES count."""
    wanted = torch.full_like(seen, -100)
    for place in places:
        wanted[:, place] = seen[:, place + 1]
    return wanted


@pytest.mark.parametrize(
    ("name", "targets", "is_wrong"),
    [
        ("the next ids", lambda seen: torch.cat([seen[:, 1:], seen[:, :1]], 1), True),
        ("the next ids, of some", lambda seen: only(seen, (0, 1, 2, 3)), True),
        ("the ids at hand: a masked language model", lambda seen: seen, False),
        ("a tag for each id", lambda seen: seen % 3, False),
        ("an answer to a prompt that is seen as a whole", lambda seen: only(seen, (3, 4)), False),
        ("one class for each sentence", lambda seen: seen[:, 0], False),
    ],
)
def test_the_future_is_visible_only_where_it_is_asked_for(
    name: str, targets: Callable[[Tensor], Tensor], is_wrong: bool
) -> None:
    assert (language(targets) == {"future-visible"}) is is_wrong, name


def test_padding_tells_nothing_of_what_is_asked_for() -> None:
    """Tags of padding are 0 as padding is."""
    seen = ids(times=24)
    seen[:, 4:] = 0
    model = Calls(attend, **embedded(attention=attention()))
    _, later = influence(1, model, (seen,), {}, Delivered(None, None))
    tags = torch.where(seen > 0, seen % 3, 0)
    assert later is None or (later.judged_by(tags, -100)[1] or 0.0) < 0.9


def test_a_look_leaves_modes_and_weights_as_they_were() -> None:
    net = mlp().eval()
    model = Calls(lambda m, x: m.last(m.net(x)), net=net, last=zeros(nn.Linear(3, 4)))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    looked(model, numbers(ROWS, WIDTH), samples=0)
    places_that_matter(model, (numbers(ROWS, WIDTH),), {})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (model.training, net.training) == (True, False)
    assert torch.equal(torch.get_rng_state(), state)


def test_of_two_inputs_behind_a_last_layer_of_zeros_both_matter_and_targets_do_not() -> None:
    model = Calls(lambda m, x, y, z: m.last(m.net(x) + m.net(y)), net=mlp(), last=zeros(nn.Linear(3, 4)))
    three = tuple(numbers(ROWS, WIDTH) + number for number in range(3))
    assert places_that_matter(model, three, {}) == {0, 1}
