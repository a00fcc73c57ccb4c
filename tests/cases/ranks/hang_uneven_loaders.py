"""Rank 0 has a batch more than rank 1, which goes on to the barrier before the evaluation."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, rank):
        self.model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-2)
        x = torch.randn(648 - 16 * rank, 8)
        self.loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)

    def step(self, x, y):
        self.optimizer.zero_grad()
        nn.functional.mse_loss(self.model(x), y).backward()  # expect: uneven-steps rank 0
        self.optimizer.step()

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                self.step(x, y)
            dist.barrier()


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
Trainer(dist.get_rank()).fit(3)
dist.destroy_process_group()
