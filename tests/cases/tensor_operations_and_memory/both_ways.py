"""Functions that train or evaluate, as they are told: by a mode, a flag, a phase, an optimizer that is given or not."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def run(net, loader, crit, optimizer, mode):
    if mode == "train":
        net.train()
    else:
        net.eval()
    total = 0.0
    for x, y in loader:
        out = net(x)  # expect: eval-builds-graph
        loss = crit(out, y)
        if mode == "train":
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


class Trainer:
    def __init__(self, model, opt):
        self.model = model
        self.opt = opt

    def _epoch(self, loader, train=True):
        self.model.train(train)
        total = 0
        for x, y in loader:
            loss = F.cross_entropy(self.model(x), y)  # expect: eval-builds-graph
            if train:
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            total += loss.item()
        return total

    def fit(self, a, b, epochs):
        for _ in range(epochs):
            self._epoch(a)
            self._epoch(b, train=False)


def phases(model, loaders, criterion, optimizer):
    for epoch in range(10):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            total = 0.0
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                outputs = model(inputs)  # expect: eval-builds-graph
                loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
                total += loss.item()


def phases_ok(model, loaders, criterion, optimizer):
    for epoch in range(10):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            total = 0.0
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = criterion(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
                total += loss.item()


def epoch_of(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    for x, y in loader:
        loss = criterion(model(x), y)  # expect: eval-builds-graph
        if optimizer is None:
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def epoch_guarded(model, loader, criterion, optimizer=None):
    for x, y in loader:
        loss = criterion(model(x), y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main(loaders):
    net = nn.Linear(2, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    crit = nn.CrossEntropyLoss()
    for _ in range(3):
        run(net, loaders[0], crit, opt, "train")
        run(net, loaders[1], crit, opt, mode="val")
        epoch_of(net, loaders[0], crit, opt)
        epoch_of(net, loaders[1], crit)
        epoch_guarded(net, loaders[0], crit, opt)
        with torch.no_grad():
            epoch_guarded(net, loaders[1], crit)
    Trainer(net, opt).fit(loaders[0], loaders[1], 3)
