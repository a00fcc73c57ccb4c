"""Gradients that no optimizer applies."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        return self.fc(x.flatten(1))


def train(model, loader, optimizer, device):
    model.train()
    running = 0.0
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: step-missing
        running += loss.item()
    return running / len(loader)


def main(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    for epoch in range(10):
        print({"step": epoch, "loss": train(model, loader, optimizer, "cpu")})
        scheduler.step()


def gan(generator: nn.Module, discriminator: nn.Module, loader):
    opt_g = optim.Adam(generator.parameters(), lr=2e-4)
    opt_d = optim.Adam(discriminator.parameters(), lr=2e-4)
    for real in loader:
        fake = generator(torch.randn(len(real), 64))
        opt_d.zero_grad()
        loss_d = F.softplus(discriminator(fake.detach())).mean() + F.softplus(-discriminator(real)).mean()
        loss_d.backward()  # expect: step-missing
        opt_g.zero_grad()
        F.softplus(-discriminator(fake)).mean().backward()
        opt_g.step()


def forgotten_altogether(loader):
    model = Net()
    optimizer = optim.Adam(model.parameters())
    for x, y in loader:
        output = model(x)
        F.cross_entropy(output, y).backward()  # expect: step-missing
    print(optimizer)


class Trainer:
    def __init__(self, model: nn.Module, loader):
        self.model, self.loader = model, loader
        self.optimizer = optim.AdamW(model.parameters())
        self.scaler = GradScaler("cuda")

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda"):
                loss = F.mse_loss(self.model(x), y)
            self.scaler.scale(loss).backward()  # expect: step-missing
            self.scaler.update()
