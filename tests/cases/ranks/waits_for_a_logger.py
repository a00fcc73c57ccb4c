"""Rank 0 writes a report after every step; the step of everybody else ends when it is back."""
# ranks: 2

import io
import json
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, model):
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.05, momentum=0.9)
        self.losses = []

    def report(self, loss):
        self.losses.append(loss)
        file = io.StringIO()
        json.dump(self.losses, file)
        time.sleep(0.012)  # expect: straggler rank 0

    def fit(self, steps):
        generator = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(steps):
            x = torch.randn(32, 20, generator=generator)
            loss = nn.functional.mse_loss(self.model(x), x.sum(1, keepdim=True))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if dist.get_rank() == 0:
                self.report(loss.item())


dist.init_process_group("gloo")
torch.manual_seed(0)
Trainer(nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 1))).fit(100)
dist.destroy_process_group()
