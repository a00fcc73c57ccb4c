"""The peak of memory that a rehearsal tells, by holder, against what is worked out by hand for six trainings.

By hand: bytes of parameters, gradients and optimizer states, plus what backward needs of the forward pass, each tensor in
blocks of 512 bytes. A ReLU keeps its output, a linear layer and a convolution their input, a batch norm its input and
its statistics; a cross entropy keeps the logarithms of the probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from torchtriage.examine.run.job import begin
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.reader.load import read
from torchtriage.simulation import Simulator
from torchtriage.simulation.cards import parse_card
from torchtriage.simulation.rehearsal import Rehearsal

CLOSE = 0.1
STEPS = 3


def blocks(*shape: int, size: int = 4) -> int:
    """Bytes of a tensor of that SHAPE in the allocator's blocks."""
    count = size
    for each in shape:
        count *= each
    return max(-(-count // 512), 1) * 512


@dataclass(frozen=True)
class Training:
    """A training, and what stands at its peak by hand: bytes of each holder."""

    model: Callable[[], nn.Module]
    optimizer: Callable[[Any], torch.optim.Optimizer]
    batch: tuple[int, ...]
    parameters: int
    gradients: int
    states: int
    other: int
    targets: tuple[int, ...] = ()
    classes: int = 0


def stacked(width: int, depth: int) -> nn.Module:
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers)


def of_linear(width: int, depth: int) -> int:
    return depth * (blocks(width, width) + blocks(width))


def convolutional(channels: int, depth: int) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, channels, 3, padding=1, bias=False)]
    for at in range(depth):
        layers += [nn.Conv2d(channels, channels, 3, padding=1, bias=False)] if at else []
        layers += [nn.BatchNorm2d(channels), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class Words(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(words, width), nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(tokens)).flatten(0, 1)


WIDE, DEEP = 1024, 3  # parameters are most of it
BATCH, NARROW, LAYERS = 4096, 128, 12  # activations are
PIXELS, CHANNELS, CONVOLUTIONS = (8, 32, 32), 32, 6
WORDS, EMBEDDED, TOKENS = 4000, 32, (4, 128)

weights = of_linear(WIDE, DEEP)
few = of_linear(NARROW, LAYERS)
image = blocks(PIXELS[0], CHANNELS, *PIXELS[1:])
logits = blocks(TOKENS[0] * TOKENS[1], WORDS)
of_words = 2 * blocks(WORDS, EMBEDDED)
filters = blocks(CHANNELS, 3, 3, 3) + (CONVOLUTIONS - 1) * blocks(CHANNELS, CHANNELS, 3, 3) + CONVOLUTIONS * 1024
hidden = blocks(BATCH, NARROW)

TRAININGS = {
    # While the optimizer steps: all gradients are there, and the foreach implementation makes roots of one state.
    "AdamW": Training(
        lambda: stacked(WIDE, DEEP), torch.optim.AdamW, (8, WIDE), weights, weights, 2 * weights, weights
    ),
    "fused AdamW": Training(
        lambda: stacked(WIDE, DEEP),
        lambda parameters: torch.optim.AdamW(parameters, fused=True),
        (8, WIDE),
        weights,
        weights,
        2 * weights,
        0,
    ),
    "SGD with momentum": Training(
        lambda: stacked(WIDE, DEEP),
        lambda parameters: torch.optim.SGD(parameters, 1e-3, momentum=0.9),
        (8, WIDE),
        weights,
        weights,
        weights,
        0,
    ),
    # When backward begins: inputs of all layers, the gradient of the output and the one that is computed of it.
    "many activations": Training(
        lambda: stacked(NARROW, LAYERS),
        lambda parameters: torch.optim.SGD(parameters, 1e-3),
        (BATCH, NARROW),
        few,
        0,
        0,
        (LAYERS + 1 + 2) * hidden,
    ),
    # The same of images: of each layer what the batch norm was given, and what the ReLU made of its output in place.
    "convolutions": Training(
        lambda: convolutional(CHANNELS, CONVOLUTIONS),
        lambda parameters: torch.optim.SGD(parameters, 1e-3),
        (PIXELS[0], 3, *PIXELS[1:]),
        filters,
        0,
        0,
        blocks(PIXELS[0], 3, *PIXELS[1:]) + (2 * CONVOLUTIONS + 2) * image,
    ),
    # The logits, the logarithms, and the gradients of both.
    "many words": Training(
        lambda: Words(WORDS, EMBEDDED),
        lambda parameters: torch.optim.SGD(parameters, 1e-3),
        TOKENS,
        of_words,
        0,
        0,
        4 * logits,
        targets=(TOKENS[0] * TOKENS[1],),
        classes=WORDS,
    ),
}


@pytest.fixture(scope="module")
def rehearsal(library_cache: None) -> Rehearsal:
    return Rehearsal(parse_card("2x8GiB"))


@pytest.fixture
def peak(simulator: Simulator, rehearsal: Rehearsal, tmp_path: Path) -> Callable[[Training], dict[str, Any]]:
    def run(training: Training) -> dict[str, Any]:
        rehearsal.simulator.reset()
        job = begin(str(tmp_path), [], rehearsal=rehearsal)
        train(training)
        job.leave("exit")
        job.tidy()
        found: dict[str, Any] = measurements(read(tmp_path))["rehearsal"]["peak"]
        return found

    return run


def train(training: Training) -> None:
    model = training.model().cuda()
    optimizer = training.optimizer(model.parameters())
    for _ in range(STEPS):
        if training.classes:
            inputs = torch.randint(training.classes, training.batch, device="cuda")
            targets = torch.randint(training.classes, training.targets, device="cuda")
        else:
            inputs, targets = torch.randn(training.batch, device="cuda"), None
        outputs = model(inputs)
        loss = outputs.mean() if targets is None else nn.functional.cross_entropy(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del inputs, outputs, loss


@pytest.mark.parametrize("name", TRAININGS)
def test_the_peak_is_what_is_worked_out_by_hand(peak: Callable[[Training], dict[str, Any]], name: str) -> None:
    training = TRAININGS[name]
    found = peak(training)
    holders = found["holders"]
    by_hand = training.parameters + training.gradients + training.states + training.other
    assert found["bytes"] == pytest.approx(by_hand, rel=CLOSE), holders
    assert sum(holders.values()) == found["bytes"]
    assert holders["parameters"] == pytest.approx(training.parameters, rel=CLOSE)
    assert holders["optimizer_states"] == pytest.approx(training.states, rel=CLOSE, abs=64 * 1024)
    assert holders["gradients"] == pytest.approx(training.gradients, rel=CLOSE, abs=CLOSE * by_hand)
    assert holders["other"] == pytest.approx(training.other, rel=CLOSE, abs=CLOSE * by_hand)
