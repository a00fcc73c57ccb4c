"""Loops that keep something on the simulated device, or its allocator's cache from its work; and healthy ones.

`grows here` stands beside the lines that keep it.
"""

from __future__ import annotations

from collections import deque

import torch
from trainings.memory import MIB, STEPS, Training

from torchtriage.simulation import Simulator


def features_kept(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    features = []
    for _ in range(60):
        training.step(2)
        with torch.no_grad():
            features.append(training.model(training.batch(1)))  # grows here
    return training


class Recorder:
    def __init__(self) -> None:
        self.seen: dict[int, torch.Tensor] = {}

    def record(self, step: int, output: torch.Tensor) -> None:
        self.seen[step] = output.detach().clone()  # grows here


def outputs_recorded(simulator: Simulator) -> Training:
    training, recorder = Training.of(simulator, layers=2), Recorder()
    for step in range(60):
        training.optimizer.zero_grad()
        output = training.model(training.batch(1))
        output.mean().backward()
        recorder.record(step, output)
        training.update()
    return training


def chained_without_a_name(simulator: Simulator) -> Training:
    """Each tensor holds the one before it; no container grows."""
    training = Training.of(simulator, layers=2)
    last = None
    for _ in range(60):
        training.step(2)
        following = torch.empty(MIB // 4, device="sim")
        following.before = last
        last = following
    return training


def lengths_that_level_off(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    for step in range(80):
        training.step(min(1 + step // 4, 6))
    return training


def batches_that_grow(simulator: Simulator) -> Training:
    """On purpose, to the end; the latest output is still there as a step ends."""
    training = Training.of(simulator, layers=2)
    for step in range(60):
        training.optimizer.zero_grad()
        output = training.model(training.batch(1 + step / 2))
        output.mean().backward()
        training.update()
    return training


def window_of_features(simulator: Simulator) -> Training:
    training, window = Training.of(simulator, layers=2), deque(maxlen=40)
    for _ in range(90):
        training.step(2)
        with torch.no_grad():
            window.append(training.model(training.batch(1)))
    return training


def buffer_allocated_at_once(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    buffer = torch.zeros(60, MIB // 4, device="sim")
    for step in range(60):
        buffer[step] = training.step(2).detach()
    return training


# The allocator's cache


def emptied(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    for _ in range(STEPS):
        training.step(2)
        torch.accelerator.empty_cache()  # empties here
    return training


def emptied_by_the_module_of_the_device(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    for _ in range(STEPS):
        training.step(2)
        torch.get_device_module("sim").empty_cache()  # empties here
    return training


def emptied_after_epochs(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    for step in range(STEPS):
        training.step(2)
        if step % 10 == 9:
            torch.accelerator.empty_cache()
    return training


def emptied_before_training(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=2)
    for _ in range(30):
        torch.empty(4 * MIB, device="sim")
        torch.accelerator.empty_cache()
    for _ in range(STEPS):
        training.step(2)
    return training


# Graphs


def losses_kept(simulator: Simulator) -> Training:
    training, losses = Training.of(simulator, layers=2), []
    for _ in range(STEPS):
        loss = training.step(1)
        losses.append(loss)  # grows here
    return training


def graphs_kept_whole(simulator: Simulator) -> Training:
    training, total = Training.of(simulator, layers=2), torch.zeros((), device="sim")
    for _ in range(STEPS):
        training.optimizer.zero_grad()
        loss = training.loss(training.batch(1))
        total = total + loss  # grows here
        loss.backward(retain_graph=True)
        training.update()
    return training


def losses_detached(simulator: Simulator) -> Training:
    training, losses = Training.of(simulator, layers=2), []
    for _ in range(STEPS):
        loss = training.step(1)
        losses.append(loss.detach())
    return training


def losses_of_recomputed_layers(simulator: Simulator) -> Training:
    training, losses = Training.of(simulator, layers=2, is_recomputed=True), deque(maxlen=4)
    for _ in range(STEPS):
        losses.append(training.step(1))
    return training
