"""Epochs that are one step, small batches of one step, and what a step reads for each parameter."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def fit(graph, epochs):
    """The whole graph is one batch: the figures of an epoch are read once."""
    model, graph = nn.Linear(8, 3).to("cuda"), graph.to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        loss = turn(model, graph, optimizer)
        print(epoch, f"{loss:.4f}", *scores(model, graph))


def turn(model, graph, optimizer):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(graph.x)[graph.mask], graph.y[graph.mask])
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def scores(model, graph):
    right = model(graph.x).argmax(1) == graph.y
    return [right[mask].float().mean().item() for mask in (graph.mask, ~graph.mask)]


class Regression:
    def __init__(self, x, y):
        self.x, self.y = x.cuda(), y.cuda()
        self.net = nn.Linear(4, 1).cuda()
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def run(self):
        for epoch in range(300):
            out = self.net(torch.cat([self.x, self.x.square()], dim=1))
            loss = F.mse_loss(out, self.y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            print(epoch, loss.item(), out.mean().item())


def accumulated(stream, model, parts=8):
    """One number for each small batch."""
    model = model.cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(1000):
        running = 0.0
        for _ in range(parts):
            ids = next(stream).cuda(non_blocking=True)
            loss = F.cross_entropy(model(ids), ids) / parts
            loss.backward()
            running += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        if step % 20 == 0:
            print(step, running)


def points():
    net = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    largest = 0.0
    for _ in range(20000):
        optimizer.zero_grad()
        at = torch.rand(4096, 2, device="cuda")  # others in every step
        net(at).square().mean().backward()
        largest = max(largest, length(net))
        optimizer.step()
    return largest


def length(net):
    return math.sqrt(sum(p.grad.pow(2).sum().item() for p in net.parameters()))  # expect: sync-bound


def watched(model, batches, optimizer, device="cuda"):
    means = []
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        for name, p in model.named_parameters():
            if p.grad is not None:
                means.append((name, abs(p.grad.cpu().numpy()).mean()))  # expect: sync-bound
        optimizer.step()
    return means


def watched_when_asked(model, batches, optimizer, watch, device="cuda"):
    means = []
    for x, y in batches:
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(device)), y.to(device)).backward()
        for p in model.parameters():
            if watch and p.grad is not None:
                means.append(abs(p.grad.cpu().numpy()).mean())
        optimizer.step()
    return means
