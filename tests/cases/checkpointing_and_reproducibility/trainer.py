"""Loading in a method of its own: only the weights come back."""

import torch
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module, snapshot_path: str):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.snapshot_path = snapshot_path

    def load_snapshot(self):
        snapshot = torch.load(self.snapshot_path)  # expect: checkpoint-incomplete
        self.model.load_state_dict(snapshot["state"])

    def save_snapshot(self, epoch):
        torch.save({"state": self.model.state_dict(), "epoch": epoch}, self.snapshot_path)  # expect: save-not-atomic

    def run_epoch(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    def train(self, loader, epochs):
        self.load_snapshot()
        for epoch in range(epochs):
            self.run_epoch(loader)
            self.save_snapshot(epoch)
