"""Schedules that move on more than once for each step of their optimizer."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, StepLR


def step(model, batch, optimizer, schedule):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
    schedule.step()


def train(loader, epochs):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = OneCycleLR(optimizer, max_lr=0.5, total_steps=epochs * len(loader))
    for _ in range(epochs):
        for batch in loader:
            step(model, batch, optimizer, schedule)
            schedule.step()  # expect: schedule-exceeded


def train_by_epochs_as_well(loader, epochs):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = LambdaLR(optimizer, lambda step: min(1.0, step / 100))
    for _ in range(epochs):
        for batch in loader:
            step(model, batch, optimizer, schedule)
        schedule.step()


def train_with_two(loader, epochs):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warmup = LambdaLR(optimizer, lambda step: min(1.0, step / 100))
    decay = StepLR(optimizer, 1000)
    for _ in range(epochs):
        for batch in loader:
            step(model, batch, optimizer, warmup)
            decay.step()
