"""Losses that come out of functions together with other things, and where their graph is."""

import torch
import torch.nn.functional as F
from torch import nn


def with_parts(outputs, x, beta):
    logits, mean = outputs
    recon = F.binary_cross_entropy_with_logits(logits, x)
    prior = mean.pow(2).mean()
    total = torch.tensor(recon + beta * prior, requires_grad=True)  # expect: loss-detached
    return total, {"recon": recon.detach(), "prior": prior.detach()}


def with_parts_right(outputs, x, beta=1.0):
    logits, mean = outputs
    recon = F.binary_cross_entropy_with_logits(logits, x)
    prior = mean.pow(2).mean()
    return recon + beta * prior, {"recon": recon.item(), "prior": prior.detach()}


def contrast(one, other, temperature=0.5):
    one, other = F.normalize(one, dim=1).detach(), F.normalize(other, dim=1).detach()  # expect: loss-detached
    logits = one @ other.t() / temperature
    return F.cross_entropy(logits, torch.arange(len(one)))


def contrast_right(one, other, temperature=0.5):
    one, other = F.normalize(one, dim=1), F.normalize(other, dim=1).detach()
    logits = one @ other.t() / temperature
    return F.cross_entropy(logits, torch.arange(len(one)))


def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, other in loader:
        optimizer.zero_grad()
        loss, parts = with_parts(model(x), x, 0.5)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        contrast(model(x), model(other)).backward()
        optimizer.step()
        print(parts)


def train_right(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, other in loader:
        optimizer.zero_grad()
        loss, parts = with_parts_right(model(x), x)
        loss.backward()
        contrast_right(model(x), model(other)).backward()
        optimizer.step()
        print(parts)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 1)

    def forward(self, x):
        return self.fc(x)


model = Model()
optimizer = torch.optim.Adam(model.parameters())
error = nn.MSELoss()


def step(x, y):
    with torch.no_grad():
        out = model(x)  # expect: loss-detached
    loss = error(out, y)
    loss.requires_grad = True
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def step_right(x, y, teacher):
    with torch.no_grad():
        goal = teacher(x)
    loss = error(goal, model(x)) + error(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for _ in range(100):
    batch = torch.randn(4, 10)
    step(batch, batch.sum(1, keepdim=True))


def adversarial(images, labels, victim):
    """The noise is what is trained, and it is a leaf."""
    noise = torch.zeros_like(images, requires_grad=True)
    optimizer = torch.optim.SGD([noise], lr=0.1)
    for _ in range(10):
        optimizer.zero_grad()
        size = noise.pow(2).mean()
        size.backward()
        optimizer.step()
    latent = torch.randn(4, 10)
    latent.requires_grad_(True)
    other = torch.optim.SGD([latent], lr=0.1)
    for _ in range(10):
        other.zero_grad()
        loss = latent.square().mean()
        loss.backward()
        other.step()
    return noise, labels, victim
