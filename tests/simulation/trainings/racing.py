"""Loops that use memory before a copy has ended, and others that look like them and wait.

A batch takes two seconds to copy, other operations next to nothing: who does not wait for a copy comes before its end.
`races here` stands beside the lines that use memory too early, and beside copies for which no stream waits.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchtriage.simulation import Costs, Simulator, Transfer

S = 1_000_000_000
WIDTH, BATCH = 8, 4
COSTS = Costs.free(launch=S // 1000, kernel=S // 100, pinned=Transfer(0, 64), pageable=Transfer(S, 1e18))


@dataclass
class Parts:
    """What every loop needs. staging: pinned memory for one batch."""

    simulator: Simulator
    model: nn.Module
    optimizer: torch.optim.Optimizer
    steps: int
    staging: torch.Tensor
    history: list[Any]

    @classmethod
    def of(cls, simulator: Simulator, steps: int) -> Parts:
        torch.manual_seed(0)
        model = nn.Linear(WIDTH, WIDTH).to("sim")
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        return cls(simulator, model, optimizer, steps, torch.zeros(BATCH, WIDTH, pin_memory=True), [])

    def batches(self) -> Iterator[torch.Tensor]:
        """On the host, drawn anew for each step, which ends with it."""
        for _ in range(self.steps):
            yield torch.tensor([[random.random() for _ in range(WIDTH)] for _ in range(BATCH)])
            self.simulator.step()

    def pinned(self) -> Iterator[torch.Tensor]:
        """The same in pinned memory, from a host that takes longer than the device."""
        for batch in self.batches():
            yield batch.pin_memory()
            self.simulator.host(5 * S)

    def learn(self, batch: torch.Tensor) -> torch.Tensor:
        """One step with a BATCH on the device; the outputs."""
        self.optimizer.zero_grad()
        outputs: torch.Tensor = self.model(batch)
        outputs.square().mean().backward()
        self.optimizer.step()
        return outputs.detach()

    def outputs(self) -> Iterator[torch.Tensor]:
        for batch in self.batches():
            yield self.learn(batch.to("sim"))


# Numbers that are read too early


def read_at_once(parts: Parts) -> None:
    for outputs in parts.outputs():
        seen = outputs.to("cpu", non_blocking=True)
        parts.history.append(seen.mean().item())  # races here


def read_by_numpy(parts: Parts) -> None:
    for outputs in parts.outputs():
        parts.history.append(outputs.to("cpu", non_blocking=True).numpy().sum())  # races here


def read_from_a_buffer(parts: Parts) -> None:
    shown = torch.zeros((), pin_memory=True)
    for outputs in parts.outputs():
        shown.copy_(outputs.abs().max(), non_blocking=True)
        if shown > 1e9:  # races here
            raise ValueError("the outputs explode")


def cast_at_once(parts: Parts) -> None:
    for outputs in parts.outputs():
        seen = outputs.to("cpu", non_blocking=True)
        parts.history.append(seen.double())  # races here


def saved_at_once(parts: Parts) -> None:
    for _ in parts.outputs():
        state = {name: each.to("cpu", non_blocking=True) for name, each in parts.model.state_dict().items()}
        torch.save({"model": state}, io.BytesIO())  # races here


def waited_for_the_wrong_stream(parts: Parts) -> None:
    side = torch.sim.Stream()
    for outputs in parts.outputs():
        side.wait_stream(torch.sim.current_stream())
        with torch.sim.stream(side):
            seen = outputs.to("cpu", non_blocking=True)
        torch.sim.current_stream().synchronize()
        parts.history.append(seen.tolist())  # races here


def waited_too_soon(parts: Parts) -> None:
    done = torch.sim.Event()
    for outputs in parts.outputs():
        done.record()
        seen = outputs.to("cpu", non_blocking=True)
        done.synchronize()
        parts.history.append(float(seen[0, 0]))  # races here


# Memory that is overwritten too early


def staged_again(parts: Parts) -> None:
    for batch in parts.batches():
        parts.staging.copy_(batch)  # races here
        parts.learn(parts.staging.to("sim", non_blocking=True))


def row_set_again(parts: Parts) -> None:
    for batch in parts.batches():
        inputs = parts.staging.to("sim", non_blocking=True)
        parts.staging[0] = batch[0]  # races here
        parts.learn(inputs)


def cleared_at_once(parts: Parts) -> None:
    on_device = torch.empty(BATCH, WIDTH, device="sim")
    for batch in parts.batches():
        torch.sim.synchronize()
        parts.staging.copy_(batch)
        on_device.copy_(parts.staging, non_blocking=True)
        parts.staging.zero_()  # races here
        parts.learn(on_device)


def drawn_in_place(parts: Parts) -> None:
    for _ in parts.batches():
        parts.staging.normal_()  # races here
        parts.learn(parts.staging.to("sim", non_blocking=True))


# Copies of another stream, for which none waits


def copied_beside(parts: Parts) -> None:
    side = torch.sim.Stream()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)  # races here
        parts.learn(inputs)


def recorded_and_not_waited_for(parts: Parts) -> None:
    """`record_stream` keeps memory, and orders nothing."""
    side = torch.sim.Stream()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)  # races here
        inputs.record_stream(torch.sim.current_stream())
        parts.learn(inputs)


def waited_in_the_wrong_direction(parts: Parts) -> None:
    side = torch.sim.Stream()
    for batch in parts.pinned():
        side.wait_stream(torch.sim.current_stream())
        with side:
            inputs = batch.to("sim", non_blocking=True)  # races here
        parts.learn(inputs)


def waited_before_the_copy(parts: Parts) -> None:
    side, done = torch.sim.Stream(), torch.sim.Event()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            done.record()
            inputs = batch.to("sim", non_blocking=True)  # races here
        done.wait()
        parts.learn(inputs)


def prepared_beside(parts: Parts) -> None:
    """A prefetcher that prepares the batch in its stream as well."""
    side = torch.sim.Stream()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)  # races here
            inputs = (inputs.half().float() - 0.5) / 0.25
        parts.learn(inputs)


# Look-alikes


def event_waited_for(parts: Parts) -> None:
    done = torch.sim.Event()
    for outputs in parts.outputs():
        seen = outputs.to("cpu", non_blocking=True)
        done.record()
        done.synchronize()
        parts.history.append(seen.mean().item())


def stream_waited_for(parts: Parts) -> None:
    side = torch.sim.Stream()
    for outputs in parts.outputs():
        side.wait_stream(torch.sim.current_stream())
        with torch.sim.stream(side):
            seen = outputs.to("cpu", non_blocking=True)
        side.synchronize()
        parts.history.append(seen.tolist())


def device_waited_for(parts: Parts) -> None:
    for outputs in parts.outputs():
        views = [each.to("cpu", non_blocking=True).numpy() for each in (outputs, outputs.sum())]
        torch.accelerator.synchronize()
        parts.history.append(sum(each.sum() for each in views))


def shown_as_it_is(parts: Parts) -> None:
    """What has the type already is not read."""
    for outputs in parts.outputs():
        seen = outputs.to("cpu", non_blocking=True).float().view(-1)
        torch.sim.synchronize()
        parts.history.append(seen.tolist())


def converted_on_the_way(parts: Parts) -> None:
    """The host may convert the batch, into memory of its own, before the copy to the device begins."""
    for batch in parts.batches():
        inputs = parts.staging.to("sim", torch.float64, non_blocking=True)
        parts.staging.copy_(batch)
        parts.learn(inputs.float())


def number_waited_for(parts: Parts) -> None:
    for outputs in parts.outputs():
        seen = outputs.to("cpu", non_blocking=True)
        outputs.sum().item()
        parts.history.append(seen.max().item())


def polled(parts: Parts) -> None:
    """Figures of earlier steps are read once they have come."""
    waiting: list[Any] = []
    for outputs in parts.outputs():
        seen = outputs.to("cpu", non_blocking=True)
        waiting.append((torch.sim.current_stream().record_event(), seen))
        while waiting and waiting[0][0].query():
            parts.history.append(waiting.pop(0)[1].mean().item())


def saved_when_it_has_come(parts: Parts) -> None:
    for _ in parts.outputs():
        state = {name: each.to("cpu", non_blocking=True) for name, each in parts.model.state_dict().items()}
        torch.sim.current_stream().synchronize()
        torch.save({"model": state}, io.BytesIO())


def pageable_buffer(parts: Parts) -> None:
    """Into memory that is not pinned a copy blocks, whatever is asked."""
    shown = torch.zeros(BATCH, WIDTH)
    for outputs in parts.outputs():
        shown.copy_(outputs, non_blocking=True)
        parts.history.append(shown.mean().item())


def other_row_read(parts: Parts) -> None:
    """Rows of one buffer: each is read in the step after, when a number has been waited for."""
    for number, outputs in enumerate(parts.outputs()):
        parts.staging[number % BATCH].copy_(outputs[0], non_blocking=True)
        parts.history.append(parts.staging[(number - 1) % BATCH].tolist())
        outputs.sum().item()


def columns_taken_apart(parts: Parts) -> None:
    """CUDA copies into memory of its own, waits, and lets the host write the column: when the call returns it is there."""
    for outputs in parts.outputs():
        parts.staging[:, 0].copy_(outputs[:, 0].contiguous(), non_blocking=True)
        parts.history.append(parts.staging[:, :2].tolist())
        torch.sim.synchronize()


def read_on_its_way_to_the_device(parts: Parts) -> None:
    """Both may read the same memory."""
    for batch in parts.batches():
        torch.sim.synchronize()
        parts.staging.copy_(batch)
        inputs = parts.staging.to("sim", non_blocking=True)
        parts.history.append(parts.staging.sum().item())
        seen = parts.learn(inputs).to("cpu", non_blocking=True)
        torch.sim.synchronize()
        parts.history.append(seen.sum().item())


def figure(outputs: torch.Tensor) -> float:
    array = outputs.to("cpu", non_blocking=True).numpy()
    torch.sim.synchronize()
    return float(array.sum())


def read_by_numpy_when_it_has_come(parts: Parts) -> None:
    for outputs in parts.outputs():
        parts.history.append(figure(outputs))


def sent_back(parts: Parts) -> None:
    """What comes from the device goes there again: both copies are in one stream."""
    for outputs in parts.outputs():
        parts.staging.copy_(outputs, non_blocking=True)
        again = parts.staging.to("sim", non_blocking=True)
        parts.staging.copy_(again, non_blocking=True)


def staged_by_turns(parts: Parts) -> None:
    """Each of two buffers is filled when its event says that it has been read."""
    buffers = [(torch.zeros(BATCH, WIDTH, pin_memory=True), torch.sim.Event()) for _ in range(2)]
    for number, batch in enumerate(parts.batches()):
        staging, read = buffers[number % 2]
        read.synchronize()
        staging.copy_(batch)
        inputs = staging.to("sim", non_blocking=True)
        read.record()
        parts.learn(inputs)


def loaded_pinned(parts: Parts) -> None:
    data = torch.utils.data.TensorDataset(torch.cat([*parts.batches()]))
    for (batch,) in torch.utils.data.DataLoader(data, BATCH, pin_memory=True):
        inputs = batch.to("sim", non_blocking=True)
        batch.mul(2).zero_()
        parts.learn(inputs)


def dropped_under_way(parts: Parts) -> None:
    """Memory of a copy under way is given to nobody, and the host may go on with other tensors."""
    for batch in parts.batches():
        inputs = batch.pin_memory().to("sim", non_blocking=True)
        batch.zero_().add_(1.0)
        parts.learn(inputs)


def prefetched(parts: Parts) -> None:
    side = torch.sim.Stream()
    inputs = torch.zeros(BATCH, WIDTH).to("sim")
    for batch in parts.pinned():
        with torch.sim.stream(side):
            following = batch.to("sim", non_blocking=True)
        parts.learn(inputs)
        torch.sim.current_stream().wait_stream(side)
        inputs = following


def prepared_and_waited_for(parts: Parts) -> None:
    side = torch.sim.Stream()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)
            inputs = (inputs.half().float() - 0.5) / 0.25
        torch.sim.current_stream().wait_stream(side)
        parts.learn(inputs)


def prepared_behind(parts: Parts) -> None:
    """What the stream that computes makes of the copy comes after the copy, for which it has waited."""
    side = torch.sim.Stream()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)
        torch.sim.current_stream().wait_stream(side)
        parts.learn((inputs - 0.5) / 0.25)


def waited_by_event(parts: Parts) -> None:
    side, done = torch.sim.Stream(), torch.sim.Event()
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)
            done.record()
        done.wait()
        parts.learn(inputs)


def waited_on_the_host(parts: Parts) -> None:
    side = torch.sim.Stream()
    for batch in parts.pinned():
        with side:
            inputs = batch.to("sim", non_blocking=True)
        side.synchronize()
        parts.learn(inputs)


class Waiting(nn.Module):
    """Waits for its input itself."""

    def __init__(self, layer: nn.Module, side: torch.sim.Stream) -> None:
        super().__init__()
        self.layer, self.side = layer, side

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.side.synchronize()
        outputs: torch.Tensor = self.layer(inputs)
        return outputs


def waited_in_forward(parts: Parts) -> None:
    side = torch.sim.Stream()
    parts.model = Waiting(parts.model, side)
    for batch in parts.pinned():
        with torch.sim.stream(side):
            inputs = batch.to("sim", non_blocking=True)
        parts.learn(inputs)


def trained_beside(parts: Parts) -> None:
    """All of the training is in a stream of its own."""
    with torch.sim.stream(torch.sim.Stream()):
        for batch in parts.batches():
            parts.learn(batch.pin_memory().to("sim", non_blocking=True))


def logged_beside(parts: Parts) -> None:
    """Figures are copied in another stream, and read when they have come."""
    side, waiting = torch.sim.Stream(), list[Any]()
    for outputs in parts.outputs():
        side.wait_stream(torch.sim.current_stream())
        with torch.sim.stream(side):
            seen = outputs.to("cpu", non_blocking=True)
            waiting.append((side.record_event(), seen))
        outputs.record_stream(side)
        while waiting and waiting[0][0].query():
            parts.history.append(waiting.pop(0)[1].sum().item())


Loop = Callable[[Parts], None]
READ_EARLY: tuple[Loop, ...] = (
    read_at_once, read_by_numpy, read_from_a_buffer, cast_at_once, saved_at_once, waited_for_the_wrong_stream, waited_too_soon,
)  # fmt: skip
OVERWRITTEN_EARLY: tuple[Loop, ...] = (staged_again, row_set_again, cleared_at_once, drawn_in_place)
UNORDERED: tuple[Loop, ...] = (
    copied_beside, recorded_and_not_waited_for, waited_in_the_wrong_direction, waited_before_the_copy,
    prepared_beside,
)  # fmt: skip
HEALTHY: tuple[Loop, ...] = (
    event_waited_for, stream_waited_for, device_waited_for, shown_as_it_is, converted_on_the_way, number_waited_for, polled, saved_when_it_has_come,
    pageable_buffer, other_row_read, columns_taken_apart, read_on_its_way_to_the_device, read_by_numpy_when_it_has_come, sent_back, staged_by_turns, loaded_pinned,
    dropped_under_way, prefetched, prepared_and_waited_for, prepared_behind, waited_by_event, waited_on_the_host, waited_in_forward, trained_beside,
    logged_beside,
)  # fmt: skip
