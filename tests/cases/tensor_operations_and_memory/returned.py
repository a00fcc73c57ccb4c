"""Losses that a helper returns and its caller keeps, and containers in other forms."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Trainer:
    def __init__(self, model: nn.Module, loader):
        self.model, self.loader = model, loader
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.log = {"train": []}

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss

    def step_detached(self, x, y):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach(), x

    def epoch(self):
        running = 0.0
        for x, y in self.loader:
            loss = self.step(x, y)
            running += loss  # expect: graph-retained
            self.log["train"].append(loss)  # expect: graph-retained
        return running

    def epoch_detached(self):
        running = 0.0
        for x, y in self.loader:
            loss, _ = self.step_detached(x, y)
            running += loss
            self.log["train"].append(loss)
        return running


def train_step(model: nn.Module, x, y, optimizer: optim.Optimizer):
    optimizer.zero_grad()
    output = model(x)
    loss = F.cross_entropy(output, y)
    loss.backward()
    optimizer.step()
    return loss, output.argmax(1)


def train(model: nn.Module, loader, optimizer: optim.Optimizer):
    losses, right, logs = [], 0, {}
    for x, y in loader:
        loss, guess = train_step(model, x, y, optimizer)
        losses.append({"loss": loss, "size": len(x)})  # expect: graph-retained
        logs.setdefault("loss", []).append(loss)  # expect: graph-retained
        right += (guess == y).sum()
    return losses, right, logs


def train_for_numbers(model: nn.Module, loader, optimizer: optim.Optimizer):
    losses, logs = [], {}
    for x, y in loader:
        loss, _ = train_step(model, x, y, optimizer)
        losses.append({"loss": loss.item(), "size": len(x)})
        logs.setdefault("loss", []).append(loss.detach())
    return losses, logs


def penalised(model: nn.Module, loader, optimizer: optim.Optimizer):
    def penalty(output):
        return output.abs().mean()

    for x, y in loader:
        optimizer.zero_grad()
        output = model(x)
        total = F.mse_loss(output, y)
        total += 0.1 * penalty(output)
        total.backward()
        optimizer.step()
    return torch.zeros(())


def smoothed(model: nn.Module, loader, optimizer: optim.Optimizer):
    average, average_of_numbers = 0.0, 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        average = 0.99 * average + 0.01 * loss  # expect: graph-retained
        average_of_numbers = 0.99 * average_of_numbers + 0.01 * loss.item()
    return average, average_of_numbers


def with_figures(model: nn.Module, loader, optimizer: optim.Optimizer):
    """The model's class computes its loss, and figures as numbers."""
    right, outputs = 0.0, []
    for batch in loader:
        optimizer.zero_grad()
        loss, accuracy = model(batch)
        loss.backward()
        optimizer.step()
        right += accuracy
    return right, outputs


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.value, self.total, self.count = 0.0, 0.0, 0

    def update(self, value, size=1):
        self.value = value
        self.total += value * size
        self.count += size


class NumberMeter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, size=1):
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.total += value * size
        self.count += size


def metered(model: nn.Module, loader, optimizer: optim.Optimizer):
    losses, numbers, safe = Meter(), Meter(), NumberMeter()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.update(loss, x.size(0))  # expect: graph-retained
        numbers.update(loss.item(), x.size(0))
        safe.update(loss, x.size(0))
    return losses.total / losses.count, numbers, safe


def metered_anew(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        meter = Meter()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        meter.update(loss)
        print(meter.total)
