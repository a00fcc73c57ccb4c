"""Evaluations that do and do not switch the model."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Tagger(nn.Module):
    def __init__(self, words, width, tags):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, 2, dropout=0.5, batch_first=True)
        self.out = nn.Linear(width, tags)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0])


def train_epoch(model, loader, optimizer):
    model.train()
    for tokens, tags in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens).transpose(1, 2), tags)
        loss.backward()
        optimizer.step()


def validate(model, loader):
    losses = []
    with torch.no_grad():
        for tokens, tags in loader:
            scores = model(tokens)  # expect: mode-left-in-train
            losses.append(F.cross_entropy(scores.transpose(1, 2), tags).item())
    return sum(losses) / len(losses)


def main(train_loader, val_loader, epochs):
    model = Tagger(1000, 64, 9)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        train_epoch(model, train_loader, optimizer)
        print(epoch, validate(model, val_loader))


def flat(train_loader, test_loader, epochs):
    net = Tagger(1000, 64, 9)
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(epochs):
        for tokens, tags in train_loader:
            opt.zero_grad()
            F.cross_entropy(net(tokens).transpose(1, 2), tags).backward()
            opt.step()
    hits = 0
    with torch.no_grad():
        for tokens, tags in test_loader:
            hits += (net(tokens).argmax(-1) == tags).sum().item()  # expect: mode-left-in-train
    return hits


@torch.no_grad()
def test(model, loader):
    model.eval()
    return sum((model(tokens).argmax(-1) == tags).sum().item() for tokens, tags in loader)


def switched(train_loader, test_loader, epochs):
    model = Tagger(1000, 64, 9)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        train_epoch(model, train_loader, optimizer)
        test(model, test_loader)


def switched_before(train_loader, test_loader):
    model = Tagger(1000, 64, 9)
    optimizer = torch.optim.Adam(model.parameters())
    train_epoch(model, train_loader, optimizer)
    model.eval()
    for tokens, tags in test_loader:
        with torch.no_grad():
            print(model(tokens).argmax(-1) == tags)


def spread(train_loader, test_loader):
    """Monte Carlo dropout: many passes in training mode."""
    model = Tagger(1000, 64, 9)
    optimizer = torch.optim.Adam(model.parameters())
    train_epoch(model, train_loader, optimizer)
    return mc_evaluate(model, test_loader)


def mc_evaluate(model, loader):
    passes = []
    with torch.no_grad():
        for tokens, _ in loader:
            passes.append(torch.stack([model(tokens) for _ in range(20)]).std(0))
    return passes


@torch.inference_mode()
def accuracy(net, loader):
    hits = 0
    for tokens, tags in loader:
        hits += (net(tokens).argmax(-1) == tags).sum().item()  # expect: mode-left-in-train
    return hits


def reported(train_loader, loader, epochs):
    model = Tagger(1000, 64, 9)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        train_epoch(model, train_loader, optimizer)
        print(accuracy(model, loader))


def momentum(loader, epochs):
    """The key encoder runs in training mode, without gradients, as part of the step."""
    query, key = Tagger(1000, 64, 9), Tagger(1000, 64, 9)
    optimizer = torch.optim.SGD(query.parameters(), lr=0.1)
    for epoch in range(epochs):
        for tokens, _ in loader:
            with torch.no_grad():
                target = key(tokens)
            optimizer.zero_grad()
            F.mse_loss(query(tokens), target).backward()
            optimizer.step()


def evaluate_any(net, loader):
    """For modules, and for plain functions that are told."""
    hits = 0
    with torch.no_grad():
        for tokens, tags in loader:
            if isinstance(net, nn.Module):
                net.eval()
                hits += (net(tokens).argmax(-1) == tags).sum().item()
                net.train()
            else:
                hits += (net(tokens).argmax(-1) == tags).sum().item()
    return hits


def fit_any(train_loader, val_loader, epochs):
    model = Tagger(1000, 64, 9)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        train_epoch(model, train_loader, optimizer)
        evaluate_any(model, val_loader)
