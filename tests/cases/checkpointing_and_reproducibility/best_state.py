"""The best state is kept by reference in loops, trainers and early stopping; copies and files are left alone."""

import copy
from copy import deepcopy

import torch
from torch import nn

from mylib.engine import evaluate, train_one_epoch


def fit(model: nn.Module, loader, val, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    best_loss, best_state = float("inf"), None
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        loss = evaluate(model, val)
        if loss < best_loss:
            best_loss, best_state = loss, model.state_dict()  # expect: best-state-aliased
    model.load_state_dict(best_state)
    return model


def imported_epoch(model: nn.Module, loader, val, epochs, patience, path):
    best, best_weights, bad = 0.0, None, 0
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        acc = evaluate(model, val)
        if acc > best:
            best, bad = acc, 0
            best_weights = model.state_dict().copy()  # expect: best-state-aliased
        else:
            bad += 1
        if bad >= patience:
            break
    torch.save({"model": best_weights, "acc": best}, path)


class Trainer:
    def __init__(self, net: nn.Module):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.best_acc = 0
        self.best = {}

    def epoch(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            nn.functional.cross_entropy(self.net(x), y).backward()
            self.opt.step()

    def run(self, loader, val, epochs):
        for e in range(epochs):
            self.epoch(loader)
            acc = evaluate(self.net, val)
            is_best = acc > self.best_acc
            if is_best:
                self.best_acc = acc
                self.best = {"net": self.net.state_dict(), "epoch": e}  # expect: best-state-aliased
        self.net.load_state_dict(self.best["net"])
        return self.net


class EarlyStopping:
    def __init__(self, patience=5):
        self.patience, self.bad, self.best_loss, self.best_state = patience, 0, None, None

    def __call__(self, loss, model: nn.Module) -> bool:
        if self.best_loss is None or loss < self.best_loss:
            self.best_loss, self.bad = loss, 0
            self.best_state = model.state_dict()  # expect: best-state-aliased
        else:
            self.bad += 1
        return self.bad >= self.patience

    def restore(self, model: nn.Module):
        model.load_state_dict(self.best_state)


# Look-alikes.


def copied(model: nn.Module, loader, val, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    best, best_state = 0.0, copy.deepcopy(model.state_dict())
    first = model.state_dict()
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        acc = evaluate(model, val)
        if acc > best:
            best = acc
            best_state = deepcopy(model.state_dict())
        if acc > 0.9 * best:
            best_state = {k: v.detach().cpu().clone() for k, v in model.state_dict().items()}
    model.load_state_dict(best_state)
    return model, first


def saved_at_once(model: nn.Module, loader, val, epochs, path):
    optimizer = torch.optim.Adam(model.parameters())
    best = 0.0
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        acc = evaluate(model, val)
        if acc > best:
            best = acc
            best_state = {"model": model.state_dict(), "epoch": epoch}
            torch.save(best_state, path)
    model.load_state_dict(torch.load(path)["model"])


def last_of_all(model: nn.Module, loader, val, epochs, path):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        state = model.state_dict()
        if epoch == epochs - 1:
            best_state = model.state_dict()
    torch.save(state, path)
    return best_state


def best_of_several(make, loader, val, rates):
    """Each model is a new one: nothing trains the kept one further."""
    best, best_state = 0.0, None
    for rate in rates:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        train_one_epoch(model, loader, optimizer)
        acc = evaluate(model, val)
        if acc > best:
            best, best_state = acc, model.state_dict()
    torch.save(best_state, "best.pt")


def with_averages(model: nn.Module, ema, loader, val, epochs):
    optimizer = torch.optim.Adam(model.parameters())
    best = 0.0
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        acc = evaluate(ema.module, val)
        if acc > best:
            best = acc
            best_state = model.state_dict()
            best_state = deepcopy(best_state)
    model.load_state_dict(best_state)


def of_each_client(clients, val, rounds):
    """Each model is trained in its own turn only."""
    best, best_state = 0.0, None
    for client in clients:
        client.model.train()
        train_one_epoch(client.model, client.loader, client.optimizer)
        acc = evaluate(client.model, val)
        if acc > best:
            best, best_state = acc, client.model.state_dict()
    return best_state


def within_dict(net: nn.Module, loader, val, epochs):
    wrapped = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters())
    best = dict(acc=0.0, state=None)
    for epoch in range(epochs):
        train_one_epoch(wrapped, loader, optimizer)
        acc = evaluate(wrapped, val)
        if acc > best["acc"]:
            best = dict(acc=acc, state=wrapped.module.state_dict())
    net.load_state_dict(best["state"])


class Averages:
    def __init__(self, model: nn.Module):
        self.model = model
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    def validate(self, val):
        kept = self.model.state_dict()  # expect: best-state-aliased
        self.model.load_state_dict(self.shadow)
        acc = evaluate(self.model, val)
        self.model.load_state_dict(kept)
        return acc


def folds(model: nn.Module, parts):
    fresh = model.state_dict()  # expect: best-state-aliased
    scores = []
    for train, val in parts:
        model.load_state_dict(fresh)
        optimizer = torch.optim.Adam(model.parameters())
        train_one_epoch(model, train, optimizer)
        scores.append(evaluate(model, val))
    return scores


def to_another(online: nn.Module, target: nn.Module, loader, val):
    """The state goes into another model, or back at once."""
    optimizer = torch.optim.Adam(online.parameters())
    state = online.state_dict()
    for epoch in range(9):
        train_one_epoch(online, loader, optimizer)
        target.load_state_dict(state)
    saved = copy.deepcopy(online.state_dict())
    online.load_state_dict(target.state_dict())
    evaluate(online, val)
    online.load_state_dict(saved)
    state = online.state_dict()
    state = {k.replace("a", "b"): v for k, v in state.items()}
    online.load_state_dict(state)


def partly(model: nn.Module, first, second):
    """The usual way to load a part: the state is changed on purpose before it goes back."""
    own = model.state_dict()
    model.load_state_dict(torch.load(first), strict=True)
    own.update({k: v for k, v in torch.load(second).items() if k in own})
    model.load_state_dict(own)
