"""Functions that ask the model whether it trains, and those that choose a context."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def step_all(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = F.mse_loss(model(x), y)  # expect: eval-builds-graph
        if model.training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def with_context(model, loader, optimizer=None):
    context = torch.enable_grad() if optimizer else torch.no_grad()
    with context:
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            if optimizer:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def main(a, b):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model.train()
        step_all(model, a, optimizer)
        model.eval()
        step_all(model, b, optimizer)
        with_context(model, a, optimizer)
        with_context(model, b)


def hits(model, data):
    right = 0
    for x, y in data:
        right += (model(x).argmax(1) == y).sum().item()  # expect: eval-builds-graph
    return right


def hits_without(model, data):
    right = 0
    with torch.no_grad():
        for x, y in data:
            right += (model(x).argmax(1) == y).sum().item()
    return right


def saliency(model, data):
    found = []
    for x, y in data:
        x.requires_grad_(True)
        model(x)[:, y].sum().backward()
        found.append(x.grad)
    return found


def after_eval(data):
    model = nn.Linear(4, 2)
    model.eval()
    hits(model, data)
    hits_without(model, data)
    saliency(model, data)
