"""Ways to keep a loss for the log: with its graph and without."""

import argparse
from collections import defaultdict, deque

import torch
import torch.nn.functional as F
from torch import nn, optim


def running_sum(model, loader, optimizer, criterion, device):
    model.train()
    running_loss = 0.0
    correct = 0
    for i, (images, labels) in enumerate(loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss * images.size(0)  # expect: graph-retained
        correct += (outputs.argmax(1) == labels).sum()
        if i % 100 == 99:
            print(f"{i}: {running_loss / 100:.3f}")
            running_loss = 0.0
    return correct


def running_sum_of_floats(model, loader, optimizer, criterion):
    running_loss, seen = 0.0, 0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * images.size(0)
        seen += images.size(0)
    return running_loss / seen


def spelled_out(model: nn.Module, loader, optimizer: optim.Optimizer):
    total = torch.zeros(())
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
        total = total + loss  # expect: graph-retained
    return total / len(loader)


def by_name(model: nn.Module, loader, optimizer: optim.Optimizer, epochs: int):
    history = defaultdict(list)
    predictions = []
    for epoch in range(epochs):
        for batch, target in loader:
            optimizer.zero_grad()
            output = model(batch)
            loss = F.cross_entropy(output, target)
            loss.backward()
            optimizer.step()
            history["loss"].append(loss)  # expect: graph-retained
            history["accuracy"].append((output.argmax(1) == target).float().mean())
            predictions.append(output.cpu())  # expect: graph-retained
            history["detached"].append(loss.detach().cpu())
    return history, predictions


def rebound_before_it_is_kept(model, loader, optimizer):
    losses, window, numbers = [], deque(maxlen=100), []
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
        window.append(loss)
        numbers.append(float(loss))
        loss = loss.item()
        losses.append(loss)
    return losses


def without_gradient(model, loader, optimizer):
    total = 0
    for batch, target in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch), target)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            total += loss
            total += F.mse_loss(model(batch), target)
    return total


class Trainer:
    """Keeps everything on itself."""

    def __init__(self, model: nn.Module, lr: float):
        self.model = model
        self.optimizer = optim.AdamW(self.model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.losses = []
        self.metrics = {}

    def train_step(self, batch, target):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(batch), target)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss)  # expect: graph-retained
        self.metrics["loss"] = loss
        return loss.detach()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for batch, target in loader:
                self.train_step(batch, target)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    Trainer(nn.Linear(4, 2), parser.parse_args().lr)
