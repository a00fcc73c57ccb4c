"""Loading while the trainer is built: one forgets Adam's moments, the other has a plain SGD, which has no state."""

import os

import torch
from torch import nn


class Seasoned:
    def __init__(self, model: nn.Module, path="snapshot.pt"):
        self.model, self.path, self.epochs_run = model, path, 0
        self.optimizer = torch.optim.AdamW(model.parameters())
        if os.path.exists(path):
            self._load_snapshot()

    def _load_snapshot(self):
        snapshot = torch.load(self.path, map_location="cpu")  # expect: checkpoint-incomplete
        self.model.load_state_dict(snapshot["MODEL_STATE"])
        self.epochs_run = snapshot["EPOCHS_RUN"]  # expect: resume-off-by-one
        print("Resuming at epoch {}".format(snapshot["EPOCHS_RUN"]))

    def train(self, loader, epochs):
        for epoch in range(self.epochs_run, epochs):
            for x, y in loader:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
            torch.save({"MODEL_STATE": self.model.state_dict(), "EPOCHS_RUN": epoch}, self.path)  # expect: save-not-atomic


class Plain:
    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, path="snapshot.pt"):
        self.model, self.path, self.epochs_run = model, path, 0
        self.optimizer = optimizer
        if os.path.exists(path):
            snapshot = torch.load(path)
            model.load_state_dict(snapshot["MODEL_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"] + 1

    def train(self, loader, epochs):
        for epoch in range(self.epochs_run, epochs):
            for x, y in loader:
                self.optimizer.zero_grad()
                nn.functional.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
            torch.save({"MODEL_STATE": self.model.state_dict(), "EPOCHS_RUN": epoch}, self.path)  # expect: save-not-atomic


def main(loader):
    model = nn.Linear(20, 1)
    Plain(model, torch.optim.SGD(model.parameters(), lr=1e-3)).train(loader, 10)
