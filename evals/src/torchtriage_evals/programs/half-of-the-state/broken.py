"""Trains for some epochs and can go on from a file."""

import torch
from torch import nn


class Job:
    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2, gamma=0.1)
        self.epoch = 0

    def train_epoch(self, inputs, targets):
        for chosen in torch.randperm(len(inputs)).split(8):
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(inputs[chosen]), targets[chosen])
            loss.backward()
            self.optimizer.step()
        self.schedule.step()
        self.epoch += 1

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "epoch": self.epoch}, path)

    def load(self, path):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.epoch = state["epoch"]
