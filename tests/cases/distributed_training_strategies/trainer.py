"""The same fault in a class, with the sampler made only when there are several ranks."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, model: nn.Module, dataset, distributed: bool):
        self.model = model
        sampler = DistributedSampler(dataset, shuffle=True) if distributed else None  # expect: sampler-epoch-not-set
        self.loader = DataLoader(dataset, batch_size=32, shuffle=sampler is None, sampler=sampler)
        self.optimizer = torch.optim.AdamW(model.parameters())

    def run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(source), targets)
        loss.backward()
        self.optimizer.step()

    def run_epoch(self, epoch):
        for source, targets in self.loader:
            self.run_batch(source.cuda(), targets.cuda())

    def train(self, epochs):
        for epoch in range(epochs):
            self.run_epoch(epoch)
