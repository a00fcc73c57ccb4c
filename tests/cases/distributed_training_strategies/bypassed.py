"""Forward passes that go past the wrapper."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Net(nn.Module):
    def __init__(self, width: int = 64):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, width), nn.ReLU())
        self.head = nn.Linear(width, 10)

    def forward(self, inputs):
        return self.head(self.body(inputs))

    def encode(self, inputs):
        return self.body(inputs)


def main(dataset, local_rank: int, epochs: int):
    model = DDP(Net().to(local_rank), device_ids=[local_rank])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 32, sampler=sampler)
    optimizer = torch.optim.AdamW(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            inputs, targets = inputs.to(local_rank), targets.to(local_rank)
            optimizer.zero_grad()
            logits = model.module(inputs)  # expect: wrapper-bypassed
            loss = criterion(logits, targets)
            loss.backward()
            optimizer.step()


class Trainer:
    def __init__(self, local_rank: int):
        self.model = DDP(Net().to(local_rank), device_ids=[local_rank])
        self.bare = self.model.module
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def compute_loss(self, inputs, targets):
        outputs = self.bare(inputs)  # expect: wrapper-bypassed
        return nn.functional.cross_entropy(outputs, targets)

    def run(self, loader):
        for inputs, targets in loader:
            self.optimizer.zero_grad()
            loss = self.compute_loss(inputs, targets)
            loss.backward()
            self.optimizer.step()


def through_forward(net: nn.Module, loader, local_rank: int):
    net = DDP(net.cuda(local_rank), device_ids=[local_rank], find_unused_parameters=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net.module.forward(inputs.cuda()), targets.cuda())  # expect: wrapper-bypassed
        loss.backward()
        optimizer.step()
