"""Layers beside the model whose parameters no optimizer has, and optimizers whose class is chosen by a name."""

import torch
import torch.nn.functional as F
from torch import nn


def left_out(loader, device):
    encoder = nn.LSTM(8, 16).to(device)
    project = nn.Linear(16, 3).to(device)
    optimizer = torch.optim.Adam(list(encoder.parameters()), lr=1e-3)  # expect: parameters-not-in-optimizer
    for x, y in loader:
        optimizer.zero_grad()
        hidden, _ = encoder(x)
        loss = F.cross_entropy(project(hidden[-1]), y)
        loss.backward()
        optimizer.step()


def held_together(loader, device):
    body = nn.LSTM(8, 16).to(device)
    head = nn.Linear(16, 3).to(device)
    parameters = list(body.parameters())
    parameters += list(head.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(head(body(x)[0][-1]), y)
        loss.backward()
        optimizer.step()


def fixed_on_purpose(loader):
    student, teacher, probe = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
    optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)
    for x in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            shown = probe(x)
        loss = F.mse_loss(student(x), teacher(x))
        loss.backward()
        optimizer.step()
        probe(shown)


class Focal(nn.Module):
    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, y):
        return F.cross_entropy(logits, y) * self.gamma


def with_a_loss_of_its_own(loader):
    model, error = nn.Linear(8, 8), Focal()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = error(model(x), y)
        loss.backward()
        optimizer.step()


def by_name(args, model, loader):
    optimizer = getattr(torch.optim, args.optimizer)(model.parameters(), lr=args.lr)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: gradients-not-zeroed
        optimizer.step()


def by_table(args, model, loader):
    classes = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer = classes[args.optimizer](model.parameters(), lr=args.lr)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # expect: gradients-not-zeroed
        optimizer.step()


def by_unknown_table(args, model, loader, classes):
    optimizer = classes[args.optimizer](model.parameters(), lr=args.lr)
    mine = getattr(args.library, args.optimizer)(model.parameters(), lr=args.lr)
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        mine.step()
