"""Evaluation with a graph that nobody needs, and without one."""

import argparse
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader


def evaluate(model: nn.Module, loader: DataLoader, criterion, device):
    model.eval()
    total, right = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)  # expect: eval-builds-graph
        total += criterion(logits, labels).item()
        right += (logits.argmax(dim=1) == labels).sum().item()
    return total / len(loader), right / len(loader.dataset)


def validate(net, val_loader):
    """Its caller has called eval()."""
    right = 0
    for images, labels in val_loader:
        right += (net(images).argmax(1) == labels).sum().item()  # expect: eval-builds-graph
    return right


def epochs(net: nn.Module, train_loader, val_loader, optimizer: optim.Optimizer, scheduler):
    for epoch in range(10):
        net.train()
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
        net.eval()
        worst = 0.0
        for images, labels in val_loader:
            loss = F.cross_entropy(net(images), labels)  # expect: eval-builds-graph
            worst = max(worst, loss.item())
        scheduler.step(worst)
        print(epoch, validate(net, val_loader))


class Trainer:
    def __init__(self, model: nn.Module, loaders, device):
        self.model = model.to(device)
        self.optimizer = optim.Adam(self.model.parameters())
        self.train_loader, self.val_loader = loaders

    def run_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    def score(self):
        self.model.eval()
        errors = []
        for x, y in self.val_loader:
            prediction = self.model(x)  # expect: eval-builds-graph
            errors.append(F.l1_loss(prediction, y).item())
        return sum(errors) / len(errors)

    def score_quietly(self):
        self.model.eval()
        with torch.inference_mode():
            return sum(F.l1_loss(self.model(x), y).item() for x, y in self.val_loader)

    def fit(self, count):
        for _ in range(count):
            self.run_epoch()
            print(self.score())


class Graphs:
    """The whole graph at once: no loop over batches, but one over epochs."""

    def __init__(self, model: nn.Module, data):
        self.model, self.data = model, data

    def test(self):
        self.model.eval()
        scores = self.model(self.data.x, self.data.edges)  # expect: eval-builds-graph
        return (scores.argmax(-1) == self.data.y).float().mean().item()

    def fit(self):
        for epoch in range(200):
            print(epoch, self.test())


def in_one_expression(mixer: nn.Module, dataset):
    loader = DataLoader(dataset)
    mixer.train(False)
    right = sum((mixer(x).argmax(1) == y).sum().item() for x, y in loader)  # expect: eval-builds-graph
    return right / len(dataset)


def whole_batches(net: nn.Module, x, y, x_val, y_val, optimizer: optim.Optimizer):
    for step in range(1000):
        net.train()
        optimizer.zero_grad()
        F.mse_loss(net(x), y).backward()
        optimizer.step()
        if step % 100 == 0:
            net.eval()
            print(F.mse_loss(net(x_val), y_val).item())  # expect: eval-builds-graph


@torch.no_grad()
def decorated(model: nn.Module, loader):
    model.eval()
    return [model(x).argmax(1) for x, _ in loader]


def under_a_condition(model: nn.Module, loader, keep: bool):
    model.eval()
    with nullcontext() if keep else torch.no_grad():
        for x, _ in loader:
            print(model(x).mean())


def one_function_for_both(model: nn.Module, loader, optimizer=None):
    model.train(optimizer is not None)
    for x, y in loader:
        with torch.set_grad_enabled(optimizer is not None):
            loss = F.cross_entropy(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def inside(model: nn.Module, loader):
    model.eval()
    for x, y in loader:
        print(F.cross_entropy(model(x), y))


def outside(model: nn.Module, loader):
    with torch.no_grad():
        inside(model, loader)


def robust(model: nn.Module, test_loader, eps: float):
    """An attack wants the gradient of the input."""
    model.eval()
    right = 0
    for x, y in test_loader:
        x.requires_grad_(True)
        loss = F.cross_entropy(model(x), y)
        (slope,) = torch.autograd.grad(loss, x)
        with torch.no_grad():
            right += (model(x + eps * slope.sign()).argmax(1) == y).sum().item()
    return right


def with_frozen_statistics(model: nn.Module, train_loader, optimizer: optim.Optimizer):
    """Fine-tuning in eval mode, so that the batch norms keep their statistics."""
    model.eval()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


def distil(student: nn.Module, teacher: nn.Module, loader, optimizer: optim.Optimizer):
    teacher.eval()
    student.train()
    for x, _ in loader:
        with torch.no_grad():
            wanted = teacher(x)
        optimizer.zero_grad()
        F.mse_loss(student(x), wanted).backward()
        optimizer.step()


def collect(model: nn.Module, loader):
    """numpy() would raise if there were a graph: somebody else has switched it off."""
    model.eval()
    return [model(x).cpu().numpy() for x, _ in loader]


def frozen(backbone: nn.Module, loader):
    backbone.eval()
    for parameter in backbone.parameters():
        parameter.requires_grad = False
    return [backbone(x) for x, _ in loader]


def once(model: nn.Module, path):
    model.load_state_dict(torch.load(path))
    model.eval()
    print(model(torch.ones(1, 3, 224, 224)).argmax())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights")
    once(nn.Linear(3, 3), parser.parse_args().weights)


class Shared:
    """One function computes the loss for training and validation."""

    def __init__(self, net: nn.Module, train_loader, val_loader):
        self.net, self.train_loader, self.val_loader = net, train_loader, val_loader
        self.optimizer = optim.Adam(self.net.parameters())

    def loss(self, batch):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    @torch.inference_mode()
    def quiet_loss(self, batch):
        x, y = batch
        return F.mse_loss(self.net(x), y)

    def train(self):
        self.net.train()
        for batch in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.loss(batch)
            loss.backward()
            self.optimizer.step()

    def validate(self):
        self.net.eval()
        losses = []
        for batch in self.val_loader:
            losses.append(self.loss(batch).item())  # expect: eval-builds-graph
        return losses

    def validate_quietly(self):
        self.net.eval()
        losses = [self.quiet_loss(batch).item() for batch in self.val_loader]
        for batch in self.val_loader:
            with torch.no_grad():
                losses.append(self.loss(batch).item())
        return losses


class Sage(nn.Module):
    """Its inference is called through a wrapper, under no_grad."""

    def __init__(self, layers, dropout: float):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h):
        for layer in self.layers:
            h = self.dropout(layer(h))
        return h

    def inference(self, dataloader):
        for h in dataloader:
            for layer in self.layers:
                h = self.dropout(layer(h))
        return h


def through_a_wrapper(model, dataloader):
    model.eval()
    with torch.no_grad():
        return model.module.inference(dataloader)
