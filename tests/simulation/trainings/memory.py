"""Loops on the simulated device that fill its memory, with what training needs, or with something else."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from torchtriage.simulation import Simulator

MIB = 2**20
STEPS = 24


class Scale(nn.Module):
    """A layer that computes little and keeps two tensors of the size of its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.weight).relu()  # computes


class Stack(nn.Module):
    """LAYERS of them. is_recomputed: activations are, in the backward pass, three layers at a time."""

    def __init__(self, layers: int, width: int, *, is_recomputed: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Scale(width) for _ in range(layers))
        self.is_recomputed = is_recomputed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.is_recomputed:
            return nn.Sequential(*self.layers)(x)
        for first in range(0, len(self.layers), 3):
            x = checkpoint(nn.Sequential(*self.layers[first : first + 3]), x, use_reentrant=False)
        return x


@dataclass
class Training:
    """A model with its optimizer, both on the device. gradients: by step, the addresses of the gradients after its backward pass."""

    simulator: Simulator
    model: nn.Module
    optimizer: torch.optim.Optimizer
    width: int
    gradients: list[set[int]] = field(default_factory=list)

    @classmethod
    def of(
        cls, simulator: Simulator, layers: int = 4, width: int = 4096, *, momentum: float = 0.9, **options: bool
    ) -> Training:
        torch.manual_seed(0)
        model = Stack(layers, width, **options).to("sim")
        return cls(simulator, model, torch.optim.SGD(model.parameters(), 1e-3, momentum=momentum), width)

    def batch(self, mebibytes: float) -> torch.Tensor:
        return torch.ones(round(mebibytes * MIB / 4 / self.width), self.width).to("sim")

    def loss(self, batch: torch.Tensor) -> torch.Tensor:
        return self.model(batch).mean()

    def step(self, mebibytes: float = 2) -> torch.Tensor:
        """A whole step with a batch of that size; its loss."""
        self.optimizer.zero_grad()
        loss = self.loss(self.batch(mebibytes))
        loss.backward()
        self.update()
        return loss

    def update(self) -> None:
        self.gradients.append({each.grad.data_ptr() for each in self.model.parameters() if each.grad is not None})
        self.optimizer.step()
        self.simulator.step()


def activations(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=7)
    for _ in range(STEPS):
        training.step(4)
    return training


def states(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=7, width=MIB)
    for _ in range(STEPS):
        training.step(4)
    return training


def adam_states(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=4, width=MIB)
    training.optimizer = torch.optim.Adam(training.model.parameters(), 1e-3, foreach=False)
    for _ in range(STEPS):
        training.step(4)
    return training


def accumulated(simulator: Simulator) -> Training:
    """Two backward passes for each step: the second forward pass finds the gradients of the first."""
    training = Training.of(simulator, layers=5, width=MIB, momentum=0.0)
    for _ in range(STEPS):
        training.optimizer.zero_grad()
        for _ in range(2):
            training.loss(training.batch(4)).backward()
        training.update()
    return training


def wide_last_layer(simulator: Simulator) -> Training:
    """The gradient of a large last layer comes first, while the activations of all others are still there."""
    training = Training.of(simulator, layers=7)
    last = nn.Parameter(torch.full((5 * MIB,), 0.5).to("sim"))
    training.model.register_parameter("last", last)
    training.optimizer = torch.optim.SGD(training.model.parameters(), 1e-3)
    for _ in range(STEPS):
        training.optimizer.zero_grad()
        hidden = training.model(training.batch(4))
        (hidden.mean() + (last * hidden.detach().mean()).mean()).backward()
        training.update()
    return training


def warmed_up(simulator: Simulator) -> Training:
    """The first step tries what is fastest, with all the memory that there is."""
    training = Training.of(simulator)
    for step in range(STEPS):
        if step == 0:
            torch.empty(70 * MIB, dtype=torch.uint8, device="sim")
        training.step(4)
    return training


def warmed_up_in_a_pass(simulator: Simulator) -> Training:
    training = Training.of(simulator)

    def search(*_: object) -> None:
        torch.empty(176 * MIB, dtype=torch.uint8, device="sim")

    handle = training.model.register_forward_pre_hook(search)
    for step in range(STEPS):
        training.step(4)
        if step == 0:
            handle.remove()
    return training


def loaded(simulator: Simulator) -> Training:
    """A checkpoint lies beside the model while that is filled from it."""
    training = Training.of(simulator, layers=2, width=5 * MIB, momentum=0.0)
    saved = {name: value.clone() for name, value in training.model.state_dict().items()}
    training.model.load_state_dict(saved)
    del saved
    for each in training.model.parameters():
        each.requires_grad_(requires_grad=False)
    head = nn.Linear(8, 8).to("sim")
    training.optimizer = torch.optim.SGD(head.parameters(), 1e-3)
    for _ in range(STEPS):
        training.optimizer.zero_grad()
        head(torch.rand(8, 8).to("sim")).mean().backward()
        training.update()
    return training


def evaluated(simulator: Simulator) -> Training:
    """Batches of the validation are larger, and leave nothing behind."""
    training = Training.of(simulator)
    for step in range(STEPS):
        training.step(4)
        if step % 10 == 9:
            training.model.eval()
            with torch.no_grad():
                training.model(training.batch(20))
            training.model.train()
    return training


def reserved(simulator: Simulator) -> Training:
    """Batches of other sizes: the allocator keeps blocks of all of them, the tensors need little."""
    training = Training.of(simulator, layers=3)
    for step in range(STEPS):
        training.step((1, 5, 3, 7)[step % 4])
    return training


def data_on_the_device(simulator: Simulator) -> Training:
    """The whole data set lies on the device, as it is meant to."""
    data = torch.rand(60 * MIB // 4 // 4096, 4096).to("sim")
    training = Training.of(simulator, layers=2)
    for step in range(STEPS):
        training.optimizer.zero_grad()
        training.loss(data[64 * (step % 8) : 64 * (step % 8) + 256]).backward()
        training.update()
    return training


def recomputed(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=6, is_recomputed=True)
    for _ in range(STEPS):
        training.step(4)
    return training
