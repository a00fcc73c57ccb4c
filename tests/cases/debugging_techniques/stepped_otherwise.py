"""Gradients are applied, and not by optimizer.step() in the same line of execution."""

import torch
from torch import nn
from wrappers import Sharp


class OwnRule(nn.Module):
    def __init__(self, lr=0.1):
        super().__init__()
        self.lr = lr
        self.body = nn.Linear(6, 3, bias=False)
        self.optimizer = torch.optim.SGD(self.parameters(), lr=lr)
        self.loss_fn = nn.CrossEntropyLoss()

    def moved(self, old, grad):
        return old - self.lr * old.abs() * grad

    def adapt(self, logits, target):
        self.optimizer.zero_grad()
        loss = self.loss_fn(logits, target)
        loss.backward()
        with torch.no_grad():
            for _, p in self.named_parameters():
                if p.grad is not None:
                    p.data = self.moved(p.data, p.grad)
        return loss.item()


def now_and_then(net, opt: torch.optim.Optimizer, batches, epoch, every, scaler=None):
    for i, (x, y) in enumerate(batches):
        seen = i + len(batches) * epoch
        loss = nn.functional.mse_loss(net(x), y) / every
        if scaler is not None:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if seen % every == 0:
            if scaler is not None:
                scaler.step(opt)
                scaler.update()
            else:
                opt.step()
            opt.zero_grad()


def twice(model, x, y, criterion, optimizer):
    criterion(model(x), y).backward()
    optimizer.first_step(zero_grad=True)
    criterion(model(x), y).backward()
    optimizer.second_step(zero_grad=True)


def fit(loader, is_sharp):
    model, criterion = nn.Linear(4, 2), nn.CrossEntropyLoss()
    optimizer = Sharp(model.parameters(), torch.optim.Adam) if is_sharp else torch.optim.Adam(model.parameters())
    for x, y in loader:
        if is_sharp:
            twice(model, x, y, criterion, optimizer)
        else:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
