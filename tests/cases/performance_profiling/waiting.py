"""Steps that wait for the device in every turn, and steps that leave their figures there."""

import torch
import torch.nn.functional as F
from torch import nn


def printed(loader):
    device = "cuda"
    net = nn.Linear(4, 2).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(net(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{step} {loss:.3f}")  # expect: printed-every-step


class Trainer:
    def __init__(self, model):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.correct = 0

    def step(self, x, y):
        logits = self.model(x.to(self.device))
        loss = F.cross_entropy(logits, y.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.correct += (logits.argmax(1).cpu() == y).sum()  # expect: sync-bound
        return loss

    def fit(self, loader):
        for x, y in loader:
            self.step(x, y)


def left_there(loader):
    net = nn.Linear(4, 2).cuda()
    optimizer = torch.optim.Adam(net.parameters())
    total = torch.zeros((), device="cuda")
    for step, (x, y) in enumerate(loader):
        weight = y.float().mean().item()  # of a batch that is on the host
        loss = weight * F.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        if step % 50 == 0:
            print(step, loss.item())
        print("seen", step, x.size(0))
    return total.item()


def on_the_host(loader):
    net = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
