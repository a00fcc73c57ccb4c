"""Loops that run out of the simulated device's memory, or nearly; `ends here` stands beside the lines that do."""

from __future__ import annotations

import contextlib

import torch
from torch import nn
from trainings.memory import MIB, STEPS, Training

from torchtriage.simulation import Simulator


def out_in_forward(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=12)
    for step in range(STEPS):
        batch = training.batch(4 if step == 20 else 1)
        training.optimizer.zero_grad()
        training.loss(batch).backward()  # ends within the model
        training.update()
    return training


def out_at_once(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=12)
    for _ in range(STEPS):
        training.step(4)
    return training


def out_in_backward(simulator: Simulator) -> Training:
    """What the backward pass makes is as large as the activations that it lets go."""
    training = Training.of(simulator, layers=1)
    weight = nn.Parameter(torch.ones(16 * MIB // 4, device="sim"))
    training.optimizer.add_param_group({"params": [weight]})
    for _ in range(STEPS):
        training.optimizer.zero_grad()
        loss = training.loss(training.batch(1)) + (weight * 2).relu().mean()
        loss.backward()  # ends here
        training.update()
    return training


def out_in_the_optimizer(simulator: Simulator) -> Training:
    """The states of Adam are made in its first step."""
    training = Training.of(simulator, layers=4, width=MIB)
    training.optimizer = torch.optim.Adam(training.model.parameters(), 1e-3)
    for _ in range(STEPS):
        training.optimizer.zero_grad()
        training.loss(training.batch(4)).backward()
        training.optimizer.step()  # ends here
        training.simulator.step()
    return training


def out_in_the_loss(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=3)
    for step in range(STEPS):
        training.optimizer.zero_grad()
        output = training.model(training.batch(1))
        if step == 20:
            output = output.repeat(80, 1)  # ends here
        output.mean().backward()
        training.update()
    return training


def out_again_and_again(simulator: Simulator) -> Training:
    """Each fifth batch does not fit, and is trained on in parts."""
    training = Training.of(simulator, layers=6)
    for step in range(2 * STEPS):
        batch = training.batch(8 if step % 5 == 4 else 1)
        for parts in (1, 2, 4, 8):
            training.optimizer.zero_grad()
            try:
                for part in batch.chunk(parts):
                    output = training.model(part)  # ends within the model
                    (output.mean() / parts).backward()
                break
            except torch.OutOfMemoryError:
                output = None
        training.update()
    return training


def out_and_skipped(simulator: Simulator) -> Training:
    """The error is caught far from where it comes from, and the batch is left out."""
    training = Training.of(simulator, layers=6)
    for step in range(2 * STEPS):
        with contextlib.suppress(torch.OutOfMemoryError):
            training.step(8 if step % 4 == 3 else 1)  # ends within the model
    return training


def smaller_until_nothing_is_left(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=6)
    size = 32.0
    while size > 8:
        try:
            training.step(size)
            return training
        except torch.OutOfMemoryError:
            size /= 2
    raise RuntimeError("no batch is small enough")


def largest_batch(simulator: Simulator) -> Training:
    """A search that doubles the batch until it does not fit, a few steps each, and then trains with half of that."""
    training, size = Training.of(simulator, layers=6), 1.0
    try:
        while True:
            for _ in range(2):
                training.step(size)
            size *= 2
    except torch.OutOfMemoryError:
        training.optimizer.zero_grad()
    size /= 4
    for _ in range(STEPS):
        training.step(size)
    return training


def halved_until_it_fits(simulator: Simulator) -> Training:
    """Begins anew with half the batch whenever memory runs out, as find_executable_batch_size of accelerate does."""
    size = 32.0
    while True:
        try:
            training = Training.of(simulator, layers=6)
            for _ in range(STEPS):
                training.step(size)
            return training
        except torch.OutOfMemoryError:
            training = None
            size /= 2


def one_batch_too_large(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=6)
    for step in range(STEPS):
        is_out = False
        try:
            training.step(8 if step == 15 else 1)
        except torch.OutOfMemoryError:
            is_out = True
        if is_out:
            training.step(1)
    return training


def tried_again_in_the_handler(simulator: Simulator) -> Training:
    """As long as the error is handled, its traceback keeps the tensors of the step that failed."""
    training = Training.of(simulator, layers=6)
    for step in range(STEPS):
        try:
            training.step(8 if step == 15 else 1)
        except torch.OutOfMemoryError:
            training.step(4)
    return training


def largest_batch_and_no_training(simulator: Simulator) -> Training:
    """A script that only looks for the largest batch, and tells it."""
    training, size = Training.of(simulator, layers=6), 1.0
    try:
        while True:
            training.step(size)
            size *= 2
    except torch.OutOfMemoryError:
        training.largest = size / 2
    return training


# Others


def out_beside_others(simulator: Simulator) -> Training:
    """Another process has begun to use the device when the training has."""
    training = Training.of(simulator, layers=6)
    for step in range(STEPS):
        if step == 10:
            simulator.occupy(40 * MIB)
        training.step(1 if step < 15 else 4)  # ends within the model
    return training


def beside_others(simulator: Simulator) -> Training:
    simulator.occupy(40 * MIB)
    training = Training.of(simulator, layers=6)
    for _ in range(STEPS):
        training.step(1)
    return training


def out_beside_a_context(simulator: Simulator) -> Training:
    """What the others hold would not have been enough."""
    simulator.occupy(2 * MIB)
    training = Training.of(simulator, layers=6)
    for step in range(STEPS):
        training.step(1 if step < 15 else 6)
    return training


# Holes


def holes(simulator: Simulator) -> Training:
    """Every second of many small tensors is let go: what is left holds each segment."""
    training = Training.of(simulator, layers=1)
    kept = []
    for step in range(STEPS):
        training.step(1)
        if step < 20:
            kept += [torch.empty(4 * MIB + 512, dtype=torch.uint8, device="sim") for _ in range(2)]
        elif step == 20:
            del kept[::2]
            torch.empty(24 * MIB, dtype=torch.uint8, device="sim")  # ends here
    return training


def full_of_tensors(simulator: Simulator) -> Training:
    training = Training.of(simulator, layers=1)
    kept = []
    for _ in range(STEPS):
        training.step(1)
        kept += [torch.empty(12 * MIB, dtype=torch.uint8, device="sim")]  # ends here
    return training


def holes_that_are_used(simulator: Simulator) -> Training:
    """The same holes, and what is asked for fits into them."""
    training = Training.of(simulator, layers=1)
    kept = []
    for step in range(STEPS):
        training.step(1)
        if step < 20:
            kept += [torch.empty(4 * MIB + 512, dtype=torch.uint8, device="sim") for _ in range(2)]
        elif step == 20:
            del kept[::2]
        else:
            kept.append(torch.empty(4 * MIB, dtype=torch.uint8, device="sim"))
    return training
