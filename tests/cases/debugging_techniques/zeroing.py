"""Loops that never clear their gradients."""

import torch
import torch.nn.functional as F
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        return self.fc(x.flatten(1))


def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        output = model(data)
        loss = F.nll_loss(F.log_softmax(output, dim=1), target)
        loss.backward()  # expect: gradients-not-zeroed
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(epoch, loss.item())


def cleared_once(model: nn.Module, loader, epochs):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    optimizer.zero_grad()
    for _ in range(epochs):
        for x, y in loader:
            F.cross_entropy(model(x), y).backward()  # expect: gradients-not-zeroed
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def by_halves(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")

    def step(x, y):
        with torch.autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()  # expect: gradients-not-zeroed
        scaler.step(optimizer)
        scaler.update()

    for x, y in loader:
        step(x, y)


class SelfTaught(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 1)
        self.optimizer = optim.Adam(self.parameters())

    def forward(self, x):
        return self.fc(x)

    def fit(self, loader):
        self.train()
        for x, y in loader:
            loss = F.mse_loss(self(x), y)
            loss.backward()  # expect: gradients-not-zeroed
            self.optimizer.step()


def main(loader):
    model = Net()
    optimizer = optim.Adadelta(model.parameters())
    for epoch in range(14):
        train(None, model, "cpu", loader, optimizer, epoch)
