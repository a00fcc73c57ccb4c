"""Steps in which the hooks only count: what they cost is known, and nothing that matters is missed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torchtriage.examine.run.job import Job
from torchtriage.examine.run.job.watch import clock
from torchtriage.examine.run.job.watch.rest import CLOSELY, CONTROL, MOST, RECENT, TOGETHER, Rest
from torchtriage.examine.run.reader.load import read
from torchtriage.triage import probes

Events = list[dict[str, Any]]
Watch = Callable[..., Job]
STEP = 10_000_000  # nanoseconds
TURNS = 2 * MOST * MOST  # steps after which the same ones are watched again


def seen(job: Job, *, cost: int, steps: int = 2048, budget: float = 0.01) -> list[bool]:
    """Which of STEPS steps of 10 ms rest, where one that is watched takes COST nanoseconds longer; a third is booked."""
    rest, rests = Rest(job, job.stacks), []
    job.rest, job.clock.boundary, job.governor.budget, job.governor.watching = rest, "optimizer", budget, False
    rest.first = rest.closely = 0
    rest.restart()
    for job.step in range(1, steps + 1):
        took = STEP + cost * (not rest.on)
        job.clock.parts = {**job.clock.parts, "probes": cost // 3}
        rests.append(rest.on)
        if rest.on:
            rest.count(took)
            rest.on = rest.goes_on(job.step)
        else:
            rest.on = rest.follows(took)
    return rests


def share(rests: list[bool]) -> float:
    """Of the last half, the steps that are watched."""
    late = rests[len(rests) // 2 :]
    return 1 - sum(late) / len(late)


@pytest.mark.parametrize(
    ("cost", "budget", "watched"),
    [
        pytest.param(STEP // 20, 0.01, 1 / 16, id="5 % of a step, of which half a per cent is paid"),
        pytest.param(STEP // 20, 0.04, 1 / 4, id="a larger budget"),
        pytest.param(STEP // 1000, 0.01, 1 - 1 / CONTROL, id="next to nothing: some rest to measure it"),
        pytest.param(STEP * 2, 0.01, 1 / MOST, id="far too dear: one in so many"),
    ],
)
def test_as_many_steps_are_watched_as_the_budget_pays_for(
    watch: Watch, cost: int, budget: float, watched: float
) -> None:
    assert share(seen(watch(), cost=cost, budget=budget)) == pytest.approx(watched, rel=0.1)


def test_what_a_step_takes_in_which_nobody_watches_is_what_the_others_are_charged_by(watch: Watch) -> None:
    job = watch()
    seen(job, cost=STEP // 1000, steps=2 * RECENT * CONTROL)
    assert job.governor.usual == STEP


def watched_at(rest: Rest, stride: int) -> set[int]:
    rest._stride = stride
    return {step for step in range(TURNS) if not rest.goes_on(step)}


@pytest.mark.parametrize("stride", [2, 4, 8, 16, 32, 64, MOST])
def test_a_rank_whose_steps_rest_more_often_watches_none_that_the_others_do_not(watch: Watch, stride: int) -> None:
    job = watch()
    rest = Rest(job, job.stacks)
    own, others = watched_at(rest, stride), watched_at(rest, 2)
    assert own < others if stride > 2 else own == others
    together = {*range(0, TURNS, TOGETHER)}
    assert together <= own
    assert TURNS / stride <= len(own) <= TURNS / stride + len(together)
    assert len({step % stride for step in own}) == stride  # no rhythm of the job is all that is seen


def test_who_counts_is_told_of_steps_that_rest_and_nobody_else(watch: Watch) -> None:
    job, told = watch(), {"continuous": list[tuple[str, int]](), "other": list[tuple[str, int]]()}

    def place(name: str) -> Callable[[Job], None]:
        def put(job: Job) -> None:
            if name == "continuous":
                job.continuous()
            for event in ("batch", "backward", "backwarded", "clipping", "stepped"):
                job.on(event, lambda *_, event=event: told[name].append((event, job.step)))

        return put

    for name in told:
        job.place(f"room/{name}", place(name))
    train(job, 30)
    assert told["continuous"] == [
        (event, step) for step in range(30) for event in ("batch", "backward", "backwarded", "stepped")
    ]
    assert {step % 2 for _, step in told["other"] if step > 4} == {0}


class Net(nn.Module):
    """Its forward pass or its gradient is not finite in the step that WRONG names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 1)
        self.wrong = ""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if self.wrong == "forward":
            x = torch.log(x.abs() * -1 - 1)
        if self.wrong == "backward":
            x = torch.sqrt(x * 0)
        return self.last(x)


def rest_by_turns(job: Job, *, first: int, stride: int) -> None:
    """From step FIRST on one of STRIDE steps is watched, whatever the clock says: on a busy machine the samples of lines
    begin, during which no step rests.
    """
    job.rest.first, job.rest.closely = first, 0
    job.rest.goes_on = lambda step: step % stride > 0  # type: ignore[method-assign]
    job.governor.watching, job.governor.ended = False, lambda _: False  # type: ignore[method-assign]
    job.stacks.start = lambda step: False  # type: ignore[method-assign]


def train(job: Job, steps: int, wrong: str = "") -> Net:
    """Steps of which one rests in two, and the last of which is WRONG in one that rests."""
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    inputs, targets = torch.randn(4 * steps, 8), torch.zeros(4 * steps, 1)
    if wrong == "data":
        targets[-1] = torch.nan
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=4)
    rest_by_turns(job, first=4, stride=2)
    for batch, target in loader:
        model.wrong = wrong if job.step == steps - 1 else ""
        assert not model.wrong or job.rest.on
        optimizer.zero_grad()
        nn.functional.mse_loss(model(batch), target).backward()
        optimizer.step()
    return model


LOOP = next(
    number
    for number, line in enumerate(Path(__file__).read_text().splitlines(), 1)
    if line.strip() == "for batch, target in loader:"
)


@pytest.mark.parametrize("guarded", [False, True])
def test_steps_that_rest_are_counted_with_what_they_took(
    watch: Watch, events: Callable[..., Events], guarded: bool
) -> None:
    job = watch(*probes() * guarded)
    train(job, 41)
    rows = [row for row in events("step") if row["step"] > 4]
    assert {row["step"] % 2 for row in rows} == {0}
    assert {row["rested"] for row in rows[1:]} == {1}
    assert all(row["rested_seconds"] > 0 for row in rows[1:])
    assert {"rested_losses" in row for row in rows[1:]} == {guarded}
    assert {(row["batches"], row["forwards"], row["backwards"]) for row in rows} == {(1, 1, 1)}
    assert (job.step, job.clock.count("batches"), job.clock.count("forwards"), job.clock.count("backwards")) == (
        41, 41, 41, 41,
    )  # fmt: skip


@pytest.mark.parametrize(("wrong", "told"), [("forward", ("loss", "log")), ("backward", ("gradient", "Sqrt"))])
def test_a_first_nan_in_a_step_that_rests_is_traced(
    watch: Watch, events: Callable[..., Events], wrong: str, told: tuple[str, str]
) -> None:
    job = watch(*probes())
    model = train(job, 32, wrong)
    assert not job.lost
    (found,) = events("non-finite")
    assert (found["step"], found["seen"], found["op"], found["stage"]) == (31, *told, wrong)
    assert not torch.isfinite(model.first.weight).all()


def test_the_batch_of_a_step_that_rests_is_not_held_beyond_it(watch: Watch) -> None:
    job = watch(*probes())
    train(job, 32)
    assert job.rest.guard is not None
    assert not job.rest.guard.calls  # type: ignore[attr-defined]
    assert job.rest.batch is None


def test_a_batch_that_is_not_finite_is_named_though_its_step_rests(watch: Watch, events: Callable[..., Events]) -> None:
    job = watch(*probes())
    train(job, 32, "data")
    (found,) = events("non-finite")
    assert found["batch"]["index"] == 31
    assert (found["batch"]["dataset"], found["batch"]["tensors"][0]["name"]) == ("TensorDataset", "batch[1]")
    assert found["batch"]["line"] == LOOP


def test_a_guard_that_fails_is_off_and_the_job_goes_on(watch: Watch) -> None:
    class Failing:
        probe = "room/failing"

        def forward(self, module: Any, args: Any, kwargs: Any) -> None:
            pass

        def is_loss_finite(self, root: Any) -> bool:
            raise RuntimeError("of ours")

        def is_gradient_finite(self, optimizer: Any) -> bool:
            return True

        def batch(self, loader: Any, batch: Any) -> None:
            pass

        def close(self) -> None:
            pass

    job = watch()
    job.rest.guard = Failing()
    train(job, 32)
    assert (job.step, job.left, job.rest.guard) == (32, False, None)
    assert job.lost == {"room/failing": "RuntimeError: of ours"}


def test_a_step_is_seen_whole_or_not_at_all(watch: Watch) -> None:
    job, told = watch(), list[tuple[str, int]]()
    for event in ("forward", "forwarded", "aside", "asided", "backward", "backwarded", "stepping", "stepped"):
        job.on(event, lambda *_, event=event: told.append((event, job.step)))
    model = train(job, 31)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for rests in (True, False):
        assert job.rest.on is rests
        told.clear()
        model.eval()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
        assert [event for event, _ in told] == [] if rests else ["forward", "aside", "forwarded", "asided", "backward"]


def test_what_rested_last_is_written_down_when_the_job_ends(watch: Watch, tmp_path: Path) -> None:
    job = watch(*probes())
    train(job, 32)
    job.leave("exit")
    (rank,) = read(tmp_path).ranks
    assert [each.step for each in rank.every_step] == list(range(32))
    assert all(each.loss is not None for each in rank.every_step)


def test_the_loss_under_a_scaler_is_the_one_before_it(watch: Watch, events: Callable[..., Events]) -> None:
    job = watch(*probes())
    model = train(job, 31)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 1e-6), torch.amp.GradScaler("cpu")
    for _ in range(4):
        loss = model(torch.ones(4, 8)).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    losses = [loss for row in events("step")[-2:] for loss in (row["loss"], *row.get("rested_losses", ()))]
    assert max(losses) < 10


def test_no_step_of_the_first_minute_rests(watch: Watch) -> None:
    job = watch()
    job.rest.first, job.clock.boundary, job.governor.watching = 0, "optimizer", False
    job.rest.goes_on = lambda step: True  # type: ignore[method-assign]
    job.governor.elapsed = CLOSELY - 1
    assert not job.rest.follows(STEP)
    job.governor.elapsed = CLOSELY
    assert job.rest.follows(STEP)


def test_of_steps_that_are_no_longer_all_written_down_each_tells_its_own_rest(
    watch: Watch, events: Callable[..., Events], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "DENSE", 4)
    job = watch(*probes())
    train(job, 400)
    rows = events("step")
    assert 8 < len(rows) < 40
    assert {row.get("rested", 0) for row in rows if row["step"] > 8} == {1}


def gan() -> list[nn.Module]:
    nets = [nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1)), nn.Linear(1, 1)]
    first, second = (torch.optim.Adam(net.parameters(), 1e-3) for net in nets)
    for _ in range(120):
        second.zero_grad()
        nets[1](nets[0](torch.randn(4, 4)).detach()).mean().backward()
        second.step()
        first.zero_grad()
        nets[1](nets[0](torch.randn(4, 4))).mean().backward()
        first.step()
    return nets


def accumulating() -> list[nn.Module]:
    net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), 1e-2, momentum=0.9)
    for _ in range(120):
        for _ in range(3):
            net(torch.randn(4, 4)).square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    return [net]


def checkpointed() -> list[nn.Module]:
    net, head = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3)), nn.Linear(8, 1)
    both = nn.ModuleList([net, head])
    optimizer = torch.optim.SGD(both.parameters(), 1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        x = checkpoint(net, torch.randn(4, 4, requires_grad=True), use_reentrant=True)
        head(x).square().mean().backward()
        optimizer.step()
    return [both]


def with_penalty() -> list[nn.Module]:
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(120):
        x = torch.randn(4, 4, requires_grad=True)
        value = net(x).sum()
        (slope,) = torch.autograd.grad(value, x, create_graph=True)
        optimizer.zero_grad()
        (slope.square().mean() + value.square()).backward()
        optimizer.step()
    return [net]


@pytest.mark.filterwarnings("ignore:None of the inputs")
@pytest.mark.parametrize("training", [gan, accumulating, checkpointed, with_penalty])
def test_a_job_whose_steps_rest_trains_to_the_same_bits(watch: Watch, training: Callable[[], list[nn.Module]]) -> None:
    def weights() -> list[torch.Tensor]:
        torch.manual_seed(0)
        return [each.detach().clone() for net in training() for each in net.parameters()] + [torch.get_rng_state()]

    plain = weights()
    job = watch(*probes())
    rest_by_turns(job, first=8, stride=4)
    watched = weights()
    assert job.rest.total > 60
    assert not job.lost
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
