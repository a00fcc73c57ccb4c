"""Loops on the simulated device, each limited by one thing or healthy; `waits here` stands beside the lines that wait.

Times are those of a device that is slow enough for the watch to be nothing beside it: on the simulated clock seconds
cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import nn

from torchtriage.simulation import Costs, Simulator, Transfer

S = 1_000_000_000
WIDTH, LAYERS, BATCH = 16, 6, 8


def model() -> nn.Sequential:
    torch.manual_seed(0)
    parts = [part for _ in range(LAYERS) for part in (nn.Linear(WIDTH, WIDTH), nn.Tanh())]
    return nn.Sequential(*parts).to("sim")


@dataclass
class Parts:
    """What every loop needs."""

    simulator: Simulator
    model: nn.Module
    optimizer: torch.optim.Optimizer
    batches: list[tuple[torch.Tensor, torch.Tensor]]

    @classmethod
    def of(cls, simulator: Simulator, steps: int, *, width: int = WIDTH) -> Parts:
        made = model()
        batches = [(torch.randn(BATCH, width), torch.randn(BATCH, WIDTH)) for _ in range(steps)]
        return cls(simulator, made, torch.optim.SGD(made.parameters(), 0.01), batches)

    def forward(self, batch: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nn.functional.mse_loss(self.model(batch), target)

    def loader(self, **arguments: object) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        loader: Iterator[tuple[torch.Tensor, torch.Tensor]] = iter(
            torch.utils.data.DataLoader(self.batches, batch_size=None, **arguments)  # type: ignore[arg-type]
        )
        return loader


def plain(parts: Parts) -> None:
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        parts.forward(batch.to("sim"), target.to("sim")).backward()
        parts.optimizer.step()
        parts.simulator.step()


def two_items(parts: Parts, *, waits: bool = True) -> None:
    """The host works on each figure, meanwhile the device has nothing to do."""
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        loss = parts.forward(batch.to("sim"), target.to("sim"))
        if waits:
            loss.item()  # waits here
        parts.simulator.host(2 * S)
        loss.backward()
        if waits:
            parts.model[0].weight.grad.norm().item()  # waits here
        parts.simulator.host(2 * S)
        parts.optimizer.step()
        parts.simulator.step()


class Logged(nn.Module):
    """Reads the mean of what each layer gives."""

    def __init__(self, layers: nn.Sequential, *, waits: bool) -> None:
        super().__init__()
        self.layers, self.waits = layers, waits

    def forward(self, outputs: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            outputs = layer(outputs)
            mean = outputs.detach().mean()
            if self.waits:
                mean.item()
        return outputs


def activations_logged(parts: Parts, *, waits: bool = True) -> None:
    """At each figure the device has nearly done what it was given: its kernels are short."""
    model = Logged(parts.model, waits=waits)
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        nn.functional.mse_loss(model(batch.to("sim")), target.to("sim")).backward()
        parts.optimizer.step()
        parts.simulator.step()


# called by its name each time: the watch takes its place there
ANSWERS: dict[str, Callable[[torch.Tensor], object]] = {
    "allclose": lambda numbers: torch.allclose(numbers, numbers),
    "argwhere": lambda numbers: torch.argwhere(numbers + 0),
    "bincount": lambda numbers: torch.bincount(numbers.flatten().clamp(min=0).long()),
    "equal": lambda numbers: numbers.equal(numbers + 1),
    "integers": lambda numbers: [int(each) for each in numbers[0]],
    "masked_select": lambda numbers: torch.masked_select(numbers, numbers > 0),
    "nonzero": lambda numbers: torch.nonzero(numbers + 0),
    "repeat_interleave": lambda numbers: numbers.repeat_interleave(numbers[:, 0].clamp(min=0).long() + 1, dim=0),
    "print": repr,
    "unique": lambda numbers: torch.unique(numbers + 0),
    "where": lambda numbers: torch.where(numbers > 0),
}


def answers(parts: Parts, *, answer: str = "equal") -> None:
    """The answer, or its shape, depends on values; the host works on it, meanwhile the device has nothing to do."""
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        output = parts.model(batch.to("sim"))
        nn.functional.mse_loss(output, target.to("sim")).backward()
        parts.optimizer.step()
        ANSWERS[answer](output.detach())
        parts.simulator.host(4 * S)
        parts.simulator.step()


@dataclass
class Decoded:
    """Batches that the thread which trains makes itself, for less time than the device computes."""

    parts: Parts

    def __len__(self) -> int:
        return len(self.parts.batches)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        self.parts.simulator.host(3 * S // 2)
        return self.parts.batches[index]


def decoded_after_an_item(parts: Parts) -> None:
    """The next batch would be made beside the device, if nothing waited for it."""
    for batch, target in torch.utils.data.DataLoader(Decoded(parts), batch_size=None):
        parts.optimizer.zero_grad()
        loss = parts.forward(batch.to("sim"), target.to("sim"))
        loss.backward()
        parts.optimizer.step()
        loss.item()  # waits here
        parts.simulator.step()


def item_at_the_end(parts: Parts) -> None:
    total = 0.0
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        loss = parts.forward(batch.to("sim"), target.to("sim"))
        loss.backward()
        parts.optimizer.step()
        total += loss.item()
        parts.simulator.step()


def item_now_and_then(parts: Parts) -> None:
    for step, (batch, target) in enumerate(parts.loader()):
        parts.optimizer.zero_grad()
        loss = parts.forward(batch.to("sim"), target.to("sim"))
        loss.backward()
        parts.optimizer.step()
        if step % 50 == 0:
            loss.item()
            parts.simulator.host(2 * S)
        parts.simulator.step()


def metrics_on_the_host(parts: Parts, *, waits: bool = True) -> None:
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        outputs = parts.model(batch.to("sim"))
        loss = nn.functional.mse_loss(outputs, target.to("sim"))
        loss.backward()
        parts.optimizer.step()
        if waits:
            outputs.detach().cpu()  # waits here
        parts.simulator.host(4 * S)
        parts.simulator.step()


def clipped_by_branch(parts: Parts, *, waits: bool = True) -> None:
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        parts.forward(batch.to("sim"), target.to("sim")).backward()
        norm = nn.utils.get_total_norm([each.grad for each in parts.model.parameters()])
        if waits and norm > 1e9:  # waits here
            nn.utils.clip_grads_with_norm_(parts.model.parameters(), 1.0, norm)
        parts.simulator.host(3 * S)
        parts.optimizer.step()
        parts.simulator.step()


def copied_wide(parts: Parts) -> None:
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        inputs = batch.to("sim")  # waits here
        parts.forward(inputs[:, :WIDTH], target.to("sim")).backward()
        parts.optimizer.step()
        parts.simulator.step()


def copied_from_pinned_memory(parts: Parts, *, non_blocking: bool = True) -> None:
    batches = [(batch.pin_memory(), target.pin_memory()) for batch, target in parts.batches]
    for batch, target in torch.utils.data.DataLoader(batches, batch_size=None):
        parts.optimizer.zero_grad()
        inputs = batch.to("sim", non_blocking=non_blocking)  # waits here
        parts.forward(inputs[:, :WIDTH], target.to("sim", non_blocking=True)).backward()
        parts.optimizer.step()
        parts.simulator.step()


def copied_from_pinned_memory_and_waited_for(parts: Parts) -> None:
    copied_from_pinned_memory(parts, non_blocking=False)


def evaluated(parts: Parts) -> None:
    """Epochs of 20 steps, after each of which the loss of each of 10 batches is read."""
    for step, (batch, target) in enumerate(parts.loader(), 1):
        parts.optimizer.zero_grad()
        parts.forward(batch.to("sim"), target.to("sim")).backward()
        parts.optimizer.step()
        parts.simulator.step()
        if step % 20 == 0:
            parts.model.eval()
            with torch.no_grad():
                for held_out, expected in parts.batches[:10]:
                    parts.forward(held_out.to("sim"), expected.to("sim")).item()
                    parts.simulator.host(2 * S)
            parts.model.train()


def rolled_out(parts: Parts) -> None:
    """Each step begins with asking the model what to do, which nobody can do without waiting."""
    for batch, target in parts.loader():
        for _ in range(3):
            with torch.no_grad():
                parts.model(batch.to("sim")).argmax().item()
            parts.simulator.host(2 * S)
        parts.optimizer.zero_grad()
        parts.forward(batch.to("sim"), target.to("sim")).backward()
        parts.optimizer.step()
        parts.simulator.step()


def timed_forward(parts: Parts, *, how: str = "never") -> None:
    """A clock is read around the forward pass; HOW: when the device is waited for beforehand."""
    spent = 0.0
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        inputs, targets = batch.to("sim"), target.to("sim")
        begun = time.perf_counter()
        loss = parts.forward(inputs, targets)
        if how == "synchronize":
            torch.accelerator.synchronize()
        if how == "item":
            loss.item()
        spent += perf_counter() - begun  # read here
        loss.backward()
        parts.optimizer.step()
        loss.item()
        parts.simulator.step()


def timed_steps(parts: Parts) -> None:
    """As meters of batches do: the time of the data, and of the step with it."""
    end, data, whole = time.time(), 0.0, 0.0
    for batch, target in parts.loader():
        data += time.time() - end
        parts.optimizer.zero_grad()
        parts.forward(batch.to("sim"), target.to("sim")).backward()
        parts.optimizer.step()
        whole += time.time() - end
        end = time.time()
        parts.simulator.step()


def accumulated_on_the_device(parts: Parts) -> None:
    """The host works as long as in the loops that wait, and the device goes on meanwhile."""
    total = torch.zeros((), device="sim")
    for batch, target in parts.loader():
        parts.optimizer.zero_grad()
        loss = parts.forward(batch.to("sim"), target.to("sim"))
        loss.backward()
        parts.optimizer.step()
        total += loss.detach()
        parts.simulator.host(3 * S)
        parts.simulator.step()
    total.item()


PRODUCTS = {"addmm": S // 4, "mm": S // 4}
FAST_HOST = Costs.free(launch=S // 1000, kernel=S // 500, kernels=PRODUCTS)
SLOW_HOST = Costs.free(launch=S // 10, kernel=S // 100)
LATE_FIGURES = Costs.free(launch=S // 10, kernel=S // 100, pinned=Transfer(S // 5, 1e18))
SLOW_COPIES = Costs.free(
    launch=S // 1000, kernel=S // 500, kernels=PRODUCTS, pageable=Transfer(0, 4096), pinned=Transfer(0, 1e9)
)


@dataclass(frozen=True)
class Limited:
    """A loop, the costs of its device, and what is to be found: faults and verdicts. width: of its batches."""

    loop: Callable[..., None]
    costs: Costs
    faults: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()
    width: int = WIDTH


JOBS = {
    "compute": Limited(plain, FAST_HOST, verdicts=frozenset({"compute-bound"})),
    "launch": Limited(plain, SLOW_HOST, verdicts=frozenset({"host-bound"})),
    "two items": Limited(two_items, FAST_HOST, frozenset({"sync-bound"})),
    "an item at the end": Limited(item_at_the_end, FAST_HOST, verdicts=frozenset({"compute-bound"})),
    "an item each 50 steps": Limited(item_now_and_then, FAST_HOST, verdicts=frozenset({"compute-bound"})),
    "a figure of each layer": Limited(activations_logged, LATE_FIGURES, frozenset({"sync-bound"})),
    "metrics": Limited(metrics_on_the_host, FAST_HOST, frozenset({"sync-bound"})),
    "a batch after an item": Limited(
        decoded_after_an_item, FAST_HOST, frozenset({"sync-bound"}), frozenset({"compute-bound"})
    ),
    "answers": Limited(answers, FAST_HOST, frozenset({"sync-bound"})),
    "a branch": Limited(clipped_by_branch, FAST_HOST, frozenset({"sync-bound"})),
    "pageable copies": Limited(copied_wide, SLOW_COPIES, frozenset({"transfer-bound"}), width=2048),
    "pinned copies": Limited(copied_from_pinned_memory, SLOW_COPIES, verdicts=frozenset({"compute-bound"}), width=2048),
    "pinned copies that block": Limited(
        copied_from_pinned_memory_and_waited_for,
        SLOW_COPIES,
        frozenset({"pin-memory-blocking"}),
        frozenset({"compute-bound"}),
        width=2048,
    ),
    "rollouts": Limited(rolled_out, FAST_HOST),
    "sums on the device": Limited(accumulated_on_the_device, FAST_HOST, verdicts=frozenset({"compute-bound"})),
    "a clock around a pass": Limited(
        timed_forward, FAST_HOST, frozenset({"timing-without-sync"}), frozenset({"compute-bound"})
    ),
    "a clock around steps": Limited(timed_steps, FAST_HOST, verdicts=frozenset({"compute-bound"})),
    "evaluations": Limited(evaluated, FAST_HOST, verdicts=frozenset({"compute-bound"})),
}
