"""retain_graph=True: where one backward is all there is, and where a second one follows."""

import torch
import torch.nn.functional as F
from torch import nn, optim


def train(model: nn.Module, loader, optimizer: optim.Optimizer, device, epochs: int):
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            optimizer.zero_grad()
            outputs = model(images)
            loss = criterion(outputs, labels)
            loss.backward(retain_graph=True)  # expect: retain-graph-needless
            optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module, loader, alpha: float):
        self.model = model
        self.loader = loader
        self.alpha = alpha
        self.optimizer = optim.Adam(self.model.parameters())

    def loss(self, x, y):
        out = self.model(x)
        return F.mse_loss(out, y) + self.alpha * out.abs().mean()

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward(retain_graph=True)  # expect: retain-graph-needless
        self.optimizer.step()

    def fit(self):
        for x, y in self.loader:
            self.step(x, y)


def gan(generator: nn.Module, discriminator: nn.Module, loader, opt_g: optim.Optimizer, opt_d: optim.Optimizer):
    for real, _ in loader:
        fake = generator(torch.randn(real.size(0), 64))
        opt_d.zero_grad()
        d_loss = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake)).mean()
        d_loss.backward(retain_graph=True)
        opt_d.step()
        opt_g.zero_grad()
        g_loss = F.softplus(-discriminator(fake)).mean()
        g_loss.backward()
        opt_g.step()


def gan_detached(
    generator: nn.Module, discriminator: nn.Module, loader, opt_g: optim.Optimizer, opt_d: optim.Optimizer
):
    for real, _ in loader:
        fake = generator(torch.randn(real.size(0), 64))
        opt_g.zero_grad()
        F.softplus(-discriminator(fake)).mean().backward()
        opt_g.step()
        opt_d.zero_grad()
        d_loss = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake.detach())).mean()
        d_loss.backward(retain_graph=True)  # expect: retain-graph-needless
        opt_d.step()


def shared_features(encoder: nn.Module, head: nn.Module, x, y, optimizer: optim.Optimizer):
    features = encoder(x)
    for _ in range(5):
        optimizer.zero_grad()
        loss = F.cross_entropy(head(features), y)
        loss.backward(retain_graph=True)
        optimizer.step()


def several_passes_over_a_rollout(log_probs, advantages, optimizer: optim.Optimizer):
    for _ in range(4):
        loss = -(log_probs * advantages).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


def two_tasks(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, (one, two) in loader:
        optimizer.zero_grad()
        shared = model(x)
        F.mse_loss(shared[:, 0], one).backward(retain_graph=True)
        F.mse_loss(shared[:, 1], two).backward()
        optimizer.step()


def many_tasks(model: nn.Module, heads, loader, optimizer: optim.Optimizer):
    for x, targets in loader:
        optimizer.zero_grad()
        shared = model(x)
        for head, target in zip(heads, targets):
            F.mse_loss(head(shared), target).backward(retain_graph=True)
        optimizer.step()


def gradient_norms(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward(retain_graph=True)
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        print(sum(each.norm() for each in slopes))
        optimizer.step()


def carried_memory(model: nn.Module, loader, optimizer: optim.Optimizer):
    memory = None
    for x, y in loader:
        out, memory = model(x, memory)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


class Memory(nn.Module):
    """Remembers what it saw, with its graph."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(8, 8)
        self.state = torch.zeros(8)

    def forward(self, x):
        self.state = torch.tanh(self.cell(x) + self.state)
        return self.state


def stateful(loader):
    model = Memory()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


def one_prior_for_all(flow: nn.Module, embed: nn.Module, loader, optimizer: optim.Optimizer):
    prior = embed(torch.arange(10))
    for x, _ in loader:
        loss = (flow(x) - prior.mean(0)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


def whole_data_at_once(model: nn.Module, inputs, targets, optimizer: optim.Optimizer):
    for _ in range(2000):
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), targets)
        loss.backward(retain_graph=True)  # expect: retain-graph-needless
        optimizer.step()
