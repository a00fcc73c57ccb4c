"""Losses that have lost their graph before backward."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.autograd import Variable


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(x)


def wrapped_again(model, loader, optimizer):
    criterion = nn.MSELoss()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss = torch.tensor(loss, requires_grad=True)  # expect: loss-detached
        loss.backward()
        optimizer.step()


def as_a_variable(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.l1_loss(model(x), y)
        loss = Variable(loss, requires_grad=True)  # expect: loss-detached
        loss.backward()
        optimizer.step()


class Agent:
    def __init__(self):
        self.policy = Net()
        self.optimizer = optim.Adam(self.policy.parameters())

    def learn(self, log_probs, rewards):
        total = sum(-p.item() * r for p, r in zip(log_probs, rewards, strict=True))
        policy_loss = torch.tensor([total], requires_grad=True)  # expect: loss-detached
        self.optimizer.zero_grad()
        policy_loss.backward()
        self.optimizer.step()


def by_the_class(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        predicted = model(x).argmax(dim=1).float()  # expect: loss-detached
        loss = F.mse_loss(predicted, y)
        loss.requires_grad = True
        loss.backward()
        optimizer.step()


def made_without_gradients(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            output = model(x)  # expect: loss-detached
        loss = F.mse_loss(output, y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def train_step(model, batch, optimizer, criterion):
    model.train()
    with torch.no_grad():
        out = model(batch["x"])  # expect: loss-detached
    loss = criterion(out, batch["y"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def epoch(model, loader, optimizer):
    criterion = nn.CrossEntropyLoss()
    return [train_step(model, batch, optimizer, criterion) for batch in loader]


@torch.inference_mode()
def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)  # expect: loss-detached


def through_a_helper(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_of(model, x, y)
        loss.backward()
        optimizer.step()


def summed(loader):
    model, criterion = Net(), nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        total = 0.0
        for x, y in batch:
            total += criterion(model(x), y).item()
        total = total / len(batch)
        optimizer.zero_grad()
        torch.tensor(total, requires_grad=True).backward()  # expect: loss-detached
        optimizer.step()
